//! The receiving half of a stream.

use std::{
    collections::VecDeque,
    future::Future,
    pin::pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use h3::{
    error::Code,
    quic::{self, StreamErrorIncoming, StreamId},
};

use super::{
    Side, code,
    failure::read_error,
    frames::{FrameError, Frames},
    stream_id,
};

/// The maximum number of chunks, each of a packet, that are taken from quinn at once. What they have of one `DATA` frame
/// is passed on together: one by one, each packet would cost a turn of everything above.
const MAX_CHUNKS: usize = 64;

/// What a packet hardly exceeds, in bytes.
const PACKET_BYTES: u64 = 1500;

/// The receiving half of a stream. It is never moved into a future, so it can be stopped and
/// dropped while a read is pending.
pub(crate) struct Receiving<S: Side> {
    stream: quinn::RecvStream,
    frames: Frames,
    /// Chunks of the stream that have not been passed to h3 yet, in a queue that exists only as long as there are any.
    unread: VecDeque<Bytes>,
    finished: bool,
    /// Who is told of a GOAWAY, on a unidirectional stream.
    side: Option<S>,
}

impl<S: Side> Receiving<S> {
    pub(super) fn new(stream: quinn::RecvStream, frames: Frames, side: Option<S>) -> Self {
        Self { stream, frames, unread: VecDeque::new(), finished: false, side }
    }

    /// Reads the chunks that have arrived, and returns whether the stream goes on. Of what does not belong to the
    /// present frame no more than a chunk is taken: as long as nobody reads it, the peer's window remains closed.
    fn poll_chunks(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, quinn::ReadError>> {
        let mut chunks = [const { Bytes::new() }; MAX_CHUNKS];
        let within = usize::try_from(self.frames.data_left() / PACKET_BYTES).unwrap_or(MAX_CHUNKS);
        let taken = &mut chunks[..within.clamp(1, MAX_CHUNKS)];
        let Poll::Ready(read) = pin!(self.stream.read_chunks(taken)).poll(cx) else {
            self.unread = VecDeque::new();
            return Poll::Pending;
        };
        let count = read?;
        self.unread.extend(chunks.into_iter().take(count.unwrap_or(0)));
        Poll::Ready(Ok(count.is_some()))
    }

    /// Returns what comes next in the chunks: the parts of one `DATA` frame together.
    fn next_piece(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some(first) = self.next_part()? else { return Ok(None) };
        let (mut length, mut parts) = (first.len(), Vec::new());
        while self.frames.data_left() > 0
            && let Some(part) = self.next_part()?
        {
            length += part.len();
            parts.push(part);
        }
        if parts.is_empty() {
            return Ok(Some(first));
        }
        let mut piece = BytesMut::with_capacity(length);
        piece.extend_from_slice(&first);
        parts.iter().for_each(|part| piece.extend_from_slice(part));
        Ok(Some(piece.freeze()))
    }

    fn next_part(&mut self) -> Result<Option<Bytes>, FrameError> {
        while let Some(chunk) = self.unread.front_mut() {
            if let Some(part) = self.frames.next(chunk)? {
                if let (Some(side), Some(id)) = (&self.side, self.frames.take_goaway()) {
                    side.going_away(id);
                }
                return Ok(Some(part));
            }
            self.unread.pop_front();
        }
        Ok(None)
    }

    fn reject(&mut self, error: FrameError) -> StreamErrorIncoming {
        quic::RecvStream::stop_sending(self, Code::H3_EXCESSIVE_LOAD.value());
        StreamErrorIncoming::Unknown(error.into())
    }
}

impl<S: Side> quic::RecvStream for Receiving<S> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        loop {
            // h3 reads for as long as there is input: yield, so that timers can run.
            let budget = ready!(tokio::task::coop::poll_proceed(cx));
            match self.next_piece() {
                Ok(None) => {}
                Ok(Some(piece)) => {
                    budget.made_progress();
                    return Poll::Ready(Ok(Some(piece)));
                }
                Err(error) => return Poll::Ready(Err(self.reject(error))),
            }
            let goes_on = ready!(self.poll_chunks(cx));
            budget.made_progress();
            if !goes_on.map_err(read_error)? {
                self.finished = true;
                let end = self.frames.end();
                return Poll::Ready(
                    end.map_err(|error| StreamErrorIncoming::Unknown(error.into())),
                );
            }
        }
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.finished = true;
        // This fails if the stream has already ended, and then there is nothing to stop.
        let _ = self.stream.stop(code(error_code));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl<S: Side> Drop for Receiving<S> {
    fn drop(&mut self) {
        // RFC 9114 §4.1: a server that needs no more of a request signals that with H3_NO_ERROR;
        // §4.1.1: a client cancels.
        if !self.finished {
            let why = if S::IS_CLIENT { Code::H3_REQUEST_CANCELLED } else { Code::H3_NO_ERROR };
            let _ = self.stream.stop(code(why.value()));
        }
    }
}
