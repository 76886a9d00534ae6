//! The events of an attempt.

use std::time::Duration;

use bytes::Bytes;
use eyas_race::evidence::{Failure, Level};

use crate::byte_stream::ByteTransport;
use crate::connection_info::ConnectionInfo;

/// An event that an attempt reports to its driver.
pub(crate) enum Event {
    Progress {
        level: Level,
        rtt: Option<Duration>,
    },
    /// MPTCP fell back to TCP.
    FellBack,
    Ready(Box<Established>),
    Failed(Failure),
}

/// The result of a completed attempt.
pub(crate) struct Established {
    pub(crate) transport: ByteTransport,
    pub(crate) info: ConnectionInfo,
    /// Bytes that the peer has already sent.
    pub(crate) read_ahead: Bytes,
}
