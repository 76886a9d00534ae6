//! What makes a message malformed (RFC 9114 §4.1.2).

use core::fmt;

/// A pseudo-header field (RFC 9114 §4.3.1, §4.3.2, RFC 8441 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PseudoField {
    /// `:method`.
    Method,
    /// `:scheme`.
    Scheme,
    /// `:authority`.
    Authority,
    /// `:path`.
    Path,
    /// `:protocol`.
    Protocol,
    /// `:status`.
    Status,
}

impl PseudoField {
    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":authority" => Self::Authority,
            b":path" => Self::Path,
            b":protocol" => Self::Protocol,
            b":status" => Self::Status,
            _ => return None,
        })
    }
}

impl fmt::Display for PseudoField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Method => ":method",
            Self::Scheme => ":scheme",
            Self::Authority => ":authority",
            Self::Path => ":path",
            Self::Protocol => ":protocol",
            Self::Status => ":status",
        })
    }
}

/// The rule that a malformed message breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageFault {
    /// A pseudo-header field of no known name.
    PseudoFieldUnknown,
    /// A pseudo-header field of the other kind of message: `:status` in a request, the others in a
    /// response.
    PseudoFieldOfOtherKind(PseudoField),
    /// A pseudo-header field that is there twice.
    PseudoFieldRepeated(PseudoField),
    /// A pseudo-header field after other fields.
    PseudoFieldAfterFields,
    /// A pseudo-header field in a trailer section.
    PseudoFieldInTrailers,
    /// A message without a pseudo-header field that it needs.
    PseudoFieldMissing(PseudoField),
    /// `:scheme` or `:path` in a CONNECT request without `:protocol`.
    PseudoFieldInConnect(PseudoField),
    /// `:protocol` in a request that is not CONNECT, or that was not allowed by a setting.
    ProtocolNotAllowed,
    /// A pseudo-header field whose value its rules exclude, such as a method with a space.
    PseudoFieldInvalid(PseudoField),
    /// An empty `:path` of an http or https request.
    PathEmpty,
    /// `*` as the `:path` of another method than OPTIONS.
    PathAsterisk,
    /// An http or https request with neither `:authority` nor Host, or with an empty one.
    AuthorityMissing,
    /// `:authority` and Host differ.
    AuthorityDiffersFromHost,
    /// Two Host fields.
    HostRepeated,
    /// User information in `:authority`.
    UserInformation,
    /// An upper-case letter in the name of a field.
    NameInUpperCase,
    /// The name of a field is empty, or has a character that is not allowed.
    NameInvalid,
    /// The value of a field has a character that is not allowed, or begins or ends with a space.
    ValueInvalid,
    /// A field that is about one HTTP/1.1 connection, such as Transfer-Encoding.
    ConnectionSpecificField,
    /// A TE field with something other than `trailers`.
    TransferCodingRequested,
    /// Content-Length is no number, or has several values that differ.
    ContentLengthInvalid,
    /// The content is shorter or longer than Content-Length says.
    ContentLengthDiffers {
        /// What Content-Length says, in bytes.
        announced: u64,
        /// The size of the content, in bytes; as far as it was read, if that is more.
        received: u64,
    },
    /// Content in a response that never has any.
    ContentForbidden,
    /// A `:status` that is not three digits, or below 100.
    StatusInvalid,
    /// Status 101 (Switching Protocols), which HTTP/3 does not have.
    SwitchingProtocols,
    /// The stream of a response ended before the final response.
    ResponseMissing,
}

impl MessageFault {
    /// Returns the section of RFC 9114 that states the rule.
    #[must_use]
    pub const fn section(&self) -> &'static str {
        match self {
            Self::PseudoFieldUnknown
            | Self::PseudoFieldOfOtherKind(_)
            | Self::PseudoFieldRepeated(_)
            | Self::PseudoFieldAfterFields
            | Self::PseudoFieldInTrailers
            | Self::PseudoFieldInvalid(_) => "4.3",
            Self::PseudoFieldMissing(PseudoField::Status) | Self::StatusInvalid => "4.3.2",
            Self::PseudoFieldMissing(_)
            | Self::PathEmpty
            | Self::PathAsterisk
            | Self::AuthorityMissing
            | Self::AuthorityDiffersFromHost
            | Self::HostRepeated
            | Self::ProtocolNotAllowed
            | Self::UserInformation => "4.3.1",
            Self::PseudoFieldInConnect(_) => "4.4",
            Self::NameInUpperCase
            | Self::ConnectionSpecificField
            | Self::TransferCodingRequested => "4.2",
            Self::NameInvalid | Self::ValueInvalid => "10.3",
            Self::ContentLengthInvalid
            | Self::ContentLengthDiffers { .. }
            | Self::ContentForbidden => "4.1.2",
            Self::SwitchingProtocols => "4.5",
            Self::ResponseMissing => "4.1",
        }
    }
}

impl fmt::Display for MessageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PseudoFieldUnknown => "an unknown pseudo-header field",
            Self::PseudoFieldOfOtherKind(field) => {
                return write!(f, "{field} is not a pseudo-header field of this kind of message");
            }
            Self::PseudoFieldRepeated(field) => return write!(f, "{field} is there twice"),
            Self::PseudoFieldAfterFields => "a pseudo-header field after other fields",
            Self::PseudoFieldInTrailers => "a pseudo-header field in trailers",
            Self::PseudoFieldMissing(field) => return write!(f, "{field} is missing"),
            Self::PseudoFieldInConnect(field) => {
                return write!(f, "a CONNECT request must not have {field}");
            }
            Self::ProtocolNotAllowed => ":protocol is not allowed here",
            Self::PseudoFieldInvalid(field) => return write!(f, "the value of {field} is invalid"),
            Self::PathEmpty => ":path is empty",
            Self::PathAsterisk => "only OPTIONS may have * as :path",
            Self::AuthorityMissing => "neither :authority nor Host names an authority",
            Self::AuthorityDiffersFromHost => ":authority and Host differ",
            Self::HostRepeated => "Host is there twice",
            Self::UserInformation => "user information in :authority",
            Self::NameInUpperCase => "a field name with an upper-case letter",
            Self::NameInvalid => "an invalid field name",
            Self::ValueInvalid => "an invalid field value",
            Self::ConnectionSpecificField => "a field that is specific to an HTTP/1.1 connection",
            Self::TransferCodingRequested => "TE may only be \"trailers\"",
            Self::ContentLengthInvalid => "Content-Length is not one number",
            Self::ContentLengthDiffers { announced, received } => {
                return write!(
                    f,
                    "Content-Length is {announced}, the content has {received} bytes"
                );
            }
            Self::ContentForbidden => "content in a response that never has any",
            Self::StatusInvalid => ":status is not a status code",
            Self::SwitchingProtocols => "status 101 does not exist in HTTP/3",
            Self::ResponseMissing => "the stream ended before the final response",
        })
    }
}

impl core::error::Error for MessageFault {}
