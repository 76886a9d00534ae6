//! The types of parameters.
//!
//! <https://www.iana.org/assignments/sctp-parameters/sctp-parameters.xhtml#sctp-parameters-2>

use bytes::BytesMut;

use crate::wire::walker::ELEMENT_HEADER;

/// The type of a parameter: its first two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParameterType(pub u16);

impl ParameterType {
    /// Heartbeat information (RFC 9260 §3.3.5).
    pub const HEARTBEAT_INFO: Self = Self(1);
    /// IPv4 address (RFC 9260 §3.3.2.1.1).
    pub const IPV4_ADDRESS: Self = Self(5);
    /// IPv6 address (RFC 9260 §3.3.2.1.2).
    pub const IPV6_ADDRESS: Self = Self(6);
    /// State cookie (RFC 9260 §3.3.3.1.1).
    pub const STATE_COOKIE: Self = Self(7);
    /// Unrecognized parameter (RFC 9260 §3.3.3.1.2).
    pub const UNRECOGNIZED: Self = Self(8);
    /// Cookie preservative (RFC 9260 §3.3.2.1.3).
    pub const COOKIE_PRESERVATIVE: Self = Self(9);
    /// Host name address, which is deprecated (RFC 9260 §3.3.2.1.4).
    pub const HOST_NAME_ADDRESS: Self = Self(11);
    /// Supported address types (RFC 9260 §3.3.2.1.5).
    pub const SUPPORTED_ADDRESS_TYPES: Self = Self(12);
    /// Outgoing SSN reset request (RFC 6525 §4.1).
    pub const OUTGOING_SSN_RESET: Self = Self(13);
    /// Incoming SSN reset request (RFC 6525 §4.2).
    pub const INCOMING_SSN_RESET: Self = Self(14);
    /// SSN/TSN reset request (RFC 6525 §4.3).
    pub const SSN_TSN_RESET: Self = Self(15);
    /// Re-configuration response (RFC 6525 §4.4).
    pub const RECONFIGURATION_RESPONSE: Self = Self(16);
    /// Add outgoing streams request (RFC 6525 §4.5).
    pub const ADD_OUTGOING_STREAMS: Self = Self(17);
    /// Add incoming streams request (RFC 6525 §4.6).
    pub const ADD_INCOMING_STREAMS: Self = Self(18);
    /// ECN capable (RFC 4960 appendix A).
    pub const ECN_CAPABLE: Self = Self(0x8000);
    /// Zero checksum acceptable (RFC 9653 §4).
    pub const ZERO_CHECKSUM_ACCEPTABLE: Self = Self(0x8001);
    /// Random (RFC 4895 §3.1).
    pub const RANDOM: Self = Self(0x8002);
    /// Chunk list (RFC 4895 §3.2).
    pub const CHUNK_LIST: Self = Self(0x8003);
    /// Requested HMAC algorithms (RFC 4895 §3.3).
    pub const REQUESTED_HMACS: Self = Self(0x8004);
    /// Padding (RFC 4820 §4).
    pub const PADDING: Self = Self(0x8005);
    /// Supported extensions (RFC 5061 §4.2.7).
    pub const SUPPORTED_EXTENSIONS: Self = Self(0x8008);
    /// Forward-TSN-supported (RFC 3758 §3.1).
    pub const FORWARD_TSN_SUPPORTED: Self = Self(0xc000);
    /// Add IP address (RFC 5061 §4.2.1).
    pub const ADD_ADDRESS: Self = Self(0xc001);
    /// Delete IP address (RFC 5061 §4.2.2).
    pub const DELETE_ADDRESS: Self = Self(0xc002);
    /// Error cause indication (RFC 5061 §4.2.3).
    pub const ERROR_CAUSE_INDICATION: Self = Self(0xc003);
    /// Set primary IP address (RFC 5061 §4.2.4).
    pub const SET_PRIMARY_ADDRESS: Self = Self(0xc004);
    /// Success indication (RFC 5061 §4.2.5).
    pub const SUCCESS_INDICATION: Self = Self(0xc005);
    /// Adaptation layer indication (RFC 5061 §4.2.6).
    pub const ADAPTATION_LAYER_INDICATION: Self = Self(0xc006);

    /// Appends type and length of a parameter whose value has `value_len` bytes.
    pub(crate) fn put_header(self, value_len: usize, buffer: &mut BytesMut) {
        let [.., high, low] = (ELEMENT_HEADER + value_len).to_be_bytes();
        buffer.extend_from_slice(&self.0.to_be_bytes());
        buffer.extend_from_slice(&[high, low]);
    }
}
