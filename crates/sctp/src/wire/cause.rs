//! Error causes of ABORT and ERROR chunks and of ASCONF responses.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.10>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |          Cause Code           |         Cause Length          |
//! +-------------------------------+-------------------------------+
//! \                  Cause-Specific Information                   \
//! +---------------------------------------------------------------+
//! ```

use bytes::{Bytes, BytesMut};

use super::list::element_list;
use super::records::{WireRecord, WireRecords};
use super::walker::{ELEMENT_HEADER, PacketView};
use super::{ParameterType, Parameters};
use crate::identifier::StreamId;
use crate::serial::Tsn;

#[cfg(test)]
mod tests;

/// The code of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CauseCode(pub u16);

impl CauseCode {
    /// Invalid stream identifier (RFC 9260 §3.3.10.1).
    pub const INVALID_STREAM: Self = Self(1);
    /// Missing mandatory parameter (RFC 9260 §3.3.10.2).
    pub const MISSING_MANDATORY_PARAMETER: Self = Self(2);
    /// Stale cookie (RFC 9260 §3.3.10.3).
    pub const STALE_COOKIE: Self = Self(3);
    /// Out of resource (RFC 9260 §3.3.10.4).
    pub const OUT_OF_RESOURCE: Self = Self(4);
    /// Unresolvable address (RFC 9260 §3.3.10.5).
    pub const UNRESOLVABLE_ADDRESS: Self = Self(5);
    /// Unrecognized chunk type (RFC 9260 §3.3.10.6).
    pub const UNRECOGNIZED_CHUNK_TYPE: Self = Self(6);
    /// Invalid mandatory parameter (RFC 9260 §3.3.10.7).
    pub const INVALID_MANDATORY_PARAMETER: Self = Self(7);
    /// Unrecognized parameters (RFC 9260 §3.3.10.8).
    pub const UNRECOGNIZED_PARAMETERS: Self = Self(8);
    /// No user data (RFC 9260 §3.3.10.9).
    pub const NO_USER_DATA: Self = Self(9);
    /// Cookie received while shutting down (RFC 9260 §3.3.10.10).
    pub const COOKIE_WHILE_SHUTTING_DOWN: Self = Self(10);
    /// Restart of an association with new addresses (RFC 9260 §3.3.10.11).
    pub const RESTART_WITH_NEW_ADDRESSES: Self = Self(11);
    /// User-initiated abort (RFC 9260 §3.3.10.12).
    pub const USER_INITIATED_ABORT: Self = Self(12);
    /// Protocol violation (RFC 9260 §3.3.10.13).
    pub const PROTOCOL_VIOLATION: Self = Self(13);
    /// Request to delete the last remaining address (RFC 5061 §4.3.2).
    pub const DELETE_LAST_ADDRESS: Self = Self(0x00a0);
    /// Operation refused due to resource shortage (RFC 5061 §4.3.3).
    pub const RESOURCE_SHORTAGE: Self = Self(0x00a1);
    /// Request to delete the source address (RFC 5061 §4.3.4).
    pub const DELETE_SOURCE_ADDRESS: Self = Self(0x00a2);
    /// Association aborted due to an illegal ASCONF-ACK (RFC 5061 §4.3.5).
    pub const ILLEGAL_ASCONF_ACK: Self = Self(0x00a3);
    /// Request refused for want of authorization (RFC 5061 §4.3.6).
    pub const NO_AUTHORIZATION: Self = Self(0x00a4);
    /// Unsupported HMAC identifier (RFC 4895 §4.1).
    pub const UNSUPPORTED_HMAC: Self = Self(0x0105);
}

/// One error cause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCause {
    /// Data arrived on a stream that does not exist.
    InvalidStream {
        /// Which.
        stream: StreamId,
    },
    /// A chunk lacks parameters that it must have.
    MissingMandatoryParameter {
        /// Their types, two bytes each; see [`ErrorCause::missing`].
        types: Bytes,
    },
    /// A cookie arrived too late.
    StaleCookie {
        /// By how much, in microseconds.
        staleness: u32,
    },
    /// There is no memory, or there are too many associations.
    OutOfResource,
    /// An address cannot be used.
    UnresolvableAddress {
        /// The parameter that contains it, with type and length.
        parameter: Bytes,
    },
    /// A chunk type is unknown.
    UnrecognizedChunkType {
        /// The chunk with its header.
        chunk: Bytes,
    },
    /// A mandatory parameter is invalid.
    InvalidMandatoryParameter,
    /// Parameters are unknown.
    UnrecognizedParameters(Parameters),
    /// A DATA chunk is empty.
    NoUserData {
        /// Which.
        tsn: Tsn,
    },
    /// The association is ending.
    CookieWhileShuttingDown,
    /// A restart listed new addresses.
    RestartWithNewAddresses(Parameters),
    /// The user aborted the association.
    UserInitiatedAbort {
        /// The user's reason.
        reason: Bytes,
    },
    /// The protocol was violated.
    ProtocolViolation {
        /// More about it.
        information: Bytes,
    },
    /// The last address cannot be deleted.
    DeleteLastAddress {
        /// The request, with type and length.
        request: Bytes,
    },
    /// There is no room for another address.
    ResourceShortage {
        /// The request, with type and length.
        request: Bytes,
    },
    /// The source address of a request cannot be deleted.
    DeleteSourceAddress {
        /// The request, with type and length.
        request: Bytes,
    },
    /// An ASCONF-ACK acknowledges a request that was never sent.
    IllegalAsconfAck,
    /// The request is not authorized.
    NoAuthorization {
        /// The request, with type and length.
        request: Bytes,
    },
    /// An AUTH chunk uses an algorithm that was not negotiated.
    UnsupportedHmac {
        /// Which.
        hmac_id: u16,
    },
    /// An unknown cause.
    Unknown {
        /// Its code.
        code: CauseCode,
        /// What follows code and length.
        information: Bytes,
    },
    /// A cause that is invalid for its code, or whose length does not fit the chunk.
    Malformed {
        /// Its stated code.
        code: CauseCode,
    },
}

impl ErrorCause {
    /// Returns a protocol violation with a human-readable description.
    #[must_use]
    pub const fn violation(description: &'static str) -> Self {
        Self::ProtocolViolation { information: Bytes::from_static(description.as_bytes()) }
    }

    fn parse(cause: PacketView<'_>) -> Self {
        let code = CauseCode(cause.u16_at(0).unwrap_or_default());
        let number = cause.u32_at(ELEMENT_HEADER);
        let fixed = match code {
            CauseCode::INVALID_STREAM => {
                cause.u16_at(4).map(|stream| Self::InvalidStream { stream: StreamId(stream) })
            }
            CauseCode::MISSING_MANDATORY_PARAMETER => missing_mandatory(cause),
            CauseCode::STALE_COOKIE => number.map(|staleness| Self::StaleCookie { staleness }),
            CauseCode::NO_USER_DATA => number.map(|tsn| Self::NoUserData { tsn: Tsn(tsn) }),
            CauseCode::UNSUPPORTED_HMAC => {
                cause.u16_at(4).map(|hmac_id| Self::UnsupportedHmac { hmac_id })
            }
            _ => Some(Self::parse_any_length(code, cause.value().share())),
        };
        fixed.unwrap_or(Self::Malformed { code })
    }

    fn parse_any_length(code: CauseCode, value: Bytes) -> Self {
        match code {
            CauseCode::OUT_OF_RESOURCE => Self::OutOfResource,
            CauseCode::UNRESOLVABLE_ADDRESS => Self::UnresolvableAddress { parameter: value },
            CauseCode::UNRECOGNIZED_CHUNK_TYPE => Self::UnrecognizedChunkType { chunk: value },
            CauseCode::INVALID_MANDATORY_PARAMETER => Self::InvalidMandatoryParameter,
            CauseCode::UNRECOGNIZED_PARAMETERS => {
                Self::UnrecognizedParameters(Parameters::from_bytes(value))
            }
            CauseCode::COOKIE_WHILE_SHUTTING_DOWN => Self::CookieWhileShuttingDown,
            CauseCode::RESTART_WITH_NEW_ADDRESSES => {
                Self::RestartWithNewAddresses(Parameters::from_bytes(value))
            }
            CauseCode::USER_INITIATED_ABORT => Self::UserInitiatedAbort { reason: value },
            CauseCode::PROTOCOL_VIOLATION => Self::ProtocolViolation { information: value },
            CauseCode::DELETE_LAST_ADDRESS => Self::DeleteLastAddress { request: value },
            CauseCode::RESOURCE_SHORTAGE => Self::ResourceShortage { request: value },
            CauseCode::DELETE_SOURCE_ADDRESS => Self::DeleteSourceAddress { request: value },
            CauseCode::ILLEGAL_ASCONF_ACK => Self::IllegalAsconfAck,
            CauseCode::NO_AUTHORIZATION => Self::NoAuthorization { request: value },
            _ => Self::Unknown { code, information: value },
        }
    }

    /// Returns the code.
    #[must_use]
    pub const fn code(&self) -> CauseCode {
        match self {
            Self::InvalidStream { .. } => CauseCode::INVALID_STREAM,
            Self::MissingMandatoryParameter { .. } => CauseCode::MISSING_MANDATORY_PARAMETER,
            Self::StaleCookie { .. } => CauseCode::STALE_COOKIE,
            Self::OutOfResource => CauseCode::OUT_OF_RESOURCE,
            Self::UnresolvableAddress { .. } => CauseCode::UNRESOLVABLE_ADDRESS,
            Self::UnrecognizedChunkType { .. } => CauseCode::UNRECOGNIZED_CHUNK_TYPE,
            Self::InvalidMandatoryParameter => CauseCode::INVALID_MANDATORY_PARAMETER,
            Self::UnrecognizedParameters(_) => CauseCode::UNRECOGNIZED_PARAMETERS,
            Self::NoUserData { .. } => CauseCode::NO_USER_DATA,
            Self::CookieWhileShuttingDown => CauseCode::COOKIE_WHILE_SHUTTING_DOWN,
            Self::RestartWithNewAddresses(_) => CauseCode::RESTART_WITH_NEW_ADDRESSES,
            Self::UserInitiatedAbort { .. } => CauseCode::USER_INITIATED_ABORT,
            Self::ProtocolViolation { .. } => CauseCode::PROTOCOL_VIOLATION,
            Self::DeleteLastAddress { .. } => CauseCode::DELETE_LAST_ADDRESS,
            Self::ResourceShortage { .. } => CauseCode::RESOURCE_SHORTAGE,
            Self::DeleteSourceAddress { .. } => CauseCode::DELETE_SOURCE_ADDRESS,
            Self::IllegalAsconfAck => CauseCode::ILLEGAL_ASCONF_ACK,
            Self::NoAuthorization { .. } => CauseCode::NO_AUTHORIZATION,
            Self::UnsupportedHmac { .. } => CauseCode::UNSUPPORTED_HMAC,
            Self::Unknown { code, .. } | Self::Malformed { code } => *code,
        }
    }

    /// Returns the types of the missing parameters, if that is the cause.
    #[cfg(any(test, feature = "internals"))]
    pub fn missing(&self) -> impl Iterator<Item = ParameterType> + '_ {
        let types = match self {
            Self::MissingMandatoryParameter { types } => &types[..],
            _ => &[],
        };
        WireRecords::<u16>::new(types).map(ParameterType)
    }

    fn encode(&self, buffer: &mut BytesMut) {
        let start = buffer.len();
        self.code().0.write(buffer);
        0_u16.write(buffer);
        self.encode_information(buffer);
        let [.., high, low] = (buffer.len() - start).to_be_bytes();
        buffer[start + 2..start + 4].copy_from_slice(&[high, low]);
    }

    fn encode_information(&self, buffer: &mut BytesMut) {
        match self {
            Self::InvalidStream { stream: StreamId(number) }
            | Self::UnsupportedHmac { hmac_id: number } => {
                number.write(buffer);
                if matches!(self, Self::InvalidStream { .. }) {
                    0_u16.write(buffer);
                }
            }
            Self::MissingMandatoryParameter { types } => {
                let count = u32::try_from(types.len() / u16::SIZE).unwrap_or(u32::MAX);
                count.write(buffer);
                buffer.extend_from_slice(types);
            }
            Self::StaleCookie { staleness: number } | Self::NoUserData { tsn: Tsn(number) } => {
                number.write(buffer);
            }
            Self::UnresolvableAddress { parameter: bytes }
            | Self::UnrecognizedChunkType { chunk: bytes }
            | Self::UserInitiatedAbort { reason: bytes }
            | Self::ProtocolViolation { information: bytes }
            | Self::DeleteLastAddress { request: bytes }
            | Self::ResourceShortage { request: bytes }
            | Self::DeleteSourceAddress { request: bytes }
            | Self::NoAuthorization { request: bytes }
            | Self::Unknown { information: bytes, .. } => buffer.extend_from_slice(bytes),
            Self::UnrecognizedParameters(parameters)
            | Self::RestartWithNewAddresses(parameters) => {
                buffer.extend_from_slice(parameters.as_bytes());
            }
            Self::OutOfResource
            | Self::InvalidMandatoryParameter
            | Self::CookieWhileShuttingDown
            | Self::IllegalAsconfAck
            | Self::Malformed { .. } => {}
        }
    }
}

/// Returns `None` if the list is shorter than the count that precedes it.
fn missing_mandatory(cause: PacketView<'_>) -> Option<ErrorCause> {
    let count = usize::try_from(cause.u32_at(4)?).ok()?;
    let types = cause.skip(8)?.first(count.checked_mul(u16::SIZE)?)?;
    Some(ErrorCause::MissingMandatoryParameter { types: types.share() })
}

element_list! {
    /// A list of encoded error causes, parsed on iteration.
    Causes, ErrorCause, ErrorCause::parse, |code| ErrorCause::Malformed { code: CauseCode(code) }
}

impl From<ErrorCause> for Causes {
    fn from(cause: ErrorCause) -> Self {
        core::iter::once(cause).collect()
    }
}
