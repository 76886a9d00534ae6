//! Opens associations: one UDP socket per address family for all of them, and one raw socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eyas_race::candidate::Transport;
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use eyas_sctp::io::{Ecn, Fragmentation, Marking, Transmit};
use rustls_pki_types::CertificateDer;
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use super::SctpAssociation;
use super::carrier::{DtlsSessions, ENCAPSULATION_PORT, SourceCache, Wire};
use super::dtls::{EndReason, Identity, MAX_OVERHEAD, Opening, SessionPath, State, Trust};
use super::own::OwnAssociation;
use super::shared_endpoint::EndpointHandle;
use super::task::{self, Homing};
use crate::sockets::PORT_TRIES;

/// A first retransmission is due after three round trips, as for other transports (RFC 6298 §2.2).
const ROUND_TRIPS_TO_RETRANSMISSION: u32 = 3;
/// Bounds of the first retransmission timeout if a round-trip time is remembered; it is 1 s
/// otherwise.
const RTO_INITIAL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Opens the associations of an endpoint. Sockets are opened when they are first needed.
#[derive(Debug)]
pub(crate) struct Clients {
    udp: OnceCell<EndpointHandle>,
    raw: OnceCell<EndpointHandle>,
    /// The associations that have not ended.
    opened: TaskTracker,
    encapsulation_port: u16,
    association: AssociationConfig,
    /// The addresses to bind sockets to; all addresses if it is empty.
    local_addresses: Vec<IpAddr>,
}

/// What is known about a peer before the first packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerHints {
    /// The UDP port at which it expects SCTP, if that is not the one of the endpoint.
    pub(crate) encapsulation_port: Option<u16>,
    /// The expected round-trip time.
    pub(crate) rtt: Option<Duration>,
}

impl Default for Clients {
    fn default() -> Self {
        Self::new(ENCAPSULATION_PORT, AssociationConfig::default())
    }
}

impl Clients {
    /// Creates clients for peers that expect SCTP inside UDP at this port.
    pub(crate) fn new(encapsulation_port: u16, association: AssociationConfig) -> Self {
        let (udp, raw) = (OnceCell::new(), OnceCell::new());
        let (opened, local_addresses) = (TaskTracker::new(), Vec::new());
        // `wait` returns when no association is left, although more may be opened later.
        opened.close();
        Self { udp, raw, opened, encapsulation_port, association, local_addresses }
    }

    /// Uses these addresses of this host, and announces no others to peers; all if there are none.
    pub(crate) fn bound_to(mut self, local_addresses: Vec<IpAddr>) -> Self {
        self.local_addresses = local_addresses;
        self
    }

    /// Returns the address to bind a separate socket for `remote` to.
    fn local_for(&self, remote: SocketAddr) -> IpAddr {
        let is_same_family = |address: &&IpAddr| address.is_ipv4() == remote.is_ipv4();
        let configured = self.local_addresses.iter().find(is_same_family).copied();
        configured.unwrap_or(match remote {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        })
    }

    fn udp_port(&self, hints: PeerHints) -> u16 {
        hints.encapsulation_port.unwrap_or(self.encapsulation_port)
    }

    /// Returns the configuration of associations.
    pub(crate) fn association(&self) -> &AssociationConfig {
        &self.association
    }

    /// Waits until no association is left.
    pub(crate) async fn ended(&self) {
        self.opened.wait().await;
    }

    /// Sends an INIT to the SCTP port of this address. The association then waits at its INIT ACK.
    pub(crate) async fn open(
        &self,
        transport: Transport,
        address: SocketAddr,
        hints: PeerHints,
    ) -> io::Result<SctpAssociation> {
        let (endpoint, port) = match transport {
            Transport::SctpUdp => {
                let open = || async { start(udp_wires(&self.local_addresses, Wire::udp)?) };
                (self.udp.get_or_try_init(open).await?, self.udp_port(hints))
            }
            _ => {
                let open = || async { start(wires(&self.local_addresses, Wire::raw)?) };
                (self.raw.get_or_try_init(open).await?, 0)
            }
        };
        let mut remote = address;
        remote.set_port(port);
        let mut options = ConnectOptions::new(remote, address.port());
        options.hold_at_init_ack = true;
        options.association = self.association.clone();
        if let Some(rtt) = hints.rtt {
            options.association.rto_initial = first_timeout(rtt);
        }
        let id = endpoint.0.connect(options, self.opened.token())?;
        Ok(SctpAssociation::new(OwnAssociation { shared: Arc::clone(&endpoint.0), id }))
    }
}

impl Clients {
    /// Opens a DTLS session and sends an INIT through it (RFC 8261). Each session has its own UDP
    /// socket, because DTLS distinguishes sessions by their addresses. The association then waits
    /// at its INIT ACK.
    ///
    /// # Errors
    /// If the handshake fails, or a socket cannot be opened.
    pub(crate) async fn open_dtls(
        &self,
        address: SocketAddr,
        hints: PeerHints,
        identity: &Identity,
        trust: Trust,
    ) -> Result<DtlsAssociation, DtlsError> {
        let mut remote = address;
        remote.set_port(self.udp_port(hints));
        let wire = Wire::dtls(SocketAddr::new(self.local_for(remote), 0))?;
        let sessions = wire.sessions().map(Arc::clone);
        let sessions = sessions.ok_or(io::Error::from(io::ErrorKind::Unsupported))?;
        let endpoint = task::start(EndpointConfig::default(), vec![wire], Homing::Single, None)?;
        let rto = hints.rtt.map(first_timeout);
        sessions.open(remote, identity, trust, rto);
        let session = FirstSession { sessions, path: remote.into(), is_mutual: false };
        self.connect_over(&endpoint, session, (remote, address.port()), rto).await
    }

    /// Opens an association inside DTLS that has several paths: a session for each, in which both
    /// ends show certificates. The sessions of further paths are opened when something is first
    /// sent there. The association then waits at its INIT ACK.
    ///
    /// # Errors
    /// If the first handshake fails, or a socket cannot be opened.
    pub(crate) async fn open_dtls_paths(
        &self,
        address: SocketAddr,
        hints: PeerHints,
        identity: Identity,
        trust: Trust,
    ) -> Result<DtlsAssociation, DtlsError> {
        let mut remote = address;
        remote.set_port(self.udp_port(hints));
        let rto = hints.rtt.map(first_timeout);
        let opening = Opening { identity, trust, initial_rto: rto };
        let wires =
            udp_wires(&self.local_addresses, |local| Wire::dtls_paths(local, opening.clone()))?;
        let endpoint = start(wires)?;
        let session = FirstSession::open(&endpoint.0.wires, remote)?;
        self.connect_over(&endpoint, session, (remote, address.port()), rto).await
    }

    /// Sends an INIT once the session is up.
    async fn connect_over(
        &self,
        endpoint: &EndpointHandle,
        session: FirstSession,
        (remote, remote_port): (SocketAddr, u16),
        rto: Option<Duration>,
    ) -> Result<DtlsAssociation, DtlsError> {
        let version = match session.sessions.handshake_ended(session.path).await {
            State::Up(version) => version,
            State::Handshake => return Err(DtlsError::Session(EndReason::TimedOut)),
            State::Over(ending) => return Err(DtlsError::Session(ending)),
        };
        let mut options = ConnectOptions::new(remote, remote_port);
        options.hold_at_init_ack = true;
        options.association = match session.is_mutual {
            false => over_dtls(&self.association),
            true => over_dtls_paths(&self.association),
        };
        if let Some(rto) = rto {
            options.association.rto_initial = rto;
        }
        let id = endpoint.0.connect(options, self.opened.token()).map_err(io::Error::from)?;
        let association =
            SctpAssociation::new(OwnAssociation { shared: Arc::clone(&endpoint.0), id });
        Ok(DtlsAssociation { association, version, session })
    }
}

/// The session that the INIT of an association is sent in.
#[derive(Debug)]
pub(crate) struct FirstSession {
    sessions: Arc<DtlsSessions>,
    path: SessionPath,
    is_mutual: bool,
}

impl FirstSession {
    /// Opens a session from the address that the routing chooses.
    fn open(wires: &[Wire], remote: SocketAddr) -> io::Result<Self> {
        let mut sources = SourceCache::default();
        let transmit = Transmit {
            local: None,
            remote,
            ecn: Ecn::NotCapable,
            marking: Marking::default(),
            fragmentation: Fragmentation::Avoided,
            contents: Bytes::new(),
            segment_size: 1,
            peer: None,
        };
        let wire = sources.choose(wires, &transmit).and_then(|index| wires.get(index));
        let wire = wire.ok_or(io::ErrorKind::NetworkUnreachable)?;
        let sessions = wire.sessions().ok_or(io::ErrorKind::Unsupported)?;
        let local = wire.source_for(sources.source(remote));
        let path = SessionPath { remote, local };
        sessions.open_first(path);
        Ok(Self { sessions: Arc::clone(sessions), path, is_mutual: true })
    }

    /// Returns the certificate of the server.
    pub(crate) fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.sessions.certificate_on(self.path)
    }

    /// Waits until the session is over. A server that refuses the certificate of a client ends it,
    /// when the client has already completed the handshake. Sessions without certificates on both
    /// sides are not watched.
    pub(crate) async fn ended(&self) {
        if !self.is_mutual {
            return std::future::pending().await;
        }
        self.sessions.session_ended(self.path).await;
    }
}

/// An association inside DTLS.
#[derive(Debug)]
pub(crate) struct DtlsAssociation {
    pub(crate) association: SctpAssociation,
    /// `DTLSv1.2` or `DTLSv1.3`.
    pub(crate) version: &'static str,
    pub(crate) session: FirstSession,
}

/// Why an association inside DTLS failed.
#[derive(Debug)]
pub(crate) enum DtlsError {
    /// The socket failed.
    Socket(io::Error),
    /// The handshake failed.
    Session(EndReason),
}

impl From<io::Error> for DtlsError {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

/// Returns when a first packet is retransmitted, given a remembered round-trip time.
fn first_timeout(rtt: Duration) -> Duration {
    rtt.saturating_mul(ROUND_TRIPS_TO_RETRANSMISSION).clamp(RTO_INITIAL.0, RTO_INITIAL.1)
}

/// Returns the configuration of an association inside DTLS (RFC 8261 §5, §6): records add to its
/// packets, which need no checksum of their own (RFC 9653). There is one path: its ECN marks are
/// hidden by DTLS, and it fails when the association does.
pub(super) fn over_dtls(config: &AssociationConfig) -> AssociationConfig {
    let mut config = over_dtls_paths(config);
    config.path_max_retrans = config.association_max_retrans;
    config.extensions.dynamic_addresses = false;
    config.max_peer_addresses = 0;
    config
}

/// Returns the configuration of an association inside DTLS with a session for each path: as without
/// DTLS, except for the size of its packets, which need no checksum of their own, and for the marks
/// of ECN, which DTLS hides.
pub(super) fn over_dtls_paths(config: &AssociationConfig) -> AssociationConfig {
    let mut config = config.clone();
    config.packet_overhead = MAX_OVERHEAD;
    config.extensions.zero_checksum = true;
    config.extensions.ecn = false;
    config
}

/// Opens a UDP socket at each of these addresses, all with the same port number: a peer that learns
/// of further addresses sends to the port that it knows (RFC 6951 §5.1).
fn udp_wires(
    addresses: &[IpAddr],
    open: impl Fn(SocketAddr) -> io::Result<Wire>,
) -> io::Result<Vec<Wire>> {
    let mut tries = 0;
    loop {
        let mut port = 0;
        let mut is_taken = false;
        let opened = wires(addresses, |address| {
            let wire = open(SocketAddr::new(address, port));
            match &wire {
                Ok(wire) => port = wire.local().port(),
                Err(error) => is_taken |= error.kind() == io::ErrorKind::AddrInUse,
            }
            wire
        });
        tries += 1;
        if !is_taken || tries == PORT_TRIES {
            return opened;
        }
    }
}

/// Opens a wire at each of these addresses; if there are none, one of each family that this machine
/// has.
fn wires(
    addresses: &[IpAddr],
    mut wire: impl FnMut(IpAddr) -> io::Result<Wire>,
) -> io::Result<Vec<Wire>> {
    if !addresses.is_empty() {
        return addresses.iter().map(|address| wire(*address)).collect();
    }
    let v4 = wire(Ipv4Addr::UNSPECIFIED.into());
    let v6 = wire(Ipv6Addr::UNSPECIFIED.into());
    match (v4, v6) {
        (Ok(v4), Ok(v6)) => Ok(vec![v4, v6]),
        (Ok(wire), Err(_)) | (Err(_), Ok(wire)) => Ok(vec![wire]),
        (Err(error), Err(_)) => Err(error),
    }
}

fn start(wires: Vec<Wire>) -> io::Result<EndpointHandle> {
    task::start(EndpointConfig::default(), wires, Homing::Multi, None)
}
