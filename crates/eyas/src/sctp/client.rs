//! Opening associations: one UDP socket per address family for all of them, and one raw one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use eyas_race::candidate::Transport;
use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use tokio::sync::OnceCell;

use super::SctpAssociation;
use super::carrier::{ENCAPSULATION_PORT, Wire};
use super::dtls::{Ending, Identity, MAX_OVERHEAD, State, Trust};
use super::hub::{Anchor, Hub};

/// A first retransmission is due after three round trips, as for other transports (RFC 6298 §2.2).
const ROUND_TRIPS_TO_RETRANSMISSION: u32 = 3;
/// Bounds of the first retransmission timeout where a round trip is remembered; 1 s without.
const RTO_INITIAL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// What an endpoint opens associations with. Sockets are opened when they are first needed.
#[derive(Debug)]
pub(crate) struct Clients {
    udp: OnceCell<Anchor>,
    raw: OnceCell<Anchor>,
    encapsulation_port: u16,
    association: AssociationConfig,
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
        Self { udp, raw, encapsulation_port, association }
    }

    /// Sends an INIT to the SCTP port of this address. The association then waits at its INIT ACK.
    pub(crate) async fn open(
        &self,
        transport: Transport,
        address: SocketAddr,
        initial_rtt: Option<Duration>,
    ) -> io::Result<SctpAssociation> {
        let (hub, port) = match transport {
            Transport::SctpUdp => {
                (self.udp.get_or_try_init(|| open(udp)).await?, self.encapsulation_port)
            }
            _ => (self.raw.get_or_try_init(|| open(Wire::raw)).await?, 0),
        };
        let mut remote = address;
        remote.set_port(port);
        let mut options = ConnectOptions::new(remote, address.port());
        options.hold_at_init_ack = true;
        options.association = self.association.clone();
        if let Some(rtt) = initial_rtt {
            options.association.rto_initial = first_timeout(rtt);
        }
        let id = hub.0.connect(options)?;
        Ok(SctpAssociation::new(Arc::clone(&hub.0), id))
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
        initial_rtt: Option<Duration>,
        own: &Identity,
        trust: Trust,
    ) -> Result<Protected, Unprotected> {
        let mut remote = address;
        remote.set_port(self.encapsulation_port);
        let any: IpAddr = match remote {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let wire = Wire::dtls(SocketAddr::new(any, 0))?;
        let sessions = wire.sessions().map(Arc::clone);
        let sessions = sessions.ok_or(io::Error::from(io::ErrorKind::Unsupported))?;
        let hub = Hub::start(EndpointConfig::default(), vec![wire])?;
        let rto = initial_rtt.map(first_timeout);
        sessions.open(remote, own, trust, rto);
        let version = match sessions.handshaken(remote).await {
            State::Up(version) => version,
            State::Handshake => return Err(Unprotected::Session(Ending::Silent)),
            State::Over(ending) => return Err(Unprotected::Session(ending)),
        };
        let mut options = ConnectOptions::new(remote, address.port());
        options.hold_at_init_ack = true;
        options.association = over_dtls(&self.association);
        if let Some(rto) = rto {
            options.association.rto_initial = rto;
        }
        let id = hub.0.connect(options).map_err(io::Error::from)?;
        let association = SctpAssociation::new(Arc::clone(&hub.0), id);
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

/// Why there is no association inside DTLS.
#[derive(Debug)]
pub(crate) enum Unprotected {
    /// The socket failed.
    Socket(io::Error),
    /// The handshake failed.
    Session(Ending),
}

impl From<io::Error> for Unprotected {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

/// When a first packet is sent again, given a remembered round trip.
fn first_timeout(rtt: Duration) -> Duration {
    rtt.saturating_mul(ROUND_TRIPS_TO_RETRANSMISSION).clamp(RTO_INITIAL.0, RTO_INITIAL.1)
}

/// How an association behaves inside DTLS (RFC 8261 §6): records add to its packets, which are of
/// one size for there is one path, and need no checksum of their own (RFC 9653).
pub(super) fn over_dtls(config: &AssociationConfig) -> AssociationConfig {
    let mut config = config.clone();
    config.mtu = config.mtu.saturating_sub(MAX_OVERHEAD);
    config.path_mtu_discovery = false;
    config.extensions.zero_checksum = true;
    config.extensions.dynamic_addresses = false;
    config
}

fn udp(address: IpAddr) -> io::Result<Wire> {
    Wire::udp(SocketAddr::new(address, 0))
}

/// A hub with a wire of each family that this machine has.
async fn open(wire: impl Fn(IpAddr) -> io::Result<Wire>) -> io::Result<Anchor> {
    let v4 = wire(Ipv4Addr::UNSPECIFIED.into());
    let v6 = wire(Ipv6Addr::UNSPECIFIED.into());
    let wires = match (v4, v6) {
        (Ok(v4), Ok(v6)) => vec![v4, v6],
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => vec![one],
        (Err(error), Err(_)) => return Err(error),
    };
    Hub::start(EndpointConfig::default(), wires)
}
