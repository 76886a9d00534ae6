//! SCTP inside UDP (RFC 6951), in trains of datagrams where the kernel supports it (GSO and GRO).

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use bytes::Bytes;
use eyas_host::udp_offload::{self, EcnCodepoint, RecvMeta, UdpOffload};
use eyas_sctp::io::{Ecn, Fragmentation, Input, Received, Transmit};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Arrivals, ReceiveBuffers, fragmentation, marking};

/// The state of a UDP socket for SCTP, apart from the socket itself.
#[derive(Debug)]
pub(super) struct UdpCarrier {
    offload: UdpOffload,
}

pub(super) fn open(address: SocketAddr) -> io::Result<(Socket, UdpCarrier)> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    let carrier = UdpCarrier::new(&socket)?;
    Ok((socket, carrier))
}

impl UdpCarrier {
    /// Configures a socket that was opened elsewhere.
    pub(super) fn new(socket: &Socket) -> io::Result<Self> {
        Ok(Self { offload: UdpOffload::new(socket)? })
    }

    pub(super) fn send(&self, socket: &Socket, transmit: &Transmit) -> io::Result<()> {
        let segment = transmit.segment_size.max(1);
        if transmit.fragmentation == Fragmentation::Allowed {
            let (contents, is_ipv4) = (&transmit.contents, transmit.remote.is_ipv4());
            let send = |packet| self.send_datagrams(socket, transmit, packet, segment);
            return fragmentation::with_fragmentation(socket, is_ipv4, || {
                contents.chunks(segment).try_for_each(send)
            });
        }
        let train = segment.saturating_mul(self.offload.max_gso_segments().max(1));
        let mut parts = transmit.contents.chunks(train);
        parts.try_for_each(|part| self.send_train(socket, transmit, part, segment))
    }

    fn send_train(
        &self,
        socket: &Socket,
        transmit: &Transmit,
        part: &[u8],
        segment: usize,
    ) -> io::Result<()> {
        match self.send_datagrams(socket, transmit, part, segment) {
            // The train is refused as a whole; its packets may still be accepted one by one.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock && part.len() > segment => {
                part.chunks(segment).try_for_each(|packet| self.send_one(socket, transmit, packet))
            }
            Err(error) if fragmentation::is_too_big(&error) => {
                self.send_one(socket, transmit, part)
            }
            sent => sent,
        }
    }

    /// Sends one datagram, fragmented if that is necessary and allowed.
    fn send_one(&self, socket: &Socket, transmit: &Transmit, packet: &[u8]) -> io::Result<()> {
        let send = || self.send_datagrams(socket, transmit, packet, packet.len());
        match send() {
            Err(error) if fragmentation::is_too_big(&error) => {
                if transmit.fragmentation == Fragmentation::Forbidden {
                    return Ok(());
                }
                fragmentation::with_fragmentation(socket, transmit.remote.is_ipv4(), send)
            }
            sent => sent,
        }
    }

    fn send_datagrams(
        &self,
        socket: &Socket,
        transmit: &Transmit,
        contents: &[u8],
        segment: usize,
    ) -> io::Result<()> {
        if marking::applies(transmit) {
            let is_ipv4 = transmit.remote.is_ipv4();
            let mut packets = contents.chunks(segment.max(1));
            return packets.try_for_each(|one| marking::send(socket, is_ipv4, transmit, one));
        }
        let transmit = udp_offload::Transmit {
            destination: transmit.remote,
            ecn: EcnCodepoint::from_bits(transmit.ecn.bits()),
            contents,
            segment_size: (contents.len() > segment).then_some(segment),
            src_ip: transmit.local,
        };
        self.offload.send(socket, &transmit)
    }

    pub(super) fn receive(
        &self,
        socket: &Socket,
        buffers: &mut ReceiveBuffers,
        arrivals: &mut Arrivals,
    ) -> io::Result<()> {
        let mut meta = [RecvMeta::default(); ReceiveBuffers::TRAINS];
        let trains = {
            let mut slices: Vec<IoSliceMut<'_>> =
                buffers.0.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
            self.offload.receive(socket, &mut slices, &mut meta)?
        };
        for (meta, buffer) in meta.iter().zip(&buffers.0).take(trains) {
            // An empty datagram is not an SCTP packet.
            let Some(contents) = buffer.get(..meta.len).filter(|bytes| !bytes.is_empty()) else {
                continue;
            };
            arrivals.push(Input::Packets(Received {
                local: meta.dst_ip,
                remote: meta.addr,
                ecn: Ecn::from_bits(meta.ecn.map_or(0, |ecn| ecn as u8)),
                peer: None,
                contents: Bytes::copy_from_slice(contents),
                segment_size: meta.stride.max(1),
            }));
        }
        Ok(())
    }
}
