//! The sockets that carry the packets of our own SCTP stack: UDP sockets and raw sockets.
//!
//! | module | purpose | source |
//! | --- | --- | --- |
//! | `udp` | SCTP inside UDP, in trains of datagrams (GSO, GRO) | RFC 6951 |
//! | `dtls` | SCTP inside DTLS inside UDP | RFC 8261 |
//! | `raw` | SCTP directly over IP, protocol 132, where privileges allow it | RFC 9260 |
//! | `icmp` | mapping of ICMP messages to SCTP | RFC 9260 §10 |
//! | `marking` | packets with a DSCP, a hop limit or a mark | RFC 2474 |
//! | `fragmentation` | letting routers fragment a packet that is too big | RFC 8899 |
//! | `source_cache` | choice of the socket for a packet | RFC 9260 §6.4 |
//! | `claim` | one listener per port over raw IP | |
//! | `owner` | which process uses a UDP port that is taken | |
//! | `access` | whether this machine and user can send protocol 132 at all | |
//!
//! Sockets here never block. A [`Wire`] is one socket of one address family.

mod access;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod claim;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "carrier/claim/absent.rs"]
mod claim;
mod dtls;
mod fragmentation;
mod icmp;
mod marking;
mod owner;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod raw;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "carrier/raw/absent.rs"]
mod raw;
mod source_cache;
mod udp;

#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use eyas_host::datagram_socket::DatagramSocket;
use eyas_host::icmp::is_icmp_report;
use eyas_sctp::io::{Input, PeerIdentity, Transmit};
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::CertificateDer;
use socket2::Socket;
use tokio::io::Ready;

pub use access::{DirectAccess, DirectAccessError, direct_access};
pub(crate) use claim::Claim;
use dtls::DtlsCarrier;
pub(crate) use dtls::Shared as DtlsSessions;
pub(crate) use owner::owner_of_udp_port;
use raw::RawCarrier;
pub(crate) use source_cache::SourceCache;
use udp::UdpCarrier;

use crate::dtls::{DtlsIdentity, Opening, Role, SessionPath};

/// The default UDP port for SCTP over UDP (RFC 6951 §5.1).
pub const ENCAPSULATION_PORT: u16 = 9899;
/// SCTP's number among the protocols of IP.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const IPPROTO_SCTP: i32 = 132;
/// The size of the kernel's buffers, in bytes; the kernel may grant less.
const SOCKET_BUFFER: usize = 4 * 1024 * 1024;
/// ICMP reports read at a time.
const MAX_REPORTS: usize = 32;

/// One socket that carries SCTP packets of one address family.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: DatagramSocket,
    kind: Kind,
    local: SocketAddr,
    /// The DTLS sessions whose records arrive at this socket.
    dtls_sessions: Option<Arc<DtlsSessions>>,
}

#[derive(Debug)]
enum Kind {
    Udp(UdpCarrier),
    Dtls(DtlsCarrier),
    Raw(RawCarrier),
}

/// The inputs received from a wire.
pub(crate) type Arrivals = Vec<Input>;

impl Wire {
    /// Opens a UDP socket at this address; port 0 selects a free one. Must be called inside a tokio
    /// runtime.
    pub(crate) fn udp(address: SocketAddr) -> io::Result<Self> {
        let (socket, carrier) = udp::open(address)?;
        Self::new(socket, Kind::Udp(carrier))
    }

    /// Opens a separate UDP socket for a DTLS session with a server of this family.
    pub(crate) fn dtls(address: SocketAddr) -> io::Result<Self> {
        let (socket, carrier) = udp::open(address)?;
        let sessions = DtlsSessions::new(Role::Client);
        Self::new(socket, Kind::Dtls(DtlsCarrier::new(carrier, sessions, true)))
    }

    /// Opens a UDP socket for DTLS sessions that are opened for each path.
    pub(crate) fn dtls_paths(address: SocketAddr, opening: Opening) -> io::Result<Self> {
        let (socket, carrier) = udp::open(address)?;
        let sessions = DtlsSessions::new(Role::ClientOfPaths(opening));
        Self::new(socket, Kind::Dtls(DtlsCarrier::new(carrier, sessions, true)))
    }

    /// Creates a second wire for the same UDP socket, which accepts DTLS sessions with this
    /// identity; with a verifier, of clients with certificates, and on several paths.
    pub(crate) fn share_with_dtls(
        &mut self,
        identity: DtlsIdentity,
        verifier: Option<Arc<dyn ClientCertVerifier>>,
    ) -> io::Result<Self> {
        let socket = self.socket.get().try_clone()?;
        let sessions = DtlsSessions::new(match verifier {
            None => Role::Server(identity),
            Some(verifier) => Role::ServerOfPaths(identity, verifier),
        });
        self.dtls_sessions = Some(Arc::clone(&sessions));
        let carrier = UdpCarrier::new(&socket)?;
        Self::new(socket, Kind::Dtls(DtlsCarrier::new(carrier, sessions, false)))
    }

    /// Returns the DTLS sessions whose packets this wire sends and receives.
    pub(crate) fn sessions(&self) -> Option<&Arc<DtlsSessions>> {
        match &self.kind {
            Kind::Dtls(carrier) => Some(carrier.shared()),
            Kind::Udp(_) | Kind::Raw(_) => None,
        }
    }

    /// Returns the DTLS sessions that share the socket of this unencrypted wire, which reads it.
    pub(crate) fn dtls_sessions(&self) -> Option<&Arc<DtlsSessions>> {
        self.dtls_sessions.as_ref()
    }

    /// Opens a raw socket for protocol 132 at this address. Must be called inside a tokio runtime.
    pub(crate) fn raw(address: IpAddr) -> io::Result<Self> {
        Self::raw_at(SocketAddr::new(address, 0))
    }

    /// Like [`Self::raw`], at an address on an interface; its port does not matter.
    pub(crate) fn raw_at(address: SocketAddr) -> io::Result<Self> {
        let (socket, carrier) = raw::open(address)?;
        Self::new(socket, Kind::Raw(carrier))
    }

    fn new(socket: Socket, kind: Kind) -> io::Result<Self> {
        // The kernel may grant less, which only reduces throughput.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
        let local = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
        let socket = DatagramSocket::new(socket)?;
        Ok(Self { socket, kind, local, dtls_sessions: None })
    }

    /// Returns the address that it is bound to; the port is 0 for a raw socket.
    pub(crate) fn local(&self) -> SocketAddr {
        match self.kind {
            Kind::Udp(_) | Kind::Dtls(_) => self.local,
            Kind::Raw(_) => SocketAddr::new(self.local.ip(), 0),
        }
    }

    /// Returns the local address of a packet: `known` if the wire is bound to all addresses.
    pub(crate) fn local_for(&self, known: Option<IpAddr>) -> SocketAddr {
        let mut local = self.local();
        if let Some(ip) = known.filter(|_| local.ip().is_unspecified()) {
            local.set_ip(ip);
        }
        local
    }

    /// Returns the address that packets leave from, if the routing would choose `routed`.
    pub(crate) fn source_for(&self, routed: Option<IpAddr>) -> Option<IpAddr> {
        let bound = self.local.ip();
        if bound.is_unspecified() { routed } else { Some(bound) }
    }

    /// Returns whether packets for `remote` are sent here: the family decides, and port 0 means
    /// protocol 132.
    pub(crate) fn can_reach(&self, remote: SocketAddr) -> bool {
        self.local.is_ipv4() == remote.is_ipv4() && self.is_shared() == (remote.port() == 0)
    }

    /// Returns whether there is a DTLS session for each path, which has a definite source.
    pub(crate) fn has_session_paths(&self) -> bool {
        self.sessions().is_some_and(|sessions| sessions.has_paths())
    }

    /// Returns whether there is a way for these packets: with DTLS, a session with their receiver.
    pub(crate) fn can_send(&self, transmit: &Transmit) -> bool {
        match &self.kind {
            Kind::Dtls(carrier) => carrier.can_send(transmit),
            Kind::Udp(_) | Kind::Raw(_) => true,
        }
    }

    /// Returns the certificate of a peer that has a DTLS session.
    pub(crate) fn certificate_of(&self, peer: PeerIdentity) -> Option<CertificateDer<'static>> {
        self.sessions()?.certificate_of(peer)
    }

    /// Returns whether DTLS sessions are opened for each path.
    pub(crate) fn opens_sessions(&self) -> bool {
        self.sessions().is_some_and(|sessions| sessions.opens_paths())
    }

    /// Returns whether packets between these addresses are sent here.
    pub(crate) fn sends_from(&self, local: IpAddr, remote: SocketAddr) -> bool {
        self.can_reach(remote) && self.source_for(Some(local)) == Some(local)
    }

    /// Opens the DTLS session between these addresses if it is missing. Returns whether it is up.
    pub(crate) fn open_session(
        &self,
        local: IpAddr,
        remote: SocketAddr,
        peer: PeerIdentity,
    ) -> bool {
        let path = SessionPath { remote, local: Some(local) };
        self.sessions().is_none_or(|sessions| sessions.open_missing(path, peer))
    }

    /// Replaces DTLS sessions with an address that does not respond.
    pub(crate) fn renew_sessions(&self, remote: SocketAddr) {
        self.sessions().into_iter().for_each(|sessions| sessions.renew(remote));
    }

    /// Closes DTLS sessions with an address that the peer no longer has.
    pub(crate) fn close_sessions(&self, remote: SocketAddr) {
        self.sessions().into_iter().for_each(|sessions| sessions.close_to(remote));
    }

    /// Returns whether other processes of this host receive the same packets.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.kind, Kind::Raw(_))
    }

    /// Sends a train of packets. Packets that are too large for the path count as lost.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the socket is full, or another error if the packets cannot
    /// be sent.
    pub(crate) fn try_send(&self, transmit: &Transmit) -> io::Result<()> {
        let socket = self.socket.get();
        self.socket.send(|| match &self.kind {
            Kind::Udp(carrier) => carrier.send(&socket, transmit),
            Kind::Dtls(carrier) => carrier.send(&socket, transmit),
            Kind::Raw(carrier) => carrier.send(&socket, transmit),
        })
    }

    /// Waits until the socket has something to read or to report.
    pub(crate) async fn readable(&self) -> io::Result<Ready> {
        if let Kind::Dtls(carrier) = &self.kind {
            return tokio::select! {
                () = carrier.shared().arrived.notified() => Ok(Ready::EMPTY),
                ready = self.socket.readable(),
                    if carrier.reads() => ready,
            };
        }
        self.socket.readable().await
    }

    /// Waits until the socket accepts packets again.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.socket.writable().await
    }

    /// Reads what is available for this readiness, at most one batch.
    ///
    /// # Errors
    /// If the error concerns the socket and not a single packet.
    pub(crate) fn receive(
        &self,
        ready: Ready,
        buffers: &mut ReceiveBuffers,
        arrivals: &mut Arrivals,
    ) -> io::Result<()> {
        let socket = self.socket.get();
        if let Kind::Dtls(carrier) = &self.kind {
            carrier.drain_inbox(&socket, arrivals);
        }
        let mut has_reports = ready.is_error();
        if ready.is_readable() {
            let received = self.socket.try_read(|| match &self.kind {
                Kind::Udp(carrier) => carrier.receive(&socket, buffers, arrivals),
                Kind::Dtls(carrier) => carrier.receive(&socket, buffers, arrivals),
                Kind::Raw(carrier) => carrier.receive(&socket, buffers, arrivals),
            });
            match received {
                Err(error) if is_icmp_report(&error) => has_reports = true,
                received => ignore_empty(received)?,
            }
        }
        if has_reports {
            let is_udp = !matches!(self.kind, Kind::Raw(_));
            let take = |report| arrivals.push(icmp::input(report, is_udp));
            self.socket.take_reports(MAX_REPORTS, take)?;
        }
        if let Kind::Dtls(carrier) = &self.kind {
            carrier.handle_reports(arrivals);
        }
        Ok(())
    }

    /// Reads what is available now, at most one batch, without waiting for the runtime's readiness.
    ///
    /// # Errors
    /// If the error concerns the socket and not a single packet.
    pub(crate) fn receive_at_once(
        &self,
        buffers: &mut ReceiveBuffers,
        arrivals: &mut Arrivals,
    ) -> io::Result<()> {
        let socket = self.socket.get();
        let received = match &self.kind {
            Kind::Udp(carrier) => carrier.receive(&socket, buffers, arrivals),
            Kind::Dtls(carrier) => carrier.receive(&socket, buffers, arrivals),
            Kind::Raw(carrier) => carrier.receive(&socket, buffers, arrivals),
        };
        match received {
            // This only consumes the error; its details are read when the runtime reports
            // readiness.
            Err(error) if is_icmp_report(&error) => Ok(()),
            received => ignore_empty(received),
        }
    }

    /// Returns when to call `handle_timeout` at the latest.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        match &self.kind {
            Kind::Dtls(carrier) => carrier.next_timeout(),
            Kind::Udp(_) | Kind::Raw(_) => None,
        }
    }

    /// Handles the passing of time: DTLS sessions may have to retransmit.
    pub(crate) fn handle_timeout(&self, now: Instant) {
        if let Kind::Dtls(carrier) = &self.kind {
            carrier.handle_timeout(&self.socket.get(), now);
        }
    }

    /// Closes the carrier, with a notification if it supports one.
    pub(crate) fn close(&self) {
        if let Kind::Dtls(carrier) = &self.kind {
            carrier.close(&self.socket.get());
        }
    }
}

/// Ignores the error that there is nothing to read.
fn ignore_empty(read: io::Result<()>) -> io::Result<()> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        read => read,
    }
}

/// Reusable memory to receive packets into.
#[derive(Debug)]
pub struct ReceiveBuffers(Vec<Vec<u8>>);

impl Default for ReceiveBuffers {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiveBuffers {
    /// Trains read in one call.
    const TRAINS: usize = 8;
    /// The maximum size of a train in bytes: that of one IP packet.
    const TRAIN: usize = 65_535;

    /// Allocates the memory: half a megabyte.
    pub fn new() -> Self {
        Self(vec![vec![0; Self::TRAIN]; Self::TRAINS])
    }
}
