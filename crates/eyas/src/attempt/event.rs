//! The events of an attempt.

use std::time::Duration;

use bytes::Bytes;
use eyas_race::evidence::{Failure, Level};

use crate::byte_stream::ByteTransport;
use crate::connection_info::ConnectionInfo;

/// What an attempt tells its driver.
pub(crate) enum Event {
    Progress { level: Level, rtt: Option<Duration> },
    Ready(Box<Established>),
    Failed(Failure),
}

/// An attempt that is complete.
pub(crate) struct Established {
    pub(crate) transport: ByteTransport,
    pub(crate) info: ConnectionInfo,
    /// What the peer has said already.
    pub(crate) said: Bytes,
}
