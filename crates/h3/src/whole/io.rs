//! The inputs and outputs of a whole connection (RFC 9114 §4, RFC 9000 §2).

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::code::ErrorCode;
use crate::connection;
use crate::fault::{ConnectionFault, StreamFault};
use crate::message::Content;
use crate::qpack::FieldLine;
use crate::stream::StreamId;

/// What the transport passes to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time has passed; nothing else happened.
    Tick,
    /// Bytes of any stream, in order. What arrives on a stream that has ended is dropped.
    Stream {
        /// The stream.
        stream: StreamId,
        /// Its next bytes.
        data: Bytes,
        /// Whether they are the last.
        fin: bool,
    },
    /// The peer has reset a stream.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The code as received.
        code: u64,
    },
    /// The peer has stopped reading a stream.
    Stopped {
        /// The stream.
        stream: StreamId,
        /// The code as received.
        code: u64,
    },
    /// A QUIC DATAGRAM frame has arrived.
    Datagram(Bytes),
}

/// What a connection asks the transport to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Open the next stream of its kind, which is this one.
    Open(StreamId),
    /// Send these bytes.
    Write {
        /// The stream.
        stream: StreamId,
        /// The bytes.
        data: Bytes,
        /// Whether the stream ends with them.
        fin: bool,
    },
    /// Reset a stream.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The code to send.
        code: ErrorCode,
    },
    /// Stop reading a stream.
    StopSending {
        /// The stream.
        stream: StreamId,
        /// The code to send.
        code: ErrorCode,
    },
    /// Send a QUIC DATAGRAM frame.
    Datagram(Bytes),
    /// Close the connection because the peer broke a rule.
    Close(ConnectionFault),
    /// Something that the user has to know.
    Event(Event),
    /// Nothing more for now; call again at this time at the latest, if one is given.
    Timeout(Option<Duration>),
}

/// What happened on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Something about the connection.
    Connection(connection::Event),
    /// The head of a request, or of an interim or the final response.
    Head {
        /// The stream.
        stream: StreamId,
        /// Its fields, pseudo-header fields first.
        fields: Vec<FieldLine>,
        /// What follows it.
        content: Content,
    },
    /// A part of the content.
    Data {
        /// The stream.
        stream: StreamId,
        /// The part, never empty.
        data: Bytes,
    },
    /// The trailers.
    Trailers {
        /// The stream.
        stream: StreamId,
        /// Their fields.
        fields: Vec<FieldLine>,
    },
    /// A message is complete.
    End {
        /// The stream.
        stream: StreamId,
    },
    /// A message will not be complete.
    Failed {
        /// The stream.
        stream: StreamId,
        /// Why.
        failure: Failure,
    },
}

/// Why a message will not be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer broke a rule; both directions of the stream are given up.
    Fault(StreamFault),
    /// The peer has reset the stream.
    Reset(ErrorCode),
    /// The peer has stopped reading the stream.
    Stopped(ErrorCode),
    /// The server has not processed the request, as its GOAWAY says. It may be sent again on another
    /// connection.
    Unprocessed,
}
