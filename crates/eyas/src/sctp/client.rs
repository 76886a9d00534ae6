//! Opens associations: one UDP socket per address family for all of them, and one raw socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use eyas_race::candidate::Transport;
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use super::SctpAssociation;
use super::carrier::{ENCAPSULATION_PORT, Wire};
use super::dtls::{EndReason, Identity, MAX_OVERHEAD, State, Trust};
use super::hub::Anchor;
use super::own::OwnAssociation;
use super::task::{self, Homes};
use crate::sockets::PORT_TRIES;

/// A first retransmission is due after three round trips, as for other transports (RFC 6298 §2.2).
const ROUND_TRIPS_TO_RETRANSMISSION: u32 = 3;
/// Bounds of the first retransmission timeout where a round trip is remembered; 1 s without.
const RTO_INITIAL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// What an endpoint opens associations with. Sockets are opened when they are first needed.
#[derive(Debug)]
pub(crate) struct Clients {
    udp: OnceCell<Anchor>,
    raw: OnceCell<Anchor>,
    /// The associations that have not ended.
    opened: TaskTracker,
    encapsulation_port: u16,
    association: AssociationConfig,
    /// Where the sockets are bound; at all addresses if it is empty.
    local_addresses: Vec<IpAddr>,
}

/// What is known of a peer before the first packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// The UDP port at which it awaits SCTP, if that is not the one of the endpoint.
    pub(crate) inside_udp_at: Option<u16>,
    /// The round trip that is to be expected.
    pub(crate) rtt: Option<Duration>,
}

impl Default for Clients {
    fn default() -> Self {
        Self::new(ENCAPSULATION_PORT, AssociationConfig::default())
    }
}

impl Clients {
    /// Peers await SCTP inside UDP at this port.
    pub(crate) fn new(encapsulation_port: u16, association: AssociationConfig) -> Self {
        let (udp, raw) = (OnceCell::new(), OnceCell::new());
        let (opened, local_addresses) = (TaskTracker::new(), Vec::new());
        // It is waited for what is counted then, not for a time when no more can come.
        opened.close();
        Self { udp, raw, opened, encapsulation_port, association, local_addresses }
    }

    /// Uses these addresses of this host, and tells peers of no others; all if there are none.
    pub(crate) fn at(mut self, local_addresses: Vec<IpAddr>) -> Self {
        self.local_addresses = local_addresses;
        self
    }

    /// Returns the address to bind a separate socket for `remote` to.
    fn local_for(&self, remote: SocketAddr) -> IpAddr {
        let fits = |address: &&IpAddr| address.is_ipv4() == remote.is_ipv4();
        let own = self.local_addresses.iter().find(fits).copied();
        own.unwrap_or(match remote {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        })
    }

    fn udp_port(&self, known: Known) -> u16 {
        known.inside_udp_at.unwrap_or(self.encapsulation_port)
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
        known: Known,
    ) -> io::Result<SctpAssociation> {
        let (hub, port) = match transport {
            Transport::SctpUdp => {
                let open = || async { hub(udp_wires(&self.local_addresses)?) };
                (self.udp.get_or_try_init(open).await?, self.udp_port(known))
            }
            _ => {
                let open = || async { hub(wires(&self.local_addresses, Wire::raw)?) };
                (self.raw.get_or_try_init(open).await?, 0)
            }
        };
        let mut remote = address;
        remote.set_port(port);
        let mut options = ConnectOptions::new(remote, address.port());
        options.hold_at_init_ack = true;
        options.association = self.association.clone();
        if let Some(rtt) = known.rtt {
            options.association.rto_initial = first_timeout(rtt);
        }
        let id = hub.0.connect(options, self.opened.token())?;
        Ok(SctpAssociation::new(OwnAssociation { hub: Arc::clone(&hub.0), id }))
    }
}

impl Clients {
    /// Opens a session of DTLS and sends an INIT through it (RFC 8261). Each has a UDP socket of
    /// its own: DTLS tells sessions apart by their addresses. The association then waits at its
    /// INIT ACK.
    ///
    /// # Errors
    /// How the handshake failed.
    pub(crate) async fn open_dtls(
        &self,
        address: SocketAddr,
        known: Known,
        own: &Identity,
        trust: Trust,
    ) -> Result<Protected, Unprotected> {
        let mut remote = address;
        remote.set_port(self.udp_port(known));
        let wire = Wire::dtls(SocketAddr::new(self.local_for(remote), 0))?;
        let sessions = wire.sessions().map(Arc::clone);
        let sessions = sessions.ok_or(io::Error::from(io::ErrorKind::Unsupported))?;
        let hub = task::start(EndpointConfig::default(), vec![wire], Homes::One, None)?;
        let rto = known.rtt.map(first_timeout);
        sessions.open(remote, own, trust, rto);
        let version = match sessions.handshake_ended(remote).await {
            State::Up(version) => version,
            State::Handshake => return Err(Unprotected::Session(EndReason::TimedOut)),
            State::Over(ending) => return Err(Unprotected::Session(ending)),
        };
        let mut options = ConnectOptions::new(remote, address.port());
        options.hold_at_init_ack = true;
        options.association = over_dtls(&self.association);
        if let Some(rto) = rto {
            options.association.rto_initial = rto;
        }
        let id = hub.0.connect(options, self.opened.token()).map_err(io::Error::from)?;
        let association = SctpAssociation::new(OwnAssociation { hub: Arc::clone(&hub.0), id });
        Ok(Protected { association, version })
    }
}

/// An association inside DTLS.
#[derive(Debug)]
pub(crate) struct Protected {
    pub(crate) association: SctpAssociation,
    /// `DTLSv1.2` or `DTLSv1.3`.
    pub(crate) version: &'static str,
}

/// Why an association inside DTLS failed.
#[derive(Debug)]
pub(crate) enum Unprotected {
    /// The socket failed.
    Socket(io::Error),
    /// The handshake failed.
    Session(EndReason),
}

impl From<io::Error> for Unprotected {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

/// Returns when a first packet is retransmitted, given a remembered round-trip time.
fn first_timeout(rtt: Duration) -> Duration {
    rtt.saturating_mul(ROUND_TRIPS_TO_RETRANSMISSION).clamp(RTO_INITIAL.0, RTO_INITIAL.1)
}

/// Returns the configuration of an association inside DTLS (RFC 8261 §5, §6): records add to its
/// packets, which need no checksum of their own (RFC 9653). There is one path, whose congestion
/// marks DTLS hides, and which has failed when the peer has.
pub(super) fn over_dtls(config: &AssociationConfig) -> AssociationConfig {
    let mut config = config.clone();
    config.packet_overhead = MAX_OVERHEAD;
    config.path_max_retrans = config.association_max_retrans;
    config.extensions.zero_checksum = true;
    config.extensions.dynamic_addresses = false;
    config.extensions.ecn = false;
    config.max_peer_addresses = 0;
    config
}

/// Opens a UDP socket at each of these addresses, all with the same port number: a peer that learns
/// of further addresses sends to the port that it knows (RFC 6951 §5.1).
fn udp_wires(addresses: &[IpAddr]) -> io::Result<Vec<Wire>> {
    let mut tries = 0;
    loop {
        let mut port = 0;
        let mut is_taken = false;
        let opened = wires(addresses, |address| {
            let wire = Wire::udp(SocketAddr::new(address, port));
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
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(vec![one]),
        (Err(error), Err(_)) => Err(error),
    }
}

fn hub(wires: Vec<Wire>) -> io::Result<Anchor> {
    task::start(EndpointConfig::default(), wires, Homes::Many, None)
}
