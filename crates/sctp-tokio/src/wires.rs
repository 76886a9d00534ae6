//! The sockets that carry SCTP packets, for programs with a protocol endpoint of their own.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eyas_sctp::io::{Input, Transmit};
use tokio::io::Ready;
use tokio::sync::Notify;

use super::carrier::{Arrivals, DirectAccess, ReceiveBuffers, Wire, direct_access};
use super::outbox::Outbox;
use super::own_addresses::{BoundAddresses, Watch};
use super::tap::{Tap, Train};

/// The maximum number of trains that wait for a full socket; more are lost, as on any path.
const MAX_OUTBOX: usize = 1024;
/// The pause after an error of a socket that does not concern a single packet.
const ERROR_PAUSE: Duration = Duration::from_millis(50);

/// A socket for each address family, or for each address: inside UDP, or directly over IP.
///
/// Must be used within a tokio runtime. Packets of an address family for which no socket could be
/// opened are not sent: not every host has IPv6.
#[derive(Debug)]
pub struct Wires {
    wires: Vec<Wire>,
    outbox: Mutex<Outbox>,
    /// Notified when packets have to wait for a full socket.
    queued: Notify,
    tap: Option<Arc<dyn Tap>>,
}

impl Wires {
    /// Opens sockets for SCTP over UDP (RFC 6951) at this port, or at any free port if it is 0, and
    /// at these addresses, or at all if there are none.
    ///
    /// # Errors
    /// If an address is not a local one, or the port is taken.
    pub fn udp(addresses: &[IpAddr], port: u16) -> io::Result<Self> {
        let mut port = port;
        Self::open(addresses, |ip| {
            let wire = Wire::udp(SocketAddr::new(ip, port))?;
            // Peers send to all addresses at the one port that they know.
            port = wire.local().port();
            Ok(wire)
        })
    }

    /// Opens sockets for SCTP directly over IP, protocol 132.
    ///
    /// # Errors
    /// If this user may not open raw sockets, or the kernel handles SCTP itself.
    pub fn raw(addresses: &[IpAddr]) -> io::Result<Self> {
        match direct_access() {
            Ok(DirectAccess::Raw) => Self::open(addresses, Wire::raw),
            Ok(DirectAccess::Kernel) => {
                let what =
                    "the kernel of this host provides SCTP, and would respond to the same packets";
                Err(io::Error::new(io::ErrorKind::AddrInUse, what))
            }
            Err(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
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
        Ok(Self { wires, outbox: Mutex::default(), queued: Notify::new(), tap: None })
    }

    /// Passes all packets sent and received to `tap`.
    #[must_use]
    pub fn with_tap(mut self, tap: Arc<dyn Tap>) -> Self {
        self.tap = Some(tap);
        self
    }

    /// Returns the UDP port, if packets are encapsulated in UDP.
    pub fn udp_port(&self) -> Option<u16> {
        self.wires.first().map(|wire| wire.local().port()).filter(|port| *port != 0)
    }

    /// Returns the local addresses that the sockets currently serve, most preferred first; loopback
    /// addresses last, unless sockets are bound to them.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let mut addresses = BoundAddresses::from_wires(&self.wires).current();
        for wire in self.wires.iter().filter(|wire| wire.local().ip().is_unspecified()) {
            addresses.push(match wire.local() {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        addresses
    }

    /// Returns the state that [`Self::changed`] needs: changes are counted from now on. Must be
    /// called within a tokio runtime.
    pub fn changes(&self) -> AddressChanges {
        let bound = BoundAddresses::from_wires(&self.wires);
        let known = bound.current();
        AddressChanges(Watch::new(bound, known))
    }

    /// Waits until [`Self::addresses`] has changed. Cancel-safe.
    pub async fn changed(&self, changes: &mut AddressChanges) -> Vec<IpAddr> {
        let watch = &mut changes.0;
        loop {
            let Some(time) = watch.next_timeout() else {
                watch.changed().await;
                self.outbox().clear_sources();
                watch.schedule_check();
                continue;
            };
            tokio::time::sleep_until(time.into()).await;
            if watch.due_addresses(Instant::now()).is_some() {
                return self.addresses();
            }
        }
    }

    /// Sends a train of packets after those that are waiting for a full socket. What cannot be sent
    /// is lost, as on any path; the returned inputs report that there is no route.
    pub fn send(&self, transmit: Transmit) -> Vec<Input> {
        let mut outbox = self.outbox();
        if outbox.trains.len() < MAX_OUTBOX {
            outbox.trains.push_back(transmit);
        }
        let mut arrivals = Arrivals::new();
        if outbox.full().is_none() {
            self.send_all(&mut outbox, &mut arrivals);
            if outbox.full().is_some() {
                self.queued.notify_one();
            }
        }
        arrivals
    }

    /// Sends the waiting packets whenever the full sockets have space, and returns when there is
    /// something to report: that there is no route. Cancel-safe.
    pub async fn flush(&self) -> Vec<Input> {
        let mut arrivals = Arrivals::new();
        while arrivals.is_empty() {
            let full = self.outbox().full();
            match full.and_then(|index| self.wires.get(index)) {
                Some(wire) if wire.writable().await.is_ok() => {
                    self.send_all(&mut self.outbox(), &mut arrivals);
                }
                // The runtime is being shut down.
                Some(_) => std::future::pending().await,
                None => self.queued.notified().await,
            }
        }
        arrivals
    }

    fn send_all(&self, outbox: &mut Outbox, arrivals: &mut Arrivals) {
        outbox.send(&self.wires, arrivals, self.tap.as_deref());
    }

    fn pass_to_tap(&self, wire: &Wire, arrivals: &[Input]) {
        let Some(tap) = &self.tap else { return };
        for arrival in arrivals {
            if let Input::Packets(received) = arrival {
                tap.passed(&Train {
                    source: received.remote,
                    destination: wire.local_for(received.local),
                    ecn: received.ecn,
                    contents: &received.contents,
                    segment_size: received.segment_size,
                });
            }
        }
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of sockets; each is read separately.
    pub fn count(&self) -> usize {
        self.wires.len()
    }

    /// Waits for packets on the socket with this index and returns them. Nothing is lost if the
    /// future is dropped while it waits.
    pub async fn receive(&self, index: usize, buffers: &mut ReceiveBuffers) -> Vec<Input> {
        let mut arrivals = Arrivals::new();
        while arrivals.is_empty() {
            match self.wires.get(index) {
                Some(wire) => match wire.readable().await {
                    Ok(ready) => {
                        read(wire, ready, buffers, &mut arrivals).await;
                        self.pass_to_tap(wire, &arrivals);
                    }
                    // The runtime is being shut down.
                    Err(_) => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        }
        arrivals
    }

    /// Returns the unread packets of the socket with this index without waiting. Packets from this
    /// host to itself are available as soon as they have been sent.
    ///
    /// # Errors
    /// If the error concerns the socket and not a single packet.
    pub fn receive_at_once(
        &self,
        index: usize,
        buffers: &mut ReceiveBuffers,
    ) -> io::Result<Vec<Input>> {
        let wire = self.wires.get(index).ok_or(io::ErrorKind::NotFound)?;
        let mut arrivals = Arrivals::new();
        wire.receive_at_once(buffers, &mut arrivals)?;
        self.pass_to_tap(wire, &arrivals);
        Ok(arrivals)
    }
}

/// Reads what is available; after an error of the socket, pauses first.
pub(super) async fn read(
    wire: &Wire,
    ready: Ready,
    buffers: &mut ReceiveBuffers,
    arrivals: &mut Arrivals,
) {
    if let Err(error) = wire.receive(ready, buffers, arrivals) {
        tracing::warn!(%error, "cannot receive SCTP packets at the moment");
        tokio::time::sleep(ERROR_PAUSE).await;
    }
}

/// The local addresses as [`Wires::changed`] last returned them.
#[derive(Debug)]
pub struct AddressChanges(Watch);
