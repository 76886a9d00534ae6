//! A request stream before it is split into its halves.

use std::task::{Context, Poll};

use bytes::Bytes;
use h3::quic::{self, StreamErrorIncoming, StreamId, WriteBuf};

use super::{Receiving, Sending, Side};

/// A request stream that has not been split.
pub(crate) struct RequestStream<S: Side> {
    pub(super) send: Sending<S>,
    pub(super) recv: Receiving<S>,
}

impl<S: Side> quic::BidiStream<Bytes> for RequestStream<S> {
    type SendStream = Sending<S>;
    type RecvStream = Receiving<S>;

    fn split(mut self) -> (Sending<S>, Receiving<S>) {
        self.send.is_owned_by_h3 = false;
        (self.send, self.recv)
    }
}

impl<S: Side> quic::SendStream<Bytes> for RequestStream<S> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
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

impl<S: Side> quic::RecvStream for RequestStream<S> {
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
