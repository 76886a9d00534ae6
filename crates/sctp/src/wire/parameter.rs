//! Parameters of INIT, INIT ACK, ASCONF, ASCONF-ACK and RE-CONFIG chunks.
//!
//! | file | parameters | source |
//! | --- | --- | --- |
//! | `address` | IPv4 address, IPv6 address, supported address types | RFC 9260 §3.3.2.1 |
//! | `dynamic_address` | requests and responses of ASCONF | RFC 5061 §4.2 |
//! | `reconfiguration` | requests and responses of RE-CONFIG | RFC 6525 §4 |
//! | `unknown` | unknown parameters | RFC 9260 §3.2.1 |
//!
//! All others are here: their value is a number of four bytes, opaque bytes, or empty (RFC 9260
//! §3.3.2.1 and §3.3.3.1, RFC 3758 §3.1, RFC 4820 §4, RFC 4895 §3, RFC 4960 appendix A, RFC 5061
//! §4.2, RFC 9653 §4).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |             Type              |            Length             |
//! +-------------------------------+-------------------------------+
//! \                             Value                             \
//! +---------------------------------------------------------------+
//! ```

pub(crate) mod address;
mod dynamic_address;
mod reconfiguration;
#[cfg(test)]
mod tests;
mod types;
mod unknown;

use bytes::{Bytes, BytesMut};
use core::net::IpAddr;

use super::Causes;
use super::list::element_list;
use super::records::WireRecord;
use super::walker::{ELEMENT_HEADER, PacketView};
use crate::serial::ReconfigurationNumber;

pub use address::SupportedAddressTypes;
pub use dynamic_address::AddressRequest;
pub use reconfiguration::{
    AddStreams, IncomingSsnReset, OutgoingSsnReset, ReconfigurationResponse, ReconfigurationResult,
    StreamList,
};
pub use types::ParameterType;
pub use unknown::UnknownParameter;

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parameter {
    /// The information of a HEARTBEAT.
    HeartbeatInfo(Bytes),
    /// An IPv4 or IPv6 address of the sender.
    Address(IpAddr),
    /// The cookie of an INIT ACK.
    StateCookie(Bytes),
    /// A parameter that the receiver of the INIT did not recognize, with type and length.
    Unrecognized(Bytes),
    /// A request for a longer cookie lifetime.
    CookiePreservative {
        /// The extension, in milliseconds.
        increment: u32,
    },
    /// A host name, which is deprecated.
    HostNameAddress(Bytes),
    /// Address families that the sender can use.
    SupportedAddressTypes(SupportedAddressTypes),
    /// A reset of the sender's streams.
    OutgoingSsnReset(OutgoingSsnReset),
    /// A request to reset the receiver's streams.
    IncomingSsnReset(IncomingSsnReset),
    /// A reset of all streams and TSNs.
    SsnTsnReset {
        /// The number of the request.
        request: ReconfigurationNumber,
    },
    /// The result of a request.
    ReconfigurationResponse(ReconfigurationResponse),
    /// A request for more streams to send on.
    AddOutgoingStreams(AddStreams),
    /// A request for more streams to receive on.
    AddIncomingStreams(AddStreams),
    /// The sender supports ECN.
    EcnCapable,
    /// The sender accepts packets with a checksum of zero.
    ZeroChecksumAcceptable {
        /// The alternate error detection method (RFC 9653 §3): 1 is DTLS.
        error_detection_method: u32,
    },
    /// Random bytes for the keys of AUTH.
    Random(Bytes),
    /// Chunk types that must be authenticated.
    ChunkList(Bytes),
    /// Algorithms for AUTH, most preferred first: two bytes each.
    RequestedHmacs(Bytes),
    /// Padding.
    Padding {
        /// Bytes of padding data, without type and length.
        length: u16,
    },
    /// Chunk types beyond RFC 9260 that the sender supports.
    SupportedExtensions(Bytes),
    /// The sender supports FORWARD-TSN.
    ForwardTsnSupported,
    /// An address that the sender adds.
    AddAddress(AddressRequest),
    /// An address that the sender deletes.
    DeleteAddress(AddressRequest),
    /// The address that the sender wants as the primary destination.
    SetPrimaryAddress(AddressRequest),
    /// A failed request.
    ErrorCauseIndication {
        /// The correlation identifier of the request.
        correlation: u32,
        /// Why.
        causes: Causes,
    },
    /// A successful request.
    SuccessIndication {
        /// The correlation identifier of the request.
        correlation: u32,
    },
    /// An adaptation layer between SCTP and its user.
    AdaptationLayerIndication {
        /// Which.
        code: u32,
    },
    /// A parameter of an unknown type.
    Unknown(UnknownParameter),
    /// A parameter that is invalid for its type, or whose length does not fit the chunk.
    Malformed {
        /// Its stated type.
        parameter_type: ParameterType,
    },
}

impl Parameter {
    /// Parses one parameter, without its padding.
    pub(crate) fn parse(parameter: PacketView<'_>) -> Self {
        let parameter_type = ParameterType(parameter.u16_at(0).unwrap_or_default());
        let parsed = match parameter_type {
            ParameterType::IPV4_ADDRESS | ParameterType::IPV6_ADDRESS => {
                address::parse(parameter).map(Self::Address)
            }
            ParameterType::SUPPORTED_ADDRESS_TYPES => {
                Some(Self::SupportedAddressTypes(SupportedAddressTypes::parse(parameter)))
            }
            ParameterType(13..=18) => reconfiguration::parse(parameter_type, parameter),
            ParameterType(0xc001..=0xc005) => dynamic_address::parse(parameter_type, parameter),
            ParameterType::COOKIE_PRESERVATIVE => {
                number(parameter).map(|increment| Self::CookiePreservative { increment })
            }
            ParameterType::ZERO_CHECKSUM_ACCEPTABLE => number(parameter)
                .map(|method| Self::ZeroChecksumAcceptable { error_detection_method: method }),
            ParameterType::ADAPTATION_LAYER_INDICATION => {
                number(parameter).map(|code| Self::AdaptationLayerIndication { code })
            }
            _ => Some(Self::parse_any_length(parameter_type, parameter.value().share())),
        };
        parsed.unwrap_or(Self::Malformed { parameter_type })
    }

    fn parse_any_length(parameter_type: ParameterType, value: Bytes) -> Self {
        match parameter_type {
            ParameterType::HEARTBEAT_INFO => Self::HeartbeatInfo(value),
            ParameterType::STATE_COOKIE => Self::StateCookie(value),
            ParameterType::UNRECOGNIZED => Self::Unrecognized(value),
            ParameterType::HOST_NAME_ADDRESS => Self::HostNameAddress(value),
            ParameterType::ECN_CAPABLE => Self::EcnCapable,
            ParameterType::FORWARD_TSN_SUPPORTED => Self::ForwardTsnSupported,
            ParameterType::RANDOM => Self::Random(value),
            ParameterType::CHUNK_LIST => Self::ChunkList(value),
            ParameterType::REQUESTED_HMACS => Self::RequestedHmacs(value),
            ParameterType::SUPPORTED_EXTENSIONS => Self::SupportedExtensions(value),
            ParameterType::PADDING => {
                Self::Padding { length: u16::try_from(value.len()).unwrap_or(u16::MAX) }
            }
            _ => Self::Unknown(UnknownParameter { parameter_type, value }),
        }
    }

    /// Returns the address, if this is one.
    #[must_use]
    pub const fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(*address),
            _ => None,
        }
    }

    /// Returns the type of the parameter.
    #[must_use]
    pub const fn parameter_type(&self) -> ParameterType {
        match self {
            Self::HeartbeatInfo(_) => ParameterType::HEARTBEAT_INFO,
            Self::Address(IpAddr::V4(_)) => ParameterType::IPV4_ADDRESS,
            Self::Address(IpAddr::V6(_)) => ParameterType::IPV6_ADDRESS,
            Self::StateCookie(_) => ParameterType::STATE_COOKIE,
            Self::Unrecognized(_) => ParameterType::UNRECOGNIZED,
            Self::CookiePreservative { .. } => ParameterType::COOKIE_PRESERVATIVE,
            Self::HostNameAddress(_) => ParameterType::HOST_NAME_ADDRESS,
            Self::SupportedAddressTypes(_) => ParameterType::SUPPORTED_ADDRESS_TYPES,
            Self::OutgoingSsnReset(_) => ParameterType::OUTGOING_SSN_RESET,
            Self::IncomingSsnReset(_) => ParameterType::INCOMING_SSN_RESET,
            Self::SsnTsnReset { .. } => ParameterType::SSN_TSN_RESET,
            Self::ReconfigurationResponse(_) => ParameterType::RECONFIGURATION_RESPONSE,
            Self::AddOutgoingStreams(_) => ParameterType::ADD_OUTGOING_STREAMS,
            Self::AddIncomingStreams(_) => ParameterType::ADD_INCOMING_STREAMS,
            Self::EcnCapable => ParameterType::ECN_CAPABLE,
            Self::ZeroChecksumAcceptable { .. } => ParameterType::ZERO_CHECKSUM_ACCEPTABLE,
            Self::Random(_) => ParameterType::RANDOM,
            Self::ChunkList(_) => ParameterType::CHUNK_LIST,
            Self::RequestedHmacs(_) => ParameterType::REQUESTED_HMACS,
            Self::Padding { .. } => ParameterType::PADDING,
            Self::SupportedExtensions(_) => ParameterType::SUPPORTED_EXTENSIONS,
            Self::ForwardTsnSupported => ParameterType::FORWARD_TSN_SUPPORTED,
            Self::AddAddress(_) => ParameterType::ADD_ADDRESS,
            Self::DeleteAddress(_) => ParameterType::DELETE_ADDRESS,
            Self::SetPrimaryAddress(_) => ParameterType::SET_PRIMARY_ADDRESS,
            Self::ErrorCauseIndication { .. } => ParameterType::ERROR_CAUSE_INDICATION,
            Self::SuccessIndication { .. } => ParameterType::SUCCESS_INDICATION,
            Self::AdaptationLayerIndication { .. } => ParameterType::ADAPTATION_LAYER_INDICATION,
            Self::Unknown(unknown) => unknown.parameter_type,
            Self::Malformed { parameter_type } => *parameter_type,
        }
    }

    /// Appends the parameter without padding.
    pub(crate) fn encode(&self, buffer: &mut BytesMut) {
        let start = buffer.len();
        self.parameter_type().put_header(0, buffer);
        self.encode_value(buffer);
        let [.., high, low] = (buffer.len() - start).to_be_bytes();
        buffer[start + 2..start + 4].copy_from_slice(&[high, low]);
    }

    fn encode_value(&self, buffer: &mut BytesMut) {
        match self {
            Self::HeartbeatInfo(value)
            | Self::StateCookie(value)
            | Self::Unrecognized(value)
            | Self::HostNameAddress(value)
            | Self::Random(value)
            | Self::ChunkList(value)
            | Self::RequestedHmacs(value)
            | Self::SupportedExtensions(value)
            | Self::Unknown(UnknownParameter { value, .. }) => buffer.extend_from_slice(value),
            Self::Address(IpAddr::V4(address)) => buffer.extend_from_slice(&address.octets()),
            Self::Address(IpAddr::V6(address)) => buffer.extend_from_slice(&address.octets()),
            Self::CookiePreservative { increment: number }
            | Self::ZeroChecksumAcceptable { error_detection_method: number }
            | Self::AdaptationLayerIndication { code: number }
            | Self::SuccessIndication { correlation: number } => number.write(buffer),
            Self::SsnTsnReset { request } => request.0.write(buffer),
            Self::SupportedAddressTypes(types) => types.encode_value(buffer),
            Self::OutgoingSsnReset(reset) => reset.encode_value(buffer),
            Self::IncomingSsnReset(reset) => reset.encode_value(buffer),
            Self::ReconfigurationResponse(response) => response.encode_value(buffer),
            Self::AddOutgoingStreams(add) | Self::AddIncomingStreams(add) => {
                add.encode_value(buffer);
            }
            Self::AddAddress(request)
            | Self::DeleteAddress(request)
            | Self::SetPrimaryAddress(request) => request.encode_value(buffer),
            Self::ErrorCauseIndication { correlation, causes } => {
                correlation.write(buffer);
                buffer.extend_from_slice(causes.as_bytes());
            }
            Self::Padding { length } => buffer.resize(buffer.len() + usize::from(*length), 0),
            Self::EcnCapable | Self::ForwardTsnSupported | Self::Malformed { .. } => {}
        }
    }

    /// Returns the encoded parameter, without padding.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut buffer = BytesMut::new();
        self.encode(&mut buffer);
        buffer.freeze()
    }
}

element_list! {
    /// A list of encoded parameters, parsed on iteration.
    Parameters, Parameter, Parameter::parse,
    |number| Parameter::Malformed { parameter_type: ParameterType(number) }
}

/// Returns the value of a parameter that is a number.
fn number(parameter: PacketView<'_>) -> Option<u32> {
    parameter.u32_at(ELEMENT_HEADER)
}
