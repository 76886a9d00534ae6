//! The state of a supervisor, as shown to users.

use std::net::IpAddr;

use eyas_sockets::StackStatus;
use serde::Serialize;

use crate::sockets::{SctpEncapsulation, SctpSettings};

/// A snapshot of a supervisor's state.
#[derive(Clone, Debug, Serialize)]
pub struct SupervisorStatus {
    /// The process ID.
    pub process: u32,
    /// The version of eyas.
    pub version: &'static str,
    /// What it serves: a command, or a path.
    pub serves: String,
    /// `udp` or `ip`.
    pub carrier: &'static str,
    /// Its UDP port, if it has one.
    pub udp_port: Option<u16>,
    /// The UDP port to which the first packet to a peer is sent.
    pub peer_udp_port: Option<u16>,
    /// Whether new data is sent over all paths.
    pub multipath: bool,
    /// The addresses that sockets can currently use.
    pub addresses: Vec<IpAddr>,
    /// How long it has been running, in milliseconds.
    pub up_ms: f64,
    /// The state of its sockets and associations.
    #[serde(flatten)]
    pub stack: StackStatus,
}

impl SupervisorStatus {
    /// Creates the state from the settings.
    pub(crate) fn new(settings: &SctpSettings, stack: StackStatus) -> Self {
        let (carrier, peer_udp_port) = match settings.encapsulation {
            SctpEncapsulation::Udp(port) => ("udp", Some(port)),
            SctpEncapsulation::Ip => ("ip", None),
        };
        Self {
            process: std::process::id(),
            version: env!("CARGO_PKG_VERSION"),
            serves: settings.serves.clone(),
            carrier,
            udp_port: None,
            peer_udp_port,
            multipath: settings.association.multipath.is_some(),
            addresses: Vec::new(),
            up_ms: 0.0,
            stack,
        }
    }
}
