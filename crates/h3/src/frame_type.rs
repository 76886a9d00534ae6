//! The types of frames (RFC 9114 §7.2, RFC 9218 §7.2, RFC 9412), without their contents.

use core::fmt;

use crate::stream::is_reserved;

/// What a frame is, by the integer that it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameType {
    /// DATA: a part of a message's content (RFC 9114 §7.2.1).
    Data,
    /// HEADERS: a field section (RFC 9114 §7.2.2).
    Headers,
    /// CANCEL_PUSH: a push that is not wanted or will not happen (RFC 9114 §7.2.3).
    CancelPush,
    /// SETTINGS (RFC 9114 §7.2.4).
    Settings,
    /// PUSH_PROMISE: the request that a push answers (RFC 9114 §7.2.5).
    PushPromise,
    /// GOAWAY: the end of the connection is coming (RFC 9114 §7.2.6).
    GoAway,
    /// ORIGIN: what the server has authority for (RFC 9412).
    Origin,
    /// MAX_PUSH_ID: how much may be pushed (RFC 9114 §7.2.7).
    MaxPushId,
    /// PRIORITY_UPDATE for a request (RFC 9218 §7.2).
    PriorityUpdateOfRequest,
    /// PRIORITY_UPDATE for a push (RFC 9218 §7.2).
    PriorityUpdateOfPush,
    /// A type of HTTP/2 that has no meaning in HTTP/3 and must not be sent (RFC 9114 §7.2.8): PRIORITY,
    /// PING, WINDOW_UPDATE or CONTINUATION.
    Http2(u64),
    /// A reserved type, which means nothing (RFC 9114 §7.2.8).
    Reserved(u64),
    /// A type of an extension that is not known here; it is ignored (RFC 9114 §9).
    Unknown(u64),
}

impl FrameType {
    /// Returns the type of a number.
    #[must_use]
    pub const fn from_value(value: u64) -> Self {
        match value {
            0x00 => Self::Data,
            0x01 => Self::Headers,
            0x03 => Self::CancelPush,
            0x04 => Self::Settings,
            0x05 => Self::PushPromise,
            0x07 => Self::GoAway,
            0x0c => Self::Origin,
            0x0d => Self::MaxPushId,
            0xf_0700 => Self::PriorityUpdateOfRequest,
            0xf_0701 => Self::PriorityUpdateOfPush,
            0x02 | 0x06 | 0x08 | 0x09 => Self::Http2(value),
            _ if is_reserved(value) => Self::Reserved(value),
            _ => Self::Unknown(value),
        }
    }

    /// Returns the number of the type.
    #[must_use]
    pub const fn value(self) -> u64 {
        match self {
            Self::Data => 0x00,
            Self::Headers => 0x01,
            Self::CancelPush => 0x03,
            Self::Settings => 0x04,
            Self::PushPromise => 0x05,
            Self::GoAway => 0x07,
            Self::Origin => 0x0c,
            Self::MaxPushId => 0x0d,
            Self::PriorityUpdateOfRequest => 0xf_0700,
            Self::PriorityUpdateOfPush => 0xf_0701,
            Self::Http2(value) | Self::Reserved(value) | Self::Unknown(value) => value,
        }
    }

    /// Returns whether a recipient ignores the frame wherever it stands (RFC 9114 §9).
    #[must_use]
    pub const fn is_ignored(self) -> bool {
        matches!(self, Self::Reserved(_) | Self::Unknown(_))
    }
}

impl fmt::Display for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "DATA",
            Self::Headers => "HEADERS",
            Self::CancelPush => "CANCEL_PUSH",
            Self::Settings => "SETTINGS",
            Self::PushPromise => "PUSH_PROMISE",
            Self::GoAway => "GOAWAY",
            Self::Origin => "ORIGIN",
            Self::MaxPushId => "MAX_PUSH_ID",
            Self::PriorityUpdateOfRequest | Self::PriorityUpdateOfPush => "PRIORITY_UPDATE",
            Self::Http2(0x02) => "PRIORITY",
            Self::Http2(0x06) => "PING",
            Self::Http2(0x08) => "WINDOW_UPDATE",
            Self::Http2(_) => "CONTINUATION",
            Self::Reserved(value) | Self::Unknown(value) => {
                return write!(f, "frame type {value:#x}");
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_frames_are_read_back() {
        for value in (0..0x100).chain(0xf_06f0..0xf_0710) {
            assert_eq!(FrameType::from_value(value).value(), value);
        }
        assert_eq!(FrameType::from_value(0x21), FrameType::Reserved(0x21));
        assert_eq!(FrameType::from_value(0x0a), FrameType::Unknown(0x0a));
    }
}
