//! Identifiers, events and errors, with the names that str0m uses.

use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use eyas_sctp::identifier::Ppid;

/// The kind of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PayloadProtocolIdentifier {
    Dcep,
    String,
    Binary,
    StringEmpty,
    BinaryEmpty,
    #[default]
    Unknown,
}

impl PayloadProtocolIdentifier {
    pub(crate) fn number(self) -> Ppid {
        Ppid(match self {
            Self::Dcep => 50,
            Self::String => 51,
            Self::Binary => 53,
            Self::StringEmpty => 56,
            Self::BinaryEmpty => 57,
            Self::Unknown => 0,
        })
    }

    pub(crate) fn of(number: Ppid) -> Self {
        match number.0 {
            50 => Self::Dcep,
            51 => Self::String,
            53 => Self::Binary,
            56 => Self::StringEmpty,
            57 => Self::BinaryEmpty,
            _ => Self::Unknown,
        }
    }
}

/// When a message is abandoned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReliabilityType {
    #[default]
    Reliable,
    Rexmit,
    Timed,
}

impl From<u8> for ReliabilityType {
    fn from(number: u8) -> Self {
        match number {
            1 => Self::Rexmit,
            2 => Self::Timed,
            _ => Self::Reliable,
        }
    }
}

/// A congestion mark; none are seen inside DTLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnCodepoint {}

/// Packets to send.
#[derive(Debug)]
pub struct Transmit {
    pub now: Instant,
    pub remote: SocketAddr,
    pub payload: Payload,
}

/// Packets.
#[derive(Debug)]
#[non_exhaustive]
pub enum Payload {
    RawEncode(Vec<Bytes>),
}

/// An event of an association.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    Connected,
    AssociationLost { reason: AssociationError },
    Stream(StreamEvent),
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEvent {
    Readable { id: u16 },
    Writable { id: u16 },
    Finished { id: u16 },
    Stopped { id: u16, error_code: u32 },
    ResetComplete { id: u16 },
    BufferedAmountLow { id: u16 },
}

/// Why an association ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationError(pub(crate) String);

impl fmt::Display for AssociationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AssociationError {}

/// Why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    ErrStreamAlreadyExist,
    ErrStreamResetPending,
    ErrStreamNotExisted,
    ErrOutboundPacketTooLarge,
    Other(String),
}

impl From<eyas_sctp::error::Error> for Error {
    fn from(error: eyas_sctp::error::Error) -> Self {
        Self::Other(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ErrStreamAlreadyExist => f.write_str("the stream exists already"),
            Self::ErrStreamResetPending => f.write_str("the stream is still being reset"),
            Self::ErrStreamNotExisted => f.write_str("the stream does not exist"),
            Self::ErrOutboundPacketTooLarge => {
                f.write_str("the message is larger than the peer accepts")
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}
