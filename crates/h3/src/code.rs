//! The error codes of HTTP/3 (RFC 9114 §8.1), QPACK (RFC 9204 §6) and HTTP Datagrams (RFC 9297 §5.2).

use core::fmt;

/// Why a stream or a connection ends: the application error code of QUIC's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// H3_NO_ERROR: nothing went wrong.
    NoError,
    /// H3_GENERAL_PROTOCOL_ERROR: a violation that has no code of its own.
    GeneralProtocolError,
    /// H3_INTERNAL_ERROR: a fault of this endpoint.
    InternalError,
    /// H3_STREAM_CREATION_ERROR: a stream that must not exist.
    StreamCreationError,
    /// H3_CLOSED_CRITICAL_STREAM: a stream ended that the connection needs.
    ClosedCriticalStream,
    /// H3_FRAME_UNEXPECTED: a frame where it must not stand.
    FrameUnexpected,
    /// H3_FRAME_ERROR: a frame whose layout or size is wrong.
    FrameError,
    /// H3_EXCESSIVE_LOAD: the peer causes more work than is reasonable.
    ExcessiveLoad,
    /// H3_ID_ERROR: a stream or push ID that is wrong.
    IdError,
    /// H3_SETTINGS_ERROR: an error in a SETTINGS frame.
    SettingsError,
    /// H3_MISSING_SETTINGS: the control stream began without a SETTINGS frame.
    MissingSettings,
    /// H3_REQUEST_REJECTED: the server did nothing with the request.
    RequestRejected,
    /// H3_REQUEST_CANCELLED: the request or its response is no longer wanted.
    RequestCancelled,
    /// H3_REQUEST_INCOMPLETE: the request's stream ended before the request.
    RequestIncomplete,
    /// H3_MESSAGE_ERROR: a malformed message.
    MessageError,
    /// H3_CONNECT_ERROR: the connection of a CONNECT request was reset or closed abnormally.
    ConnectError,
    /// H3_VERSION_FALLBACK: the request has to be repeated over HTTP/1.1.
    VersionFallback,
    /// H3_DATAGRAM_ERROR: a datagram or capsule that cannot be parsed.
    DatagramError,
    /// QPACK_DECOMPRESSION_FAILED: a field section that cannot be decoded.
    QpackDecompressionFailed,
    /// QPACK_ENCODER_STREAM_ERROR: an error on the encoder stream.
    QpackEncoderStreamError,
    /// QPACK_DECODER_STREAM_ERROR: an error on the decoder stream.
    QpackDecoderStreamError,
}

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 21] = [
        Self::NoError,
        Self::GeneralProtocolError,
        Self::InternalError,
        Self::StreamCreationError,
        Self::ClosedCriticalStream,
        Self::FrameUnexpected,
        Self::FrameError,
        Self::ExcessiveLoad,
        Self::IdError,
        Self::SettingsError,
        Self::MissingSettings,
        Self::RequestRejected,
        Self::RequestCancelled,
        Self::RequestIncomplete,
        Self::MessageError,
        Self::ConnectError,
        Self::VersionFallback,
        Self::DatagramError,
        Self::QpackDecompressionFailed,
        Self::QpackEncoderStreamError,
        Self::QpackDecoderStreamError,
    ];

    /// Returns the number on the wire.
    #[must_use]
    pub const fn value(self) -> u64 {
        match self {
            Self::DatagramError => 0x33,
            Self::NoError => 0x100,
            Self::GeneralProtocolError => 0x101,
            Self::InternalError => 0x102,
            Self::StreamCreationError => 0x103,
            Self::ClosedCriticalStream => 0x104,
            Self::FrameUnexpected => 0x105,
            Self::FrameError => 0x106,
            Self::ExcessiveLoad => 0x107,
            Self::IdError => 0x108,
            Self::SettingsError => 0x109,
            Self::MissingSettings => 0x10a,
            Self::RequestRejected => 0x10b,
            Self::RequestCancelled => 0x10c,
            Self::RequestIncomplete => 0x10d,
            Self::MessageError => 0x10e,
            Self::ConnectError => 0x10f,
            Self::VersionFallback => 0x110,
            Self::QpackDecompressionFailed => 0x200,
            Self::QpackEncoderStreamError => 0x201,
            Self::QpackDecoderStreamError => 0x202,
        }
    }

    /// Returns the meaning of a received number. Unknown ones are equivalent to H3_NO_ERROR (RFC 9114
    /// §9), also the reserved ones that grease connections (RFC 9114 §8.1).
    #[must_use]
    pub fn from_received(value: u64) -> Self {
        Self::ALL.into_iter().find(|code| code.value() == value).unwrap_or(Self::NoError)
    }

    /// Returns the name in the registry of codes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoError => "H3_NO_ERROR",
            Self::GeneralProtocolError => "H3_GENERAL_PROTOCOL_ERROR",
            Self::InternalError => "H3_INTERNAL_ERROR",
            Self::StreamCreationError => "H3_STREAM_CREATION_ERROR",
            Self::ClosedCriticalStream => "H3_CLOSED_CRITICAL_STREAM",
            Self::FrameUnexpected => "H3_FRAME_UNEXPECTED",
            Self::FrameError => "H3_FRAME_ERROR",
            Self::ExcessiveLoad => "H3_EXCESSIVE_LOAD",
            Self::IdError => "H3_ID_ERROR",
            Self::SettingsError => "H3_SETTINGS_ERROR",
            Self::MissingSettings => "H3_MISSING_SETTINGS",
            Self::RequestRejected => "H3_REQUEST_REJECTED",
            Self::RequestCancelled => "H3_REQUEST_CANCELLED",
            Self::RequestIncomplete => "H3_REQUEST_INCOMPLETE",
            Self::MessageError => "H3_MESSAGE_ERROR",
            Self::ConnectError => "H3_CONNECT_ERROR",
            Self::VersionFallback => "H3_VERSION_FALLBACK",
            Self::DatagramError => "H3_DATAGRAM_ERROR",
            Self::QpackDecompressionFailed => "QPACK_DECOMPRESSION_FAILED",
            Self::QpackEncoderStreamError => "QPACK_ENCODER_STREAM_ERROR",
            Self::QpackDecoderStreamError => "QPACK_DECODER_STREAM_ERROR",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= rfc9114 §8.1, §9
    //# unknown error codes are H3_NO_ERROR
    #[test]
    fn every_code_is_read_back_and_others_are_no_error() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_received(code.value()), code, "{code}");
        }
        for value in [0, 0x21, 0xff, 0x111, 0x203, u64::MAX] {
            assert_eq!(ErrorCode::from_received(value), ErrorCode::NoError, "{value:#x}");
        }
    }
}
