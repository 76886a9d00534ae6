//! What a peer did wrong: faults of a connection, which end it, and faults of a stream, which end a
//! request (RFC 9114 §8). Each is a fact; its error code, the section of the rule and a text are made
//! from it.

use core::fmt;

use crate::code::ErrorCode;
use crate::frame_type::FrameType;
use crate::message::MessageFault;
use crate::qpack::QpackFault;
use crate::stream::{CriticalStream, StreamId};

/// The section of an RFC that states a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Section {
    /// The number of the RFC.
    pub rfc: u16,
    /// The number of the section, such as `7.2.4`.
    pub number: &'static str,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RFC {} §{}", self.rfc, self.number)
    }
}

/// Where a frame stood that must not stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// On a control stream of a client.
    ClientControl,
    /// On a control stream of a server.
    ServerControl,
    /// On the stream of a request, sent by the client.
    Request,
    /// On the stream of a request, sent by the server.
    Response,
    /// On the stream of a CONNECT request, after its head.
    Tunnel,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClientControl => "a client's control stream",
            Self::ServerControl => "a server's control stream",
            Self::Request => "a request stream, from a client",
            Self::Response => "a request stream, from a server",
            Self::Tunnel => "the stream of a CONNECT request",
        })
    }
}

/// A violation that ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionFault {
    /// A frame on a stream where its type must not stand.
    FrameNotAllowed {
        /// The type.
        frame: FrameType,
        /// The stream.
        place: Place,
    },
    /// A frame of a type that only HTTP/2 has.
    Http2Frame(FrameType),
    /// DATA before HEADERS, or DATA or HEADERS after the trailers.
    FrameOutOfOrder(FrameType),
    /// The stream ended within a frame.
    FrameTruncated,
    /// The payload of a frame is shorter or longer than its fields.
    FrameMalformed(FrameType),
    /// A frame that is kept whole exceeds the limit.
    FrameTooLong {
        /// The type.
        frame: FrameType,
        /// The size of its payload, in bytes.
        length: u64,
        /// The largest that is accepted.
        limit: u64,
    },
    /// A second stream of a type that there is once.
    StreamRepeated(CriticalStream),
    /// A stream ended or was reset that has to stay open, or the peer stopped reading it.
    StreamClosed(CriticalStream),
    /// A push stream from a client.
    PushStreamFromClient,
    /// A push stream from a server that may not push.
    PushStreamNotAllowed,
    /// A bidirectional stream that the server opened.
    ServerOpenedRequest(StreamId),
    /// The control stream begins with another frame than SETTINGS.
    SettingsMissing(FrameType),
    /// A second SETTINGS frame.
    SettingsRepeated,
    /// A setting that is there twice.
    SettingRepeated(u64),
    /// A setting of HTTP/2 that HTTP/3 reserves.
    Http2Setting(u64),
    /// More settings than are accepted.
    TooManySettings {
        /// The largest number that is accepted.
        limit: usize,
    },
    /// A value that the setting does not have.
    SettingInvalid {
        /// The identifier of the setting.
        setting: u64,
        /// The value.
        value: u64,
    },
    /// A server accepted 0-RTT, and then has a setting with a lower value than the client remembered.
    SettingReduced {
        /// The identifier of the setting.
        setting: u64,
        /// What the client remembered.
        remembered: u64,
        /// What the server has sent, or the default if it has sent none.
        received: u64,
    },
    /// A server accepted 0-RTT, and then does not send a setting that the client remembered.
    SettingOmitted {
        /// The identifier of the setting.
        setting: u64,
        /// What the client remembered.
        remembered: u64,
    },
    /// A GOAWAY with a larger identifier than an earlier one.
    GoAwayGrew {
        /// The earlier identifier.
        from: u64,
        /// The later one.
        to: u64,
    },
    /// A GOAWAY from a server whose identifier is not a request's.
    GoAwayOfOtherStream(u64),
    /// A PUSH_PROMISE from a server that may not push.
    PushPromiseNotAllowed,
    /// A push ID that was not allowed, or not promised.
    PushIdNotAllowed {
        /// The frame that has it.
        frame: FrameType,
        /// The push ID.
        push_id: u64,
    },
    /// A MAX_PUSH_ID that is lower than an earlier one.
    MaxPushIdFell {
        /// The earlier one.
        from: u64,
        /// The later one.
        to: u64,
    },
    /// A PRIORITY_UPDATE for a stream that is not, or cannot become, a request's.
    PriorityOfOtherStream(u64),
    /// A PRIORITY_UPDATE whose priority cannot be parsed.
    PriorityMalformed,
    /// A datagram that is too short for its stream's number, or names none that can exist.
    DatagramMalformed,
    /// A datagram for a request beyond the limit of streams.
    DatagramOfOtherStream(StreamId),
    /// An error of field compression.
    Qpack(QpackFault),
    /// The peer does not read a stream that it makes grow.
    StreamNotRead(CriticalStream),
    /// Too many unidirectional streams that end or stall before their type is known.
    UndeterminedStreams {
        /// The largest number that is accepted.
        limit: usize,
    },
}

impl ConnectionFault {
    /// Returns the error code to close the connection with.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::FrameNotAllowed { .. }
            | Self::Http2Frame(_)
            | Self::FrameOutOfOrder(_)
            | Self::SettingsRepeated => ErrorCode::FrameUnexpected,
            Self::FrameTruncated | Self::FrameMalformed(_) => ErrorCode::FrameError,
            Self::FrameTooLong { .. }
            | Self::TooManySettings { .. }
            | Self::StreamNotRead(_)
            | Self::UndeterminedStreams { .. } => ErrorCode::ExcessiveLoad,
            Self::StreamRepeated(_) | Self::PushStreamFromClient | Self::ServerOpenedRequest(_) => {
                ErrorCode::StreamCreationError
            }
            Self::StreamClosed(_) => ErrorCode::ClosedCriticalStream,
            Self::SettingsMissing(_) => ErrorCode::MissingSettings,
            Self::SettingRepeated(_)
            | Self::Http2Setting(_)
            | Self::SettingInvalid { .. }
            | Self::SettingReduced { .. }
            | Self::SettingOmitted { .. } => ErrorCode::SettingsError,
            Self::PushStreamNotAllowed
            | Self::PushPromiseNotAllowed
            | Self::GoAwayGrew { .. }
            | Self::GoAwayOfOtherStream(_)
            | Self::PushIdNotAllowed { .. }
            | Self::MaxPushIdFell { .. }
            | Self::PriorityOfOtherStream(_)
            | Self::DatagramOfOtherStream(_) => ErrorCode::IdError,
            Self::PriorityMalformed => ErrorCode::GeneralProtocolError,
            Self::DatagramMalformed => ErrorCode::DatagramError,
            Self::Qpack(QpackFault::DecompressionFailed(_) | QpackFault::FieldSectionTooLarge) => {
                ErrorCode::QpackDecompressionFailed
            }
            Self::Qpack(QpackFault::EncoderStream(_)) => ErrorCode::QpackEncoderStreamError,
            Self::Qpack(QpackFault::DecoderStream(_)) => ErrorCode::QpackDecoderStreamError,
        }
    }

    /// Returns the section that states the rule.
    #[must_use]
    pub const fn section(&self) -> Section {
        const fn http(number: &'static str) -> Section {
            Section { rfc: 9114, number }
        }
        match self {
            Self::FrameNotAllowed { frame, place } => match (frame, place) {
                (FrameType::Origin, _) => Section { rfc: 9412, number: "2" },
                (FrameType::PriorityUpdateOfRequest | FrameType::PriorityUpdateOfPush, _) => {
                    Section { rfc: 9218, number: "7.2" }
                }
                (FrameType::Headers, Place::Tunnel) => http("4.4"),
                (FrameType::Data, _) => http("7.2.1"),
                (FrameType::Headers, _) => http("7.2.2"),
                (FrameType::CancelPush, _) => http("7.2.3"),
                (FrameType::Settings, _) => http("7.2.4"),
                (FrameType::PushPromise, _) => http("7.2.5"),
                (FrameType::GoAway, _) => http("7.2.6"),
                (FrameType::MaxPushId, _) => http("7.2.7"),
                _ => http("7.2"),
            },
            Self::Http2Frame(_) => http("7.2.8"),
            Self::FrameOutOfOrder(_) => http("4.1"),
            Self::FrameTruncated | Self::FrameMalformed(_) => http("7.1"),
            Self::FrameTooLong { .. }
            | Self::TooManySettings { .. }
            | Self::StreamNotRead(_)
            | Self::UndeterminedStreams { .. } => http("10.5"),
            Self::StreamRepeated(CriticalStream::Control)
            | Self::StreamClosed(CriticalStream::Control)
            | Self::SettingsMissing(_) => http("6.2.1"),
            Self::StreamRepeated(_) | Self::StreamClosed(_) => Section { rfc: 9204, number: "4.2" },
            Self::PushStreamFromClient => http("6.2.2"),
            Self::PushStreamNotAllowed => http("4.6"),
            Self::ServerOpenedRequest(_) => http("6.1"),
            Self::SettingsRepeated | Self::SettingRepeated(_) => http("7.2.4"),
            Self::Http2Setting(_) => http("7.2.4.1"),
            Self::SettingInvalid { setting: 0x08, .. } => Section { rfc: 8441, number: "3" },
            Self::SettingInvalid { .. } => Section { rfc: 9297, number: "2.1.1" },
            Self::SettingReduced { .. } | Self::SettingOmitted { .. } => http("7.2.4.2"),
            Self::GoAwayGrew { .. } => http("5.2"),
            Self::GoAwayOfOtherStream(_) => http("7.2.6"),
            Self::PushIdNotAllowed { frame: FrameType::PriorityUpdateOfPush, .. }
            | Self::PriorityOfOtherStream(_)
            | Self::PriorityMalformed => Section { rfc: 9218, number: "7.2" },
            Self::PushIdNotAllowed { frame: FrameType::CancelPush, .. } => http("7.2.3"),
            Self::PushPromiseNotAllowed | Self::PushIdNotAllowed { .. } => http("7.2.5"),
            Self::MaxPushIdFell { .. } => http("7.2.7"),
            Self::DatagramMalformed | Self::DatagramOfOtherStream(_) => {
                Section { rfc: 9297, number: "2.1" }
            }
            Self::Qpack(_) => Section { rfc: 9204, number: "6" },
        }
    }
}

impl fmt::Display for ConnectionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FrameNotAllowed { frame, place } => write!(f, "{frame} on {place}"),
            Self::Http2Frame(frame) => write!(f, "{frame} is a frame of HTTP/2"),
            Self::FrameOutOfOrder(frame) => write!(f, "{frame} where it must not follow"),
            Self::FrameTruncated => f.write_str("the stream ended within a frame"),
            Self::FrameMalformed(frame) => {
                write!(f, "the length of {frame} does not fit its fields")
            }
            Self::FrameTooLong { frame, length, limit } => {
                write!(f, "{frame} has {length} bytes, at most {limit} are accepted")
            }
            Self::StreamRepeated(stream) => write!(f, "a second {stream}"),
            Self::StreamClosed(stream) => write!(f, "the {stream} was closed"),
            Self::PushStreamFromClient => f.write_str("a push stream from a client"),
            Self::PushStreamNotAllowed => f.write_str("a push stream, and nothing may be pushed"),
            Self::ServerOpenedRequest(stream) => {
                write!(f, "the server opened the bidirectional stream {stream}")
            }
            Self::SettingsMissing(frame) => {
                write!(f, "the control stream begins with {frame}, not with SETTINGS")
            }
            Self::SettingsRepeated => f.write_str("a second SETTINGS frame"),
            Self::SettingRepeated(setting) => write!(f, "the setting {setting:#x} is there twice"),
            Self::Http2Setting(setting) => write!(f, "{setting:#x} is a setting of HTTP/2"),
            Self::TooManySettings { limit } => {
                write!(f, "more than {limit} settings")
            }
            Self::SettingInvalid { setting, value } => {
                write!(f, "the setting {setting:#x} must not be {value}")
            }
            Self::SettingReduced { setting, remembered, received } => write!(
                f,
                "the setting {setting:#x} fell from {remembered} to {received} after 0-RTT was accepted"
            ),
            Self::SettingOmitted { setting, remembered } => write!(
                f,
                "the setting {setting:#x}, which was {remembered}, is missing after 0-RTT was accepted"
            ),
            Self::GoAwayGrew { from, to } => write!(f, "the ID of GOAWAY grew from {from} to {to}"),
            Self::GoAwayOfOtherStream(id) => {
                write!(f, "GOAWAY with {id}, which is no request's ID")
            }
            Self::PushPromiseNotAllowed => f.write_str("PUSH_PROMISE, and nothing may be pushed"),
            Self::PushIdNotAllowed { frame, push_id } => {
                write!(f, "{frame} with the push ID {push_id}, which does not exist")
            }
            Self::MaxPushIdFell { from, to } => write!(f, "MAX_PUSH_ID fell from {from} to {to}"),
            Self::PriorityOfOtherStream(id) => {
                write!(f, "PRIORITY_UPDATE for {id}, which cannot be a request's ID")
            }
            Self::PriorityMalformed => f.write_str("PRIORITY_UPDATE without a valid priority"),
            Self::DatagramMalformed => f.write_str("a datagram without the ID of a stream"),
            Self::DatagramOfOtherStream(stream) => {
                write!(f, "a datagram for the stream {stream}, which is beyond the limit")
            }
            Self::Qpack(fault) => fault.fmt(f),
            Self::StreamNotRead(stream) => write!(f, "the peer does not read the {stream}"),
            Self::UndeterminedStreams { limit } => {
                write!(f, "more than {limit} unidirectional streams without a type")
            }
        }
    }
}

impl core::error::Error for ConnectionFault {}

/// A violation that ends one request and its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamFault {
    /// The message is malformed.
    Message(MessageFault),
    /// The stream of a request ended before the request did.
    RequestIncomplete,
    /// A field section is larger than this endpoint accepts. A server can respond with 431 instead of
    /// resetting the stream (RFC 6585 §5).
    FieldSectionTooLarge {
        /// The largest size that is accepted, in bytes.
        limit: u64,
    },
    /// A frame that is ignored announces more than the limit.
    FrameTooLong {
        /// Its type.
        frame: FrameType,
        /// The size of its payload, in bytes.
        length: u64,
        /// The largest that is skipped.
        limit: u64,
    },
    /// Too many interim responses.
    TooManyInterimResponses {
        /// The largest number that is accepted.
        limit: u32,
    },
    /// The request came after the GOAWAY that excludes it.
    AfterGoAway,
    /// A capsule that cannot be parsed, or is cut off by the end of the stream.
    Capsule,
}

impl StreamFault {
    /// Returns the error code to reset the stream with, and to stop reading it.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Message(_) | Self::FieldSectionTooLarge { .. } => ErrorCode::MessageError,
            Self::RequestIncomplete => ErrorCode::RequestIncomplete,
            Self::TooManyInterimResponses { .. } | Self::FrameTooLong { .. } => {
                ErrorCode::ExcessiveLoad
            }
            Self::AfterGoAway => ErrorCode::RequestRejected,
            Self::Capsule => ErrorCode::DatagramError,
        }
    }

    /// Returns the section that states the rule.
    #[must_use]
    pub const fn section(&self) -> Section {
        let number = match self {
            Self::Message(fault) => fault.section(),
            Self::RequestIncomplete => "4.1",
            Self::FieldSectionTooLarge { .. } => "4.2.2",
            Self::TooManyInterimResponses { .. } | Self::FrameTooLong { .. } => "10.5",
            Self::AfterGoAway => "5.2",
            Self::Capsule => return Section { rfc: 9297, number: "3.3" },
        };
        Section { rfc: 9114, number }
    }
}

impl fmt::Display for StreamFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(fault) => fault.fmt(f),
            Self::RequestIncomplete => f.write_str("the stream ended before the request"),
            Self::FieldSectionTooLarge { limit } => {
                write!(f, "the fields are larger than {limit} bytes")
            }
            Self::FrameTooLong { frame, length, limit } => {
                write!(f, "{frame} has {length} bytes, at most {limit} are skipped")
            }
            Self::TooManyInterimResponses { limit } => {
                write!(f, "more than {limit} interim responses")
            }
            Self::AfterGoAway => f.write_str("the request came after GOAWAY"),
            Self::Capsule => f.write_str("a malformed capsule"),
        }
    }
}

impl core::error::Error for StreamFault {}

impl From<MessageFault> for StreamFault {
    fn from(fault: MessageFault) -> Self {
        Self::Message(fault)
    }
}

/// A violation by the peer, by what it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The whole connection.
    Connection(ConnectionFault),
    /// One request and its stream.
    Stream(StreamFault),
}

impl Fault {
    /// Returns the error code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Connection(fault) => fault.code(),
            Self::Stream(fault) => fault.code(),
        }
    }

    /// Returns the section that states the rule.
    #[must_use]
    pub const fn section(&self) -> Section {
        match self {
            Self::Connection(fault) => fault.section(),
            Self::Stream(fault) => fault.section(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(fault) => fault.fmt(f),
            Self::Stream(fault) => fault.fmt(f),
        }
    }
}

impl core::error::Error for Fault {}

impl From<ConnectionFault> for Fault {
    fn from(fault: ConnectionFault) -> Self {
        Self::Connection(fault)
    }
}

impl From<StreamFault> for Fault {
    fn from(fault: StreamFault) -> Self {
        Self::Stream(fault)
    }
}

impl From<MessageFault> for Fault {
    fn from(fault: MessageFault) -> Self {
        Self::Stream(fault.into())
    }
}
