//! Sockets that carry packets: UDP (RFC 6951), or raw sockets for protocol 132.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::io::{Ecn, Received, Transmit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::{Domain, Protocol, Socket, Type};

/// The socket buffer size in bytes.
const BUFFER: usize = 4 << 20;
/// The largest packet that can be read.
const PACKET: usize = 65_536;
/// The duration of each wait for room to send.
const WAIT: Duration = Duration::from_micros(200);
/// The number of waits before a packet is dropped, as a network would.
const MAX_WAITS: usize = 500;

/// One socket for each address of this host.
pub(crate) struct Carrier {
    udp: Option<u16>,
    sockets: Vec<(IpAddr, UdpSocket)>,
    buffer: Vec<u8>,
}

impl Carrier {
    pub(crate) fn new(udp: Option<u16>, local: &[IpAddr]) -> io::Result<Self> {
        let mut carrier = Self { udp, sockets: Vec::new(), buffer: vec![0; PACKET] };
        for address in local {
            carrier.add(*address)?;
        }
        Ok(carrier)
    }

    /// Adds an address of this host.
    pub(crate) fn add(&mut self, address: IpAddr) -> io::Result<()> {
        let local = SocketAddr::new(address, self.udp.unwrap_or(0));
        let (kind, protocol) = match self.udp {
            Some(_) => (Type::DGRAM, None),
            None => (Type::RAW, Some(Protocol::from(132))),
        };
        let socket = Socket::new(Domain::for_address(local), kind, protocol)?;
        socket.set_recv_buffer_size(BUFFER)?;
        socket.set_send_buffer_size(BUFFER)?;
        socket.set_nonblocking(true)?;
        // No fragmentation: a packet that is too large is lost, as on a path with a smaller MTU.
        if address.is_ipv4() {
            set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
        } else {
            set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?;
        }
        socket.bind(&local.into())?;
        self.sockets.push((address, socket.into()));
        Ok(())
    }

    /// Sends packets; those that cannot be sent are lost, as on a network.
    pub(crate) fn send(&self, transmit: &Transmit) {
        let from = transmit.local.unwrap_or_else(|| self.source(transmit.remote.ip()));
        let Some((_, socket)) = self.sockets.iter().find(|(address, _)| *address == from) else {
            return;
        };
        for packet in transmit.contents.chunks(transmit.segment_size) {
            for _ in 0..MAX_WAITS {
                match socket.send_to(packet, transmit.remote) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        std::thread::sleep(WAIT);
                    }
                    _ => break,
                }
            }
        }
    }

    /// The local address with the longest prefix in common with a peer's, which routing would
    /// choose here.
    fn source(&self, remote: IpAddr) -> IpAddr {
        let common_bits = |address: &IpAddr| match (address, remote) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() + 1,
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() + 1,
            _ => 0,
        };
        let best = self.sockets.iter().map(|(address, _)| *address).max_by_key(common_bits);
        best.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }

    /// Waits until a packet arrives, at most `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> io::Result<()> {
        let mut sockets: Vec<_> =
            self.sockets.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::IN)).collect();
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        poll(&mut sockets, Some(&limit))?;
        Ok(())
    }

    /// Reads at most this many packets.
    pub(crate) fn receive(&mut self, most: usize, mut take: impl FnMut(Received)) {
        for (address, socket) in &self.sockets {
            for _ in 0..most {
                let Ok((length, from)) = socket.recv_from(&mut self.buffer) else { break };
                let data = &self.buffer[..length];
                let data =
                    if self.udp.is_none() && address.is_ipv4() { payload(data) } else { data };
                let remote = SocketAddr::new(from.ip(), self.udp.map_or(0, |_| from.port()));
                take(Received {
                    local: Some(*address),
                    remote,
                    ecn: Ecn::NotCapable,
                    peer: None,
                    contents: Bytes::copy_from_slice(data),
                    segment_size: data.len().max(1),
                });
            }
        }
    }
}

/// The payload of an IPv4 packet.
fn payload(packet: &[u8]) -> &[u8] {
    let words = packet.first().map_or(0, |first| usize::from(first & 15));
    packet.get(words * 4..).unwrap_or_default()
}
