//! Configuration of SCTP associations, and options for sending messages.

use std::{net::IpAddr, time::Duration};

use eyas::EndpointBuilder;
use eyas_sctp_tokio::protocol::{
    config::{AssociationConfig, CongestionControlKind, MultipathConfig},
    identifier::{PathId, Ppid, StreamId},
    message::{MessageReliability, SendInfo},
};
use pyo3::prelude::*;

use crate::error::{duration, value_error};

/// The configuration of associations, as the attributes of a Python object. `None` means the default.
#[derive(FromPyObject)]
pub(crate) struct Config {
    multipath: bool,
    dynamic_addresses: bool,
    outbound_streams: Option<u16>,
    max_inbound_streams: Option<u16>,
    send_buffer: Option<usize>,
    receive_buffer: Option<usize>,
    /// Seconds; 0 disables heartbeats.
    hb_interval: Option<f64>,
    association_max_retrans: Option<u32>,
    path_max_retrans: Option<u32>,
    congestion_control: Option<String>,
}

impl Config {
    pub(crate) fn association(&self) -> PyResult<AssociationConfig> {
        let mut config = AssociationConfig::default();
        config.multipath = self.multipath.then(MultipathConfig::default);
        config.extensions.dynamic_addresses = self.dynamic_addresses;
        set(&mut config.outbound_streams, self.outbound_streams);
        set(&mut config.max_inbound_streams, self.max_inbound_streams);
        set(&mut config.send_buffer, self.send_buffer);
        set(&mut config.receive_buffer, self.receive_buffer);
        set(&mut config.association_max_retrans, self.association_max_retrans);
        set(&mut config.path_max_retrans, self.path_max_retrans);
        if let Some(seconds) = self.hb_interval {
            config.hb_interval = Some(duration(seconds)?).filter(|one| *one > Duration::ZERO);
        }
        if let Some(name) = &self.congestion_control {
            let kind = CongestionControlKind::from_name(name).ok_or_else(|| {
                let names = CongestionControlKind::ALL.map(CongestionControlKind::name);
                let names = names.join(", ");
                value_error(format_args!(
                    "unknown congestion control {name:?}; choose from {names}"
                ))
            })?;
            config.congestion_control = kind.into();
        }
        Ok(config)
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// The SCTP options of an endpoint, as the attributes of a Python object.
#[derive(FromPyObject)]
pub(crate) struct SctpOptions {
    config: Config,
    /// The local addresses to use; all suitable ones if the list is empty.
    addresses: Vec<IpAddr>,
}

impl SctpOptions {
    pub(crate) fn apply(&self, builder: EndpointBuilder) -> PyResult<EndpointBuilder> {
        Ok(builder
            .sctp_association(self.config.association()?)
            .sctp_local_addresses(self.addresses.iter().copied()))
    }
}

/// The options of a message, as the attributes of a Python object.
#[derive(FromPyObject)]
pub(crate) struct SendParameters {
    stream: u16,
    ppid: u32,
    unordered: bool,
    sack_immediately: bool,
    /// The limits of a message, of which at most one may be set; `lifetime` is in seconds.
    lifetime: Option<f64>,
    max_retransmissions: Option<u16>,
    priority: Option<u32>,
    path: Option<u16>,
    context: u32,
}

impl SendParameters {
    pub(crate) fn info(&self) -> PyResult<SendInfo> {
        let reliability = match (self.lifetime, self.max_retransmissions, self.priority) {
            (None, None, None) => MessageReliability::Reliable,
            (Some(seconds), None, None) => MessageReliability::Lifetime(duration(seconds)?),
            (None, Some(retransmissions), None) => {
                MessageReliability::Retransmissions(retransmissions)
            }
            (None, None, Some(priority)) => MessageReliability::Priority(priority),
            _ => {
                return Err(value_error(
                    "only one of lifetime, max_retransmissions and priority can be given",
                ));
            }
        };
        Ok(SendInfo {
            stream: StreamId(self.stream),
            ppid: Ppid(self.ppid),
            unordered: self.unordered,
            sack_immediately: self.sack_immediately,
            reliability,
            path: self.path.map(PathId),
            context: self.context,
        })
    }
}
