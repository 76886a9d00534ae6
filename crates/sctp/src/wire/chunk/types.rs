//! The types of chunks.
//!
//! <https://www.iana.org/assignments/sctp-parameters/sctp-parameters.xhtml#sctp-parameters-1>

/// The type of a chunk: its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkType(pub u8);

impl ChunkType {
    /// Payload data (RFC 9260 §3.3.1).
    pub const DATA: Self = Self(0);
    /// Initiation (RFC 9260 §3.3.2).
    pub const INIT: Self = Self(1);
    /// Initiation acknowledgement (RFC 9260 §3.3.3).
    pub const INIT_ACK: Self = Self(2);
    /// Selective acknowledgement (RFC 9260 §3.3.4).
    pub const SACK: Self = Self(3);
    /// Heartbeat request (RFC 9260 §3.3.5).
    pub const HEARTBEAT: Self = Self(4);
    /// Heartbeat acknowledgement (RFC 9260 §3.3.6).
    pub const HEARTBEAT_ACK: Self = Self(5);
    /// Abort (RFC 9260 §3.3.7).
    pub const ABORT: Self = Self(6);
    /// Shutdown (RFC 9260 §3.3.8).
    pub const SHUTDOWN: Self = Self(7);
    /// Shutdown acknowledgement (RFC 9260 §3.3.9).
    pub const SHUTDOWN_ACK: Self = Self(8);
    /// Operation error (RFC 9260 §3.3.10).
    pub const ERROR: Self = Self(9);
    /// State cookie (RFC 9260 §3.3.11).
    pub const COOKIE_ECHO: Self = Self(10);
    /// Cookie acknowledgement (RFC 9260 §3.3.12).
    pub const COOKIE_ACK: Self = Self(11);
    /// Explicit congestion notification echo (RFC 4960 appendix A).
    pub const ECNE: Self = Self(12);
    /// Congestion window reduced (RFC 4960 appendix A).
    pub const CWR: Self = Self(13);
    /// Shutdown complete (RFC 9260 §3.3.13).
    pub const SHUTDOWN_COMPLETE: Self = Self(14);
    /// Authentication (RFC 4895 §4.1).
    pub const AUTH: Self = Self(15);
    /// Non-renegable selective acknowledgement (draft-tuexen-tsvwg-sctp-multipath §3.1).
    pub const NR_SACK: Self = Self(16);
    /// Payload data of messages that can be interleaved (RFC 8260 §2.1).
    pub const I_DATA: Self = Self(64);
    /// Address configuration acknowledgement (RFC 5061 §4.1.2).
    pub const ASCONF_ACK: Self = Self(128);
    /// Stream re-configuration (RFC 6525 §3.1).
    pub const RE_CONFIG: Self = Self(130);
    /// Padding (RFC 4820 §3).
    pub const PAD: Self = Self(132);
    /// Forward cumulative TSN (RFC 3758 §3.2).
    pub const FORWARD_TSN: Self = Self(192);
    /// Address configuration change (RFC 5061 §4.1.1).
    pub const ASCONF: Self = Self(193);
    /// Forward cumulative TSN where messages can be interleaved (RFC 8260 §2.3.1).
    pub const I_FORWARD_TSN: Self = Self(194);
}
