//! Opens associations: one UDP socket per address family for all of them, and one raw socket.

mod dtls;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use eyas_sctp::config::{AssociationConfig, ConnectOptions, EndpointConfig};
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use crate::carrier::{DirectAccess, DirectAccessError, ENCAPSULATION_PORT, Wire, direct_access};
use crate::dtls::DtlsEndReason;
use crate::own::OwnAssociation;
use crate::shared_endpoint::EndpointHandle;
use crate::task::{self, Homing};
use crate::{SctpAssociation, SctpError, kernel};
pub use dtls::PendingDtlsAssociation;
pub(crate) use dtls::{over_dtls, over_dtls_paths};

/// How often another free port is tried if the one chosen for one socket is taken for another.
pub(crate) const PORT_TRIES: usize = 32;
/// A first retransmission is due after three round trips, as for other transports (RFC 6298 §2.2).
const ROUND_TRIPS_TO_RETRANSMISSION: u32 = 3;
/// Bounds of the first retransmission timeout if a round-trip time is remembered; it is 1 s
/// otherwise.
const RTO_INITIAL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Opens associations with any number of peers. Sockets are opened when they are first needed.
///
/// Dropped, it leaves its associations open.
#[derive(Debug)]
pub struct SctpConnector {
    udp: OnceCell<EndpointHandle>,
    raw: OnceCell<EndpointHandle>,
    /// The associations that have not ended.
    opened: TaskTracker,
    encapsulation_port: u16,
    association: AssociationConfig,
    /// The addresses to bind sockets to; all addresses if it is empty.
    local_addresses: Vec<IpAddr>,
}

/// What carries the packets of an association that is not inside DTLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SctpCarrier {
    /// UDP (RFC 6951).
    Udp,
    /// IP, as protocol 132: through the kernel if it has SCTP, and otherwise a raw socket, which
    /// requires privileges.
    Ip,
}

/// A peer, and what is known about it before the first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpPeer {
    /// One of its addresses, with its SCTP port; the handshake announces the others.
    pub address: SocketAddr,
    /// The UDP port at which it expects SCTP, if that is not the one of the connector.
    pub encapsulation_port: Option<u16>,
    /// The expected round-trip time, for the first retransmission.
    pub rtt: Option<Duration>,
}

impl From<SocketAddr> for SctpPeer {
    fn from(address: SocketAddr) -> Self {
        Self { address, encapsulation_port: None, rtt: None }
    }
}

/// Why an association could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SctpConnectError {
    /// A socket could not be opened.
    #[error("a socket for SCTP cannot be opened: {0}")]
    Socket(#[from] io::Error),
    /// This host or this user cannot use SCTP directly over IP.
    #[error(transparent)]
    Unsupported(DirectAccessError),
    /// The kernel's SCTP failed.
    #[error("the SCTP of the kernel failed: {0}")]
    Kernel(#[source] io::Error),
    /// The DTLS session ended.
    #[error(transparent)]
    Dtls(#[from] DtlsEndReason),
    /// The association was not established.
    #[error(transparent)]
    Association(#[from] SctpError),
}

impl Default for SctpConnector {
    fn default() -> Self {
        Self::new(ENCAPSULATION_PORT, AssociationConfig::default())
    }
}

impl SctpConnector {
    /// Creates a connector for peers that expect SCTP inside UDP at this port, usually
    /// [`ENCAPSULATION_PORT`].
    pub fn new(encapsulation_port: u16, association: AssociationConfig) -> Self {
        let (udp, raw) = (OnceCell::new(), OnceCell::new());
        let (opened, local_addresses) = (TaskTracker::new(), Vec::new());
        // `wait` returns when no association is left, although more may be opened later.
        opened.close();
        Self { udp, raw, opened, encapsulation_port, association, local_addresses }
    }

    /// Uses these addresses of this host, and announces no others to peers; all if there are none.
    #[must_use]
    pub fn with_local_addresses(mut self, local_addresses: Vec<IpAddr>) -> Self {
        self.local_addresses = local_addresses;
        self
    }

    /// Returns the configuration of associations.
    pub fn association(&self) -> &AssociationConfig {
        &self.association
    }

    /// Waits until no association is left: of those that were dropped, too, all data has arrived.
    /// Associations of the kernel are not counted. Cancel-safe.
    pub async fn ended(&self) {
        self.opened.wait().await;
    }

    /// Opens an association. Must be called within a tokio runtime. Dropping the future leaves
    /// nothing behind.
    ///
    /// # Errors
    /// If a socket cannot be opened, or the peer does not accept the association.
    pub async fn connect(
        &self,
        carrier: SctpCarrier,
        peer: impl Into<SctpPeer>,
    ) -> Result<SctpAssociation, SctpConnectError> {
        Ok(self.open(carrier, peer).await?.established().await?)
    }

    /// Sends an INIT. The association then waits at its INIT ACK until it is
    /// [established](PendingAssociation::established): up to there the peer holds no state for it (RFC
    /// 9260 §5.1), so a client can open several and drop all but one. The kernel's SCTP cannot wait
    /// there: with it, the association is established when this returns.
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If a socket cannot be opened, or the kernel's SCTP fails.
    pub async fn open(
        &self,
        carrier: SctpCarrier,
        peer: impl Into<SctpPeer>,
    ) -> Result<PendingAssociation, SctpConnectError> {
        let peer = peer.into();
        let (endpoint, port) = match carrier {
            SctpCarrier::Udp => {
                let open = || async { start(udp_wires(&self.local_addresses, Wire::udp)?) };
                (self.udp.get_or_try_init(open).await?, self.udp_port(&peer))
            }
            SctpCarrier::Ip => {
                let access = direct_access().map_err(SctpConnectError::Unsupported)?;
                if access == DirectAccess::Kernel {
                    let opened = kernel::connect(peer.address, &self.association).await;
                    return opened.map(PendingAssociation).map_err(SctpConnectError::Kernel);
                }
                let open = || async { start(wires(&self.local_addresses, Wire::raw)?) };
                (self.raw.get_or_try_init(open).await?, 0)
            }
        };
        let mut options = init_options(&peer, port);
        options.association = self.association.clone();
        if let Some(rtt) = peer.rtt {
            options.association.rto_initial = first_timeout(rtt);
        }
        Ok(self.init(endpoint, options)?)
    }

    /// Sends an INIT through the sockets of this endpoint.
    fn init(
        &self,
        endpoint: &EndpointHandle,
        options: ConnectOptions,
    ) -> io::Result<PendingAssociation> {
        let id = endpoint.0.connect(options, self.opened.token())?;
        let association = OwnAssociation { shared: Arc::clone(&endpoint.0), id };
        Ok(PendingAssociation(SctpAssociation::new(association)))
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

    fn udp_port(&self, peer: &SctpPeer) -> u16 {
        peer.encapsulation_port.unwrap_or(self.encapsulation_port)
    }
}

/// An association whose INIT was sent, and which waits at its INIT ACK: its peer keeps no state for it
/// yet (RFC 9260 §5.1). Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct PendingAssociation(SctpAssociation);

impl PendingAssociation {
    /// Waits until the peer has answered with an INIT ACK. Cancel-safe.
    ///
    /// # Errors
    /// If the peer refuses the association or does not answer.
    pub async fn answered(&self) -> Result<(), SctpError> {
        self.0.answered().await
    }

    /// Returns whether it is established already, as those of the kernel are from the start.
    pub fn is_established(&self) -> bool {
        self.0.is_established()
    }

    /// Continues with the COOKIE ECHO once the peer has answered, and waits until the association is
    /// established.
    ///
    /// # Errors
    /// If the association is lost before that.
    pub async fn established(&self) -> Result<SctpAssociation, SctpError> {
        self.0.answered().await?;
        self.0.established().await?;
        Ok(self.0.clone())
    }
}

/// Returns the options of an association with this peer, which waits at its INIT ACK. `port` is the
/// peer's UDP port, or 0 without encapsulation.
fn init_options(peer: &SctpPeer, port: u16) -> ConnectOptions {
    let mut remote = peer.address;
    remote.set_port(port);
    let mut options = ConnectOptions::new(remote, peer.address.port());
    options.hold_at_init_ack = true;
    options
}

/// Returns when a first packet is retransmitted, given a remembered round-trip time.
fn first_timeout(rtt: Duration) -> Duration {
    rtt.saturating_mul(ROUND_TRIPS_TO_RETRANSMISSION).clamp(RTO_INITIAL.0, RTO_INITIAL.1)
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
