//! The events of an attempt.

use std::time::Duration;

use bytes::Bytes;
use eyas_race::candidate::Transport;
use eyas_race::evidence::{AttemptFailure, EvidenceLevel};

use crate::byte_stream::ByteTransport;
use crate::connection_info::ConnectionInfo;
use crate::kernel_tcp;

/// An event that an attempt reports to its driver.
pub(crate) enum AttemptEvent {
    Progress {
        level: EvidenceLevel,
        rtt: Option<Duration>,
    },
    /// MPTCP fell back to TCP.
    FellBack,
    /// A ClientHello of two packets did not get through where one of one packet did; what became of the long one.
    LongHelloFailed(String),
    Ready(Box<EstablishedTransport>),
    Failed(AttemptFailure),
}

/// The result of a completed attempt.
pub(crate) struct EstablishedTransport {
    pub(crate) transport: ByteTransport,
    pub(crate) info: ConnectionInfo,
    /// Bytes that the peer has already sent.
    pub(crate) read_ahead: Bytes,
}

impl EstablishedTransport {
    /// Checks whether MPTCP fell back to TCP since its transport was established, and describes the
    /// connection accordingly. A device that passes the options of the handshake may remove those
    /// of later packets; the kernel then continues without them (RFC 8684 §3.7).
    pub(crate) fn has_fallen_back(&mut self) -> bool {
        let fell_back = self.info.transport == Transport::Mptcp
            && self.transport.tcp().is_some_and(|stream| !kernel_tcp::is_mptcp(stream));
        if fell_back {
            self.info.transport = Transport::Tcp;
            self.info.fell_back = true;
        }
        fell_back
    }
}
