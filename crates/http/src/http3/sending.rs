//! The sending half of a request's stream.

use std::sync::Arc;

use bytes::Bytes;
use eyas_h3::{code::ErrorCode, message::Content, request::RequestSender, stream::Role};
use http::HeaderMap;

use super::{
    connection::Shared,
    error::StreamError,
    message::{SentField, header_fields},
    transport::{QuicConnection, QuicSendStream as _, write_all},
};

/// The sending half of a request's stream. What is not finished when it is dropped is reset, so that the peer never
/// takes a truncated message for a complete one.
pub(crate) struct Sending<Q: QuicConnection> {
    stream: Q::SendStream,
    sender: RequestSender,
    connection: Arc<Shared<Q>>,
    finished: bool,
}

impl<Q: QuicConnection> Sending<Q> {
    pub(super) fn new(stream: Q::SendStream, connection: Arc<Shared<Q>>) -> Self {
        Self { stream, sender: RequestSender::default(), connection, finished: false }
    }

    /// Sends a head, which `content` follows.
    pub(super) async fn send_head(
        &mut self,
        fields: &[SentField<'_>],
        content: Content,
    ) -> Result<(), StreamError> {
        let section = self.connection.encode(self.stream.id(), fields)?;
        let frame = self.sender.head(&section, content)?;
        self.write(&mut [frame]).await
    }

    /// Sends a part of the content, as one frame. Returns once QUIC has taken all of it, without a copy.
    pub(crate) async fn send_data(&mut self, data: Bytes) -> Result<(), StreamError> {
        let header = self.sender.data(data.len() as u64)?;
        self.write(&mut [Bytes::copy_from_slice(header.as_ref()), data]).await
    }

    /// Sends the trailers.
    pub(crate) async fn send_trailers(&mut self, trailers: &HeaderMap) -> Result<(), StreamError> {
        let fields: Vec<_> = header_fields(trailers).collect();
        let section = self.connection.encode(self.stream.id(), &fields)?;
        let frame = self.sender.trailers(&section)?;
        self.write(&mut [frame]).await
    }

    async fn write(&mut self, chunks: &mut [Bytes]) -> Result<(), StreamError> {
        let written = write_all(&mut self.stream, chunks).await;
        written.map_err(|end| self.connection.explain(end))
    }

    /// Ends the message. On a server, this returns when the peer has acknowledged everything or has stopped reading:
    /// only then does a response count as sent. A client learns this from the response.
    pub(crate) async fn finish(&mut self) -> Result<(), StreamError> {
        self.sender.finish()?;
        self.stream.finish().map_err(|end| self.connection.explain(end))?;
        self.finished = true;
        if self.connection.role() == Role::Server {
            self.stream.stopped().await.map_err(|end| self.connection.explain(end))?;
        }
        Ok(())
    }

    /// Aborts the message, unless it has been finished.
    pub(crate) fn reset(&mut self, code: ErrorCode) {
        self.finished = true;
        self.stream.reset(code);
    }

    /// Waits until the peer reads no more, with its code, or has acknowledged all of a message that was finished.
    #[cfg(feature = "server")]
    pub(crate) fn stopped(
        &self,
    ) -> impl Future<Output = super::transport::Stopped> + Send + 'static {
        self.stream.stopped()
    }
}

impl<Q: QuicConnection> Drop for Sending<Q> {
    fn drop(&mut self) {
        if !self.finished {
            // QUIC would finish the stream, and the peer would take a truncated message for a complete one.
            self.stream.reset(match self.connection.role() {
                Role::Client => ErrorCode::RequestCancelled,
                Role::Server => ErrorCode::InternalError,
            });
        }
    }
}
