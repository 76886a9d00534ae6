//! The streams of h3 over noq.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use noq::{ReadError, VarInt, WriteError};
use tokio_util::sync::ReusableBoxFuture;

use crate::stream_error;

/// A bidirectional stream.
pub struct BidiStream<B: Buf> {
    send: SendStream<B>,
    recv: RecvStream,
}

impl<B: Buf> BidiStream<B> {
    pub(crate) fn new((send, recv): (noq::SendStream, noq::RecvStream)) -> Self {
        Self { send: SendStream::new(send), recv: RecvStream::new(recv) }
    }
}

impl<B: Buf> quic::BidiStream<B> for BidiStream<B> {
    type SendStream = SendStream<B>;
    type RecvStream = RecvStream;

    fn split(self) -> (Self::SendStream, Self::RecvStream) {
        (self.send, self.recv)
    }
}

impl<B: Buf> quic::RecvStream for BidiStream<B> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}

impl<B: Buf> quic::SendStream<B> for BidiStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<D: Into<WriteBuf<B>>>(&mut self, data: D) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

type Reading = ReusableBoxFuture<'static, (noq::RecvStream, Result<Option<Bytes>, ReadError>)>;

/// The receiving half of a stream.
pub struct RecvStream {
    /// `None` while a read is in progress.
    stream: Option<noq::RecvStream>,
    reading: Reading,
}

impl RecvStream {
    pub(crate) fn new(stream: noq::RecvStream) -> Self {
        // Never polled: each read replaces it first.
        Self { stream: Some(stream), reading: ReusableBoxFuture::new(async { unreachable!() }) }
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        if let Some(mut stream) = self.stream.take() {
            self.reading.set(async move {
                let chunk = stream.read_chunk(usize::MAX).await;
                (stream, chunk)
            });
        }
        let (stream, chunk) = ready!(self.reading.poll(cx));
        self.stream = Some(stream);
        Poll::Ready(chunk.map_err(|error| match error {
            ReadError::Reset(code) => {
                StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() }
            }
            ReadError::ConnectionLost(error) => stream_error(error),
            error => StreamErrorIncoming::Unknown(Box::new(error)),
        }))
    }

    fn stop_sending(&mut self, error_code: u64) {
        let code = VarInt::from_u64(error_code).expect("HTTP/3 error codes fit");
        // This fails only if the stream has already ended.
        let _ = self.stream.as_mut().expect("no read is in progress").stop(code);
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.stream.as_ref().expect("no read is in progress").id())
    }
}

/// The sending half of a stream.
pub struct SendStream<B: Buf> {
    stream: noq::SendStream,
    writing: Option<WriteBuf<B>>,
}

impl<B: Buf> SendStream<B> {
    pub(crate) fn new(stream: noq::SendStream) -> Self {
        Self { stream, writing: None }
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if let Some(data) = &mut self.writing {
            while data.has_remaining() {
                let stream = Pin::new(&mut self.stream);
                let written = ready!(stream.poll_write(cx, data.chunk())).map_err(write_error)?;
                data.advance(written);
            }
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<D: Into<WriteBuf<B>>>(&mut self, data: D) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            let message = "data was sent before the previous data was written".to_owned();
            let connection_error = ConnectionErrorIncoming::InternalError(message);
            return Err(StreamErrorIncoming::ConnectionErrorIncoming { connection_error });
        }
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let finished = self.stream.finish();
        Poll::Ready(finished.map_err(|error| StreamErrorIncoming::Unknown(Box::new(error))))
    }

    fn reset(&mut self, reset_code: u64) {
        // This fails only if the stream has already ended.
        let _ = self.stream.reset(VarInt::from_u64(reset_code).unwrap_or(VarInt::MAX));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

fn write_error(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => {
            StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() }
        }
        WriteError::ConnectionLost(error) => stream_error(error),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

fn stream_id(id: noq::StreamId) -> StreamId {
    u64::from(id).try_into().expect("stream IDs are those of RFC 9000")
}
