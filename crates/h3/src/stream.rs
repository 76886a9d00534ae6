//! Streams by number (RFC 9000 §2.1) and by type (RFC 9114 §6, RFC 9204 §4.2).

use core::fmt;

/// Which end of the connection an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It opened the connection and sends requests.
    Client,
    /// It accepted the connection and responds.
    Server,
}

impl Role {
    /// Returns the other end's role.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The number of a stream of QUIC (RFC 9000 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The largest number of a request's stream: 2^62 - 4.
    pub const MAX_REQUEST: Self = Self(crate::varint::MAX - 3);

    /// Returns the stream of a request by its index: 0 is a connection's first.
    #[must_use]
    pub const fn from_request_index(index: u64) -> Self {
        Self(index << 2)
    }

    /// Returns who opened the stream.
    #[must_use]
    pub const fn initiator(self) -> Role {
        if self.0 & 1 == 0 { Role::Client } else { Role::Server }
    }

    /// Returns whether only its initiator sends.
    #[must_use]
    pub const fn is_unidirectional(self) -> bool {
        self.0 & 2 != 0
    }

    /// Returns whether it is a request's: a bidirectional stream that the client opened (RFC 9114 §6.1).
    #[must_use]
    pub const fn is_request(self) -> bool {
        self.0 & 3 == 0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A unidirectional stream that each endpoint opens once, and that must not end (RFC 9114 §6.2.1,
/// RFC 9204 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CriticalStream {
    /// The control stream.
    Control,
    /// The stream of QPACK encoder instructions.
    QpackEncoder,
    /// The stream of QPACK decoder instructions.
    QpackDecoder,
}

impl CriticalStream {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Control, Self::QpackEncoder, Self::QpackDecoder];
}

impl fmt::Display for CriticalStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Control => "control stream",
            Self::QpackEncoder => "QPACK encoder stream",
            Self::QpackDecoder => "QPACK decoder stream",
        })
    }
}

/// What a unidirectional stream is, by the integer that it begins with (RFC 9114 §6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamType {
    /// One of the streams that each endpoint has once.
    Critical(CriticalStream),
    /// A push stream.
    Push,
    /// A reserved type, which means nothing (RFC 9114 §6.2.3).
    Reserved(u64),
    /// A type of an extension that is not known here.
    Unknown(u64),
}

impl StreamType {
    /// Returns the type of a number.
    #[must_use]
    pub const fn from_value(value: u64) -> Self {
        match value {
            0x00 => Self::Critical(CriticalStream::Control),
            0x01 => Self::Push,
            0x02 => Self::Critical(CriticalStream::QpackEncoder),
            0x03 => Self::Critical(CriticalStream::QpackDecoder),
            _ if is_reserved(value) => Self::Reserved(value),
            _ => Self::Unknown(value),
        }
    }

    /// Returns the number of the type.
    #[must_use]
    pub const fn value(self) -> u64 {
        match self {
            Self::Critical(CriticalStream::Control) => 0x00,
            Self::Push => 0x01,
            Self::Critical(CriticalStream::QpackEncoder) => 0x02,
            Self::Critical(CriticalStream::QpackDecoder) => 0x03,
            Self::Reserved(value) | Self::Unknown(value) => value,
        }
    }
}

/// Returns whether a number is reserved to exercise that unknown ones are ignored: `0x1f * N + 0x21`,
/// for types of streams and frames, settings and error codes (RFC 9114 §6.2.3, §7.2.8, §7.2.4.1, §8.1).
#[must_use]
pub const fn is_reserved(value: u64) -> bool {
    value >= 0x21 && (value - 0x21).is_multiple_of(0x1f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_streams_are_read_back() {
        for value in 0..0x100 {
            assert_eq!(StreamType::from_value(value).value(), value);
        }
        assert_eq!(StreamType::from_value(0x21 + 0x1f * 7), StreamType::Reserved(0xfa));
        assert_eq!(StreamType::from_value(0x54), StreamType::Unknown(0x54));
    }

    #[test]
    fn numbers_of_streams_say_who_opened_them() {
        let kinds =
            [0, 1, 2, 3].map(|id| (StreamId(id).initiator(), StreamId(id).is_unidirectional()));
        let expected = [
            (Role::Client, false),
            (Role::Server, false),
            (Role::Client, true),
            (Role::Server, true),
        ];
        assert_eq!(kinds, expected);
        assert!(StreamId::MAX_REQUEST.is_request() && StreamId::from_request_index(3).0 == 12);
    }
}
