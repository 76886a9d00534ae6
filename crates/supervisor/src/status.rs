//! What a supervisor shows of itself.

use std::net::IpAddr;

use eyas_sockets::StackStatus;
use serde::Serialize;

use crate::sockets::{Carrier, Settings};

/// A supervisor at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Its process.
    pub process: u32,
    /// Its version.
    pub version: &'static str,
    /// What it serves: a command, or a path.
    pub serves: String,
    /// `udp` or `ip`.
    pub carrier: &'static str,
    /// Its own UDP port, if it has one.
    pub udp_port: Option<u16>,
    /// The UDP port at which peers are spoken to first.
    pub peer_udp_port: Option<u16>,
    /// Whether new data takes all paths.
    pub multipath: bool,
    /// The addresses that sockets may use now.
    pub addresses: Vec<IpAddr>,
    /// How long it has been serving, in milliseconds.
    pub up_ms: f64,
    /// Its sockets and what they carry.
    #[serde(flatten)]
    pub stack: StackStatus,
}

impl Status {
    /// What the settings say of it.
    pub(crate) fn of(settings: &Settings, stack: StackStatus) -> Self {
        let (carrier, peer_udp_port) = match settings.carrier {
            Carrier::Udp(port) => ("udp", Some(port)),
            Carrier::Ip => ("ip", None),
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
