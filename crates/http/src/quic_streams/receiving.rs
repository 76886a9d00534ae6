//! The receiving half of a stream.

use std::{
    future::Future,
    marker::PhantomData,
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

/// Parts of a `DATA` frame that have arrived are passed on together up to this size. One by one, each
/// packet would cost a turn of everything above.
const MAX_JOINED: usize = 64 * 1024;

/// The receiving half of a stream. It is never moved into a future, so it can be stopped and
/// dropped while a read is pending.
pub(crate) struct Receiving<S: Side> {
    stream: quinn::RecvStream,
    frames: Frames,
    /// Bytes of the stream that have not been passed to h3 yet: at most one chunk from quinn.
    unread: Bytes,
    /// An end or error of the stream that was read behind data that had to be passed on first.
    deferred: Option<Result<Option<quinn::Chunk>, quinn::ReadError>>,
    finished: bool,
    side: PhantomData<S>,
}

impl<S: Side> Receiving<S> {
    pub(super) fn new(stream: quinn::RecvStream, frames: Frames) -> Self {
        Self {
            stream,
            frames,
            unread: Bytes::new(),
            deferred: None,
            finished: false,
            side: PhantomData,
        }
    }

    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<quinn::Chunk>, quinn::ReadError>> {
        match self.deferred.take() {
            Some(deferred) => Poll::Ready(deferred),
            None => pin!(self.stream.read_chunk(usize::MAX, true)).poll(cx),
        }
    }

    /// Adds what has arrived already of the same `DATA` frame.
    fn join(&mut self, cx: &mut Context<'_>, first: Bytes) -> Result<Bytes, FrameError> {
        let mut joined = BytesMut::new();
        while self.frames.is_within_data()
            && self.unread.is_empty()
            && self.deferred.is_none()
            && joined.len().max(first.len()) < MAX_JOINED
        {
            match self.poll_chunk(cx) {
                Poll::Ready(Ok(Some(chunk))) => self.unread = chunk.bytes,
                Poll::Ready(end) => self.deferred = Some(end),
                Poll::Pending => break,
            }
            if let Some(next) = self.frames.next(&mut self.unread)? {
                if joined.is_empty() {
                    joined.extend_from_slice(&first);
                }
                joined.extend_from_slice(&next);
            }
        }
        Ok(if joined.is_empty() { first } else { joined.freeze() })
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
            match self.frames.next(&mut self.unread) {
                Ok(None) => {}
                Ok(Some(piece)) => {
                    budget.made_progress();
                    let joined = self.join(cx, piece);
                    return Poll::Ready(joined.map(Some).map_err(|error| self.reject(error)));
                }
                Err(error) => return Poll::Ready(Err(self.reject(error))),
            }
            let chunk = ready!(self.poll_chunk(cx));
            budget.made_progress();
            let Some(chunk) = chunk.map_err(read_error)? else {
                self.finished = true;
                let end = self.frames.end();
                return Poll::Ready(
                    end.map_err(|error| StreamErrorIncoming::Unknown(error.into())),
                );
            };
            self.unread = chunk.bytes;
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
