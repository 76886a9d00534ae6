//! The sending half of a stream.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use h3::{
    error::Code,
    quic::{self, StreamErrorIncoming, StreamId, WriteBuf},
};
use quinn::{StoppedError, VarInt};

use super::{
    Side, Waiting, code,
    connect::without_scheme_and_path,
    failure::{on_connection, write_error},
    stream_id,
};

/// The sending half of a stream.
pub(crate) struct Sending<S: Side> {
    stream: quinn::SendStream,
    writing: Option<Writing>,
    delivered: Option<Waiting<Option<VarInt>, StoppedError>>,
    finished: bool,
    /// Whether h3 still owns the stream, because it is reading the request's head.
    pub(super) is_owned_by_h3: bool,
    has_written: bool,
    /// Whether the next frame may be the head of a CONNECT.
    may_connect: bool,
    /// The guard of a request's stream.
    _guard: Option<S::RequestGuard>,
}

/// What is being written.
enum Writing {
    /// A frame as encoded by h3.
    Frame(WriteBuf<Bytes>),
    /// The head of a request that may be a CONNECT.
    Head(Bytes),
}

impl Writing {
    fn chunk(&self) -> &[u8] {
        match self {
            Self::Frame(frame) => frame.chunk(),
            Self::Head(head) => head.chunk(),
        }
    }

    fn advance(&mut self, bytes: usize) {
        match self {
            Self::Frame(frame) => frame.advance(bytes),
            Self::Head(head) => head.advance(bytes),
        }
    }
}

impl<S: Side> Sending<S> {
    pub(super) fn new(stream: quinn::SendStream) -> Self {
        Self {
            stream,
            writing: None,
            delivered: None,
            finished: false,
            is_owned_by_h3: true,
            has_written: false,
            may_connect: false,
            _guard: None,
        }
    }

    /// Creates the half of a request stream that carries the request or the response.
    pub(super) fn of_request(
        stream: quinn::SendStream,
        guard: S::RequestGuard,
        may_connect: bool,
    ) -> Self {
        let mut sending = Self::new(stream);
        sending.may_connect = may_connect;
        sending._guard = Some(guard);
        sending
    }
}

impl<S: Side> quic::SendStream<Bytes> for Sending<S> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(data) = &mut self.writing {
            if data.chunk().is_empty() {
                self.writing = None;
                break;
            }
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, data.chunk()))
                .map_err(write_error)?;
            data.advance(written);
            self.has_written = true;
        }
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            return Err(StreamErrorIncoming::Unknown("written to while not ready".into()));
        }
        let mut data = data.into();
        self.writing = Some(match std::mem::take(&mut self.may_connect) {
            true => Writing::Head(without_scheme_and_path(data.copy_to_bytes(data.remaining()))),
            false => Writing::Frame(data),
        });
        Ok(())
    }

    /// On a server, ready when the peer has acknowledged everything or has stopped reading: only
    /// then does a response count as sent. A client learns this from the response.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if !self.finished {
            self.stream.finish().map_err(|error| StreamErrorIncoming::Unknown(error.into()))?;
            self.finished = true;
            self.delivered =
                (!S::IS_CLIENT).then(|| Box::pin(self.stream.stopped()) as Waiting<_, _>);
        }
        let Some(delivered) = &mut self.delivered else { return Poll::Ready(Ok(())) };
        match ready!(delivered.as_mut().poll(cx)) {
            Ok(_) => Poll::Ready(Ok(())),
            Err(StoppedError::ConnectionLost(error)) => Poll::Ready(Err(on_connection(error))),
            Err(error) => Poll::Ready(Err(StreamErrorIncoming::Unknown(error.into()))),
        }
    }

    fn reset(&mut self, reset_code: u64) {
        self.finished = true;
        // This fails if the stream is already finished or reset, and then there is nothing to
        // abort.
        let _ = self.stream.reset(code(reset_code));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl<S: Side> Drop for Sending<S> {
    fn drop(&mut self) {
        if !S::IS_CLIENT && self.is_owned_by_h3 && self.has_written {
            // h3 has answered 431 itself and relies on quinn to finish the stream.
            let _ = self.stream.finish();
        } else if !self.finished {
            // quinn would finish the stream, and the peer would take a truncated message for a
            // complete one.
            let why =
                if S::IS_CLIENT { Code::H3_REQUEST_CANCELLED } else { Code::H3_INTERNAL_ERROR };
            let _ = self.stream.reset(code(why.value()));
        }
    }
}
