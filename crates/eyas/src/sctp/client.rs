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
            let due = rtt.saturating_mul(ROUND_TRIPS_TO_RETRANSMISSION);
            options.association.rto_initial = due.clamp(RTO_INITIAL.0, RTO_INITIAL.1);
        }
        let id = hub.0.connect(options)?;
        Ok(SctpAssociation::new(Arc::clone(&hub.0), id))
    }
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
