//! The inputs and outputs of a connection (RFC 9114 §6.2, §7.2).

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::code::ErrorCode;
use crate::fault::{ConnectionFault, StreamFault};
use crate::priority::Priority;
use crate::qpack::FieldLine;
use crate::settings::Settings;
use crate::stream::{CriticalStream, StreamId};

/// What the driver passes to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time has passed; nothing else happened.
    Tick,
    /// Bytes of a unidirectional stream that the peer opened, in order. After
    /// [`Output::StopSending`] for the stream there must be none.
    Stream {
        /// The stream.
        stream: StreamId,
        /// Its next bytes.
        data: Bytes,
        /// Whether they are the last.
        fin: bool,
    },
    /// The peer has reset a unidirectional stream that it opened.
    Reset {
        /// The stream.
        stream: StreamId,
    },
    /// A stream that [`Output::OpenUni`] asked for is open.
    Opened(UniStream),
    /// The transport has taken the bytes of [`Output::Write`] for this stream.
    Written(UniStream),
    /// The peer has stopped reading one of the streams that [`Output::OpenUni`] asked for.
    Stopped(UniStream),
    /// A QUIC DATAGRAM frame has arrived.
    Datagram(Bytes),
}

/// A unidirectional stream that this endpoint opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UniStream {
    /// One of those that stay open as long as the connection.
    Critical(CriticalStream),
    /// A stream of a reserved type, so that peers go on ignoring unknown ones (RFC 9114 §6.2.3). It
    /// may be left out.
    Reserved,
}

/// What a connection asks the driver to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Open a unidirectional stream, and say so by [`Input::Opened`]. Until then nothing is written to
    /// it.
    OpenUni(UniStream),
    /// Send these bytes on a stream that is open, and say by [`Input::Written`] when the transport has
    /// taken them. Until then nothing else is written to it, and [`MAX_UNSENT`](super::MAX_UNSENT)
    /// bounds what waits here.
    Write {
        /// The stream.
        stream: UniStream,
        /// The bytes.
        data: Bytes,
        /// Whether the stream ends with them.
        fin: bool,
    },
    /// Stop reading a unidirectional stream of the peer, and forget it.
    StopSending {
        /// The stream.
        stream: StreamId,
        /// The code to send.
        code: ErrorCode,
    },
    /// Close the connection because the peer broke a rule, with the code of the fault and its text as
    /// the reason. Nothing but timeouts follows.
    Close(ConnectionFault),
    /// Something that the driver has to know.
    Event(Event),
    /// Nothing more for now; call again at this time at the latest, if one is given.
    Timeout(Option<Duration>),
}

/// What happened on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The peer's settings have arrived. A client may remember them for 0-RTT
    /// ([`ConnectionSetup::remembered`](super::ConnectionSetup::remembered)).
    Settings(Settings),
    /// A field section that was [`Blocked`](super::Section::Blocked) is decoded.
    Section {
        /// The stream that it was received on.
        stream: StreamId,
        /// Its fields.
        fields: Result<Vec<FieldLine>, StreamFault>,
    },
    /// The peer ends the connection gracefully (RFC 9114 §5.2). It can say so again, with a lower
    /// identifier.
    GoAway {
        /// At a client: requests on this stream and those after it were not processed, and may be sent
        /// again on another connection. At a server: a push ID, which means nothing without pushes.
        id: u64,
    },
    /// The client has changed the priority of a request (RFC 9218 §7.2).
    Priority {
        /// The stream of the request.
        stream: StreamId,
        /// Its priority from now on.
        priority: Priority,
    },
    /// An HTTP Datagram has arrived (RFC 9297 §2.1).
    Datagram {
        /// The stream of its request.
        stream: StreamId,
        /// Its payload.
        payload: Bytes,
    },
    /// The server has authority for these origins (RFC 9412), in ASCII, as far as its certificate says
    /// so too. They are added to earlier ones, and at most [`MAX_ORIGINS`](super::MAX_ORIGINS) in all.
    Origins(Vec<Bytes>),
}
