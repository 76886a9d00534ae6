//! The receiving half of a request's stream.

use std::{
    mem,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use bytes::{Bytes, BytesMut};
use eyas_h3::{
    code::ErrorCode,
    fault::{Fault, StreamFault},
    message::Content,
    qpack::FieldLine,
    request::{Received, RequestReceiver},
    stream::Role,
};
use http::HeaderMap;
use http_body::Frame;

use super::{
    connection::{Decoded, Shared},
    error::StreamError,
    message::parse_trailers,
    transport::{QuicConnection, QuicRecvStream},
};

/// The maximum number of chunks, each of a packet, that are taken from QUIC at once. What they have of one `DATA` frame
/// is passed on together: one by one, each packet would cost a turn of everything above.
const MAX_CHUNKS: usize = 64;

/// The number of bytes that are read beyond a field section that waits for the table.
const MAX_READ_AHEAD: usize = 16 * 1024;

/// How much larger an encoded field section is read than may be decoded, in bytes: what is somewhat too large is answered
/// with 431 (RFC 6585 §5), and what is much too large is not read.
const SECTION_SLACK: u64 = 64 * 1024;

/// What a packet hardly exceeds, in bytes.
const PACKET_BYTES: u64 = 1500;

/// The receiving half of a request's stream. It is read only when it is polled, so the peer's window follows the
/// reader. It is never moved into a future, so it can be dropped while a read is pending.
pub(crate) struct Receiving<Q: QuicConnection> {
    stream: Q::RecvStream,
    receiver: RequestReceiver,
    connection: Arc<Shared<Q>>,
    /// Which field section waits for the dynamic table (RFC 9204 §2.1.2).
    blocked: Option<Section>,
    /// What was found behind a part that has been returned.
    next: Option<Received>,
    /// The bytes that were read while one waited.
    read_ahead: usize,
    /// Whether the peer may still send.
    is_open: bool,
    /// Whether the rest of the message is of no interest: it has ended, failed, or was stopped.
    is_over: bool,
}

#[derive(Clone, Copy, Debug)]
enum Section {
    Head,
    Trailers,
}

/// What comes next in a message.
enum Part {
    Fields(Section, Vec<FieldLine>),
    Data(Bytes),
    End,
}

impl<Q: QuicConnection> Receiving<Q> {
    pub(super) fn new(stream: Q::RecvStream, connection: Arc<Shared<Q>>) -> Self {
        let section_bytes = connection.head_bytes().saturating_add(SECTION_SLACK);
        let receiver = RequestReceiver::new(connection.role(), section_bytes);
        Self {
            stream,
            receiver,
            connection,
            blocked: None,
            next: None,
            read_ahead: 0,
            is_open: true,
            is_over: false,
        }
    }

    /// Returns the identifier of the stream.
    pub(crate) fn id(&self) -> u64 {
        self.stream.id()
    }

    /// Returns what it shares with the other streams.
    #[cfg(feature = "server")]
    pub(super) fn shared(&self) -> &Shared<Q> {
        &self.connection
    }

    /// Waits for the next head. Another one follows each that is informational.
    pub(super) async fn head(&mut self) -> Result<Vec<FieldLine>, StreamError> {
        std::future::poll_fn(|cx| self.poll_head(cx)).await
    }

    /// Goes on after a head if it is well-formed, and reads no more otherwise.
    pub(super) fn accept_head<T>(
        &mut self,
        parsed: Result<(T, Content), StreamFault>,
    ) -> Result<T, StreamError> {
        let (head, content) = parsed.map_err(|why| self.refuse(why))?;
        self.receiver.accept_head(content);
        Ok(head)
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<FieldLine>, StreamError>> {
        loop {
            match ready!(self.poll_part(cx))? {
                Part::Fields(Section::Head, lines) => return Poll::Ready(Ok(lines)),
                // The receiver passes on a head before anything else, or fails.
                Part::Fields(Section::Trailers, _) | Part::Data(_) => {}
                Part::End => return Poll::Ready(Err(StreamFault::RequestIncomplete.into())),
            }
        }
    }

    /// Returns the next part of the content, or the trailers, after a head that is not informational.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        loop {
            return Poll::Ready(match ready!(self.poll_part(cx)) {
                Ok(Part::Data(data)) => Some(Ok(Frame::data(data))),
                Ok(Part::Fields(Section::Trailers, lines)) => {
                    Some(self.accept_trailers(&lines).map(Frame::trailers))
                }
                // No head follows one that was not informational.
                Ok(Part::Fields(Section::Head, _)) => continue,
                Ok(Part::End) => None,
                Err(error) => Some(Err(error)),
            });
        }
    }

    fn accept_trailers(&mut self, lines: &[FieldLine]) -> Result<HeaderMap, StreamError> {
        let trailers = parse_trailers(lines).map_err(|why| self.refuse(why))?;
        self.receiver.accept_trailers();
        Ok(trailers)
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Result<Part, StreamError>> {
        loop {
            // Input can go on for as long as there is any: yield, so that timers can run.
            let budget = ready!(tokio::task::coop::poll_proceed(cx));
            if let Some(section) = self.blocked {
                let lines = ready!(self.poll_blocked(cx))?;
                budget.made_progress();
                (self.blocked, self.read_ahead) = (None, 0);
                return Poll::Ready(Ok(Part::Fields(section, lines)));
            }
            if let Some(part) = self.next_part()? {
                budget.made_progress();
                return Poll::Ready(Ok(part));
            }
            if self.blocked.is_none() {
                ready!(self.poll_chunks(cx))?;
            }
            budget.made_progress();
        }
    }

    /// Returns what comes next in what has arrived: the parts of one `DATA` frame together.
    fn next_part(&mut self) -> Result<Option<Part>, StreamError> {
        let received = self.next.take().or_else(|| self.receiver.poll_output());
        let Some(received) = received else { return Ok(None) };
        Ok(match received {
            Received::Data(first) => Some(Part::Data(self.whole_piece(first))),
            Received::Head(section) => self.decode(Section::Head, section)?,
            Received::Trailers(section) => self.decode(Section::Trailers, section)?,
            Received::End => {
                self.is_over = true;
                Some(Part::End)
            }
            Received::Failed(Fault::Stream(StreamFault::FieldSectionTooLarge { .. })) => {
                self.stop(ErrorCode::ExcessiveLoad);
                return Err(StreamError::Excessive);
            }
            Received::Failed(Fault::Stream(fault)) => return Err(self.refuse(fault)),
            Received::Failed(Fault::Connection(fault)) => {
                return Err(self.connection.violated(fault));
            }
        })
    }

    /// Adds to a part of a `DATA` frame what else of it has been read.
    fn whole_piece(&mut self, first: Bytes) -> Bytes {
        let (mut length, mut parts) = (first.len(), Vec::new());
        while self.receiver.data_left() > 0 {
            match self.receiver.poll_output() {
                Some(Received::Data(part)) => {
                    length += part.len();
                    parts.push(part);
                }
                // The frame was cut off: what that means comes after its data.
                other => {
                    self.next = other;
                    break;
                }
            }
        }
        if parts.is_empty() {
            return first;
        }
        let mut piece = BytesMut::with_capacity(length);
        piece.extend_from_slice(&first);
        parts.iter().for_each(|part| piece.extend_from_slice(part));
        piece.freeze()
    }

    /// Decodes a field section; `None` while it waits for the dynamic table.
    fn decode(&mut self, section: Section, encoded: Bytes) -> Result<Option<Part>, StreamError> {
        match self.connection.decode(self.stream.id(), encoded) {
            Ok(Decoded::Fields(lines)) => Ok(Some(Part::Fields(section, lines))),
            Ok(Decoded::Blocked) => {
                self.blocked = Some(section);
                Ok(None)
            }
            Err(StreamError::Malformed(fault)) => Err(self.refuse(fault)),
            Err(error) => Err(error),
        }
    }

    fn poll_blocked(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<FieldLine>, StreamError>> {
        if let Poll::Ready(decoded) = self.connection.poll_unblocked(cx, self.stream.id()) {
            return Poll::Ready(match decoded {
                Err(StreamError::Malformed(fault)) => Err(self.refuse(fault)),
                decoded => decoded,
            });
        }
        // The peer may give the stream up meanwhile, which a read tells.
        while self.is_open && self.read_ahead < MAX_READ_AHEAD {
            self.read_ahead += ready!(self.poll_chunks(cx))?;
        }
        Poll::Pending
    }

    /// Reads chunks that have arrived. Of what does not belong to the present frame no more than a chunk is taken: as
    /// long as nobody reads it, the peer's window remains closed. Returns the number of bytes.
    fn poll_chunks(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, StreamError>> {
        let mut chunks = [const { Bytes::new() }; MAX_CHUNKS];
        let left = self.receiver.data_left();
        let within = usize::try_from(left / PACKET_BYTES).unwrap_or(MAX_CHUNKS);
        let taken = &mut chunks[..within.clamp(1, MAX_CHUNKS)];
        let read = match ready!(self.stream.poll_read(cx, taken)) {
            Ok(read) => read,
            Err(end) => {
                self.is_open = false;
                self.abandon();
                return Poll::Ready(Err(self.connection.explain(end)));
            }
        };
        let Some(count) = read else {
            self.is_open = false;
            self.receiver.handle_input(Bytes::new(), true);
            return Poll::Ready(Ok(0));
        };
        let mut bytes = 0;
        for chunk in chunks.into_iter().take(count) {
            // Each keeps the packet that it came in.
            bytes += chunk.len().max(PACKET_BYTES as usize);
            self.receiver.handle_input(chunk, false);
        }
        Poll::Ready(Ok(bytes))
    }

    /// Reads no more, because the peer broke a rule that concerns only this stream.
    fn refuse(&mut self, fault: StreamFault) -> StreamError {
        self.stop(fault.code());
        StreamError::Malformed(fault)
    }

    /// Reads no more.
    pub(crate) fn stop(&mut self, code: ErrorCode) {
        if mem::take(&mut self.is_open) {
            self.stream.stop(code);
        }
        self.abandon();
    }

    /// Tells the peer's encoder that no more of its field sections on this stream are decoded (RFC 9204 §2.2.2.2).
    fn abandon(&mut self) {
        if !mem::replace(&mut self.is_over, true) {
            self.connection.cancel(self.stream.id());
        }
    }

    /// Returns whether the message has ended with what has arrived, although nobody has read its end. What follows it
    /// may be wrong, too.
    fn ends_here(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        if self.is_open && self.receiver.data_left() == 0 {
            let _ = self.poll_chunks(&mut cx);
        }
        match self.receiver.poll_output() {
            Some(Received::Failed(Fault::Connection(fault))) => {
                self.connection.violated(fault);
                true
            }
            received => received == Some(Received::End),
        }
    }
}

impl<Q: QuicConnection> Drop for Receiving<Q> {
    fn drop(&mut self) {
        if self.is_over || self.ends_here() {
            return;
        }
        // RFC 9114 §4.1: a server that needs no more of a request signals that with H3_NO_ERROR; §4.1.1: a client
        // cancels.
        self.stop(match self.connection.role() {
            Role::Client => ErrorCode::RequestCancelled,
            Role::Server => ErrorCode::NoError,
        });
    }
}
