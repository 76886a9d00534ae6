//! The sockets that carry SCTP packets, for those who have a protocol endpoint of their own.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use eyas_sctp::io::{Input, Transmit};

use super::carrier::{Access, ReceiveBuffers, Ways, Wire, access};
use super::own_addresses::Bound;

/// A socket for each address family, or for each address: inside UDP, or directly over IP.
///
/// Must be used inside a tokio runtime. Sockets of another family than those that could be had carry
/// nothing: not every host has IPv6.
#[derive(Debug)]
pub struct Wires {
    wires: Vec<Wire>,
    ways: Mutex<Ways>,
}

impl Wires {
    /// Inside UDP (RFC 6951) at this port, or at any if it is 0; at these addresses, or at all if there
    /// are none.
    ///
    /// # Errors
    /// If an address is not one of this host's, or somebody has the port.
    pub fn udp(addresses: &[IpAddr], port: u16) -> io::Result<Self> {
        let mut port = port;
        Self::open(addresses, |ip| {
            let wire = Wire::udp(SocketAddr::new(ip, port))?;
            // Peers send to all addresses at the port that they know.
            port = wire.local().port();
            Ok(wire)
        })
    }

    /// Directly over IP, protocol 132.
    ///
    /// # Errors
    /// If this user may not open raw sockets, or the kernel speaks SCTP itself.
    pub fn raw(addresses: &[IpAddr]) -> io::Result<Self> {
        match access() {
            Access::Raw => Self::open(addresses, Wire::raw),
            Access::Kernel => {
                let what = "the kernel of this host speaks SCTP itself, and would answer as well";
                Err(io::Error::new(io::ErrorKind::AddrInUse, what))
            }
            Access::None(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why.as_str())),
        }
    }

    fn open(
        addresses: &[IpAddr],
        mut open: impl FnMut(IpAddr) -> io::Result<Wire>,
    ) -> io::Result<Self> {
        let mut wires = Vec::new();
        for ip in addresses {
            wires.push(open(*ip)?);
        }
        if addresses.is_empty() {
            wires.push(open(Ipv4Addr::UNSPECIFIED.into())?);
            match open(Ipv6Addr::UNSPECIFIED.into()) {
                Ok(wire) => wires.push(wire),
                Err(error) => tracing::debug!(%error, "no SCTP over IPv6"),
            }
        }
        Ok(Self { wires, ways: Mutex::new(Ways::default()) })
    }

    /// The UDP port, if packets go inside UDP.
    pub fn udp_port(&self) -> Option<u16> {
        self.wires.first().map(|wire| wire.local().port()).filter(|port| *port != 0)
    }

    /// The addresses of this host that the sockets serve now, most wanted first; loopback last, unless
    /// sockets are bound to it.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let mut addresses = Bound::of(&self.wires).now();
        for wire in self.wires.iter().filter(|wire| wire.local().ip().is_unspecified()) {
            addresses.push(match wire.local() {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        addresses
    }

    /// Sends a train of packets. What the path does not take counts as lost.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when the socket is full, [`io::ErrorKind::NetworkUnreachable`] where
    /// none leads there, and what else keeps packets from leaving.
    pub fn try_send(&self, transmit: &Transmit) -> io::Result<()> {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let chosen = ways.choose(&self.wires, transmit);
        drop(ways);
        let wire = chosen.and_then(|index| self.wires.get(index));
        wire.ok_or(io::ErrorKind::NetworkUnreachable)?.try_send(transmit)
    }

    /// Waits until the socket that leads there takes packets again. Cancel-safe.
    ///
    /// # Errors
    /// If the runtime ends.
    pub async fn writable(&self, remote: SocketAddr) -> io::Result<()> {
        match self.wires.iter().find(|wire| wire.leads_to(remote)) {
            Some(wire) => wire.writable().await,
            None => Ok(()),
        }
    }

    /// How many sockets there are; each is read on its own.
    pub fn count(&self) -> usize {
        self.wires.len()
    }

    /// Waits until something came in at the socket of this number, and what that was. Nothing is lost
    /// if it is dropped.
    ///
    /// # Errors
    /// What says something about the socket and not about a packet.
    pub async fn receive(&self, index: usize, buffers: &mut Buffers) -> io::Result<Vec<Input>> {
        let wire = self.wires.get(index).ok_or(io::ErrorKind::NotFound)?;
        let ready = wire.readable().await?;
        let mut arrivals = Vec::new();
        wire.receive(ready, &mut buffers.0, &mut arrivals)?;
        Ok(arrivals)
    }
}

/// Memory to receive into, used again and again.
#[derive(Debug)]
pub struct Buffers(ReceiveBuffers);

impl Default for Buffers {
    fn default() -> Self {
        Self(ReceiveBuffers::new())
    }
}

/// Whether an error of [`Wires::try_send`] says that there is no way to the peer.
pub fn is_without_way(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, HostUnreachable, InvalidInput, NetworkUnreachable};
    matches!(error.kind(), NetworkUnreachable | HostUnreachable | AddrNotAvailable | InvalidInput)
}
