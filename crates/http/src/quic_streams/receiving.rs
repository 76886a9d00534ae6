//! The receiving half of a stream.

use std::{
    future::Future,
    marker::PhantomData,
    pin::pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
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

/// The receiving half of a stream. It is never moved into a future, so it can be stopped and
/// dropped while a read is pending.
pub(crate) struct Receiving<S: Side> {
    stream: quinn::RecvStream,
    frames: Frames,
    /// Bytes of the stream that have not been passed to h3 yet: at most one chunk from quinn.
    unread: Bytes,
    finished: bool,
    side: PhantomData<S>,
}

impl<S: Side> Receiving<S> {
    pub(super) fn new(stream: quinn::RecvStream, frames: Frames) -> Self {
        Self { stream, frames, unread: Bytes::new(), finished: false, side: PhantomData }
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
                Ok(piece) => {
                    budget.made_progress();
                    return Poll::Ready(Ok(piece));
                }
                Err(error) => return Poll::Ready(Err(self.reject(error))),
            }
            let chunk = ready!(pin!(self.stream.read_chunk(usize::MAX, true)).poll(cx));
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
