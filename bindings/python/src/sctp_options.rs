//! How SCTP associations behave, and how a message is sent.

use std::{net::IpAddr, time::Duration};

use eyas::{
    EndpointBuilder,
    sctp::protocol::{
        config::{AssociationConfig, CongestionControlKind, Multipath},
        identifier::{PathId, Ppid, StreamId},
        message::{Reliability, SendInfo},
    },
};
use pyo3::prelude::*;

use crate::failure::{duration, of_value};

/// How associations behave, as the attributes of an object of Python; what is none stays as it is.
#[derive(FromPyObject)]
pub(crate) struct Config {
    multipath: bool,
    dynamic_addresses: bool,
    outbound_streams: Option<u16>,
    max_inbound_streams: Option<u16>,
    send_buffer: Option<usize>,
    receive_buffer: Option<usize>,
    /// Seconds; 0 sends none.
    hb_interval: Option<f64>,
    association_max_retrans: Option<u32>,
    path_max_retrans: Option<u32>,
    congestion_control: Option<String>,
}

impl Config {
    pub(crate) fn association(&self) -> PyResult<AssociationConfig> {
        let mut config = AssociationConfig::default();
        config.multipath = self.multipath.then(Multipath::default);
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
                let known = CongestionControlKind::ALL.map(CongestionControlKind::name);
                let known = known.join(", ");
                of_value(format_args!(
                    "no congestion control is called {name:?}; there are {known}"
                ))
            })?;
            config.congestion_control = kind.into();
        }
        Ok(config)
    }
}

fn set<T>(place: &mut T, wanted: Option<T>) {
    if let Some(wanted) = wanted {
        *place = wanted;
    }
}

/// What an endpoint does where it opens associations, as the attributes of an object of Python.
#[derive(FromPyObject)]
pub(crate) struct Opening {
    config: Config,
    /// The addresses of this host to use; all that fit if there are none.
    addresses: Vec<IpAddr>,
}

impl Opening {
    pub(crate) fn apply(&self, builder: EndpointBuilder) -> PyResult<EndpointBuilder> {
        Ok(builder
            .sctp_association(self.config.association()?)
            .sctp_local_addresses(self.addresses.iter().copied()))
    }
}

/// How a message is sent, as the attributes of an object of Python.
#[derive(FromPyObject)]
pub(crate) struct Sending {
    stream: u16,
    ppid: u32,
    unordered: bool,
    sack_immediately: bool,
    /// Seconds, and the other limits that a message can have.
    lifetime: Option<f64>,
    max_retransmissions: Option<u16>,
    priority: Option<u32>,
    path: Option<u16>,
    context: u32,
}

impl Sending {
    pub(crate) fn info(&self) -> PyResult<SendInfo> {
        let reliability = match (self.lifetime, self.max_retransmissions, self.priority) {
            (None, None, None) => Reliability::Reliable,
            (Some(seconds), None, None) => Reliability::Lifetime(duration(seconds)?),
            (None, Some(retransmissions), None) => Reliability::Retransmissions(retransmissions),
            (None, None, Some(priority)) => Reliability::Priority(priority),
            _ => {
                return Err(of_value(
                    "a message has one of lifetime, max_retransmissions and priority",
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
