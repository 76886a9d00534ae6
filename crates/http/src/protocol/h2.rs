//! HTTP/2, implemented with hyper.

mod informational;

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Poll, ready},
};

use futures_util::FutureExt;
use http::{Request, Response, Version};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

use self::informational::InspectedStream;
use super::{
    MAX_HEAD_BYTES, SendFailure, alert::Alert, fields, queued_body::QueuedBody, wire_body,
};
use crate::{Body, Error, Kind};

/// The receive window of a stream, in bytes, which bounds what is buffered for it.
const STREAM_WINDOW: u32 = 2 * 1024 * 1024;

/// The receive window of a connection, in bytes.
const CONNECTION_WINDOW: u32 = 5 * 1024 * 1024;

/// The receive windows of a tunnel and of a connection that carries tunnels, where only the window
/// of each stream is to be a limit (RFC 9113 §6.9.1: the maximum is 2^31 - 1).
const TUNNEL_WINDOWS: (u32, u32) = (1024 * 1024, (1 << 31) - 1);

/// One HTTP/2 connection; clones share it.
#[derive(Clone)]
pub(crate) struct Http2 {
    sender: http2::SendRequest<QueuedBody>,
    /// Whether the peer accepts extended CONNECT (RFC 8441 §3), once its settings have arrived.
    extended_connect: watch::Receiver<Option<bool>>,
    alert: Arc<Alert>,
}

impl Http2 {
    /// Starts HTTP/2 on a stream. The connection runs in its own task, which ends when the last
    /// handle is dropped. With `tunnels`, a stream that is not read does not block others.
    pub(crate) async fn start<S>(stream: S, tunnels: bool) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (stream_window, connection_window) =
            if tunnels { TUNNEL_WINDOWS } else { (STREAM_WINDOW, CONNECTION_WINDOW) };
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(stream_window)
            .initial_connection_window_size(connection_window)
            .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX));
        let stream = InspectedStream::new(stream);
        let (peer_settings, alert) = (stream.peer_settings(), stream.alert());
        // Boxed because it is large, so that futures waiting for a connection stay small.
        let (sender, mut connection) = Box::pin(builder.handshake(TokioIo::new(stream)))
            .await
            .map_err(|error| Error::from_source(Kind::Protocol, error))?;
        let (extended_connect_tx, extended_connect) = watch::channel(None);
        // Not an `async` block, whose future would reserve space for the connection twice.
        tokio::spawn(poll_fn(move |cx| {
            let ended = connection.poll_unpin(cx);
            if extended_connect_tx.borrow().is_none() && peer_settings.is_received(cx) {
                extended_connect_tx
                    .send_replace(Some(connection.is_extended_connect_protocol_enabled()));
            }
            if let Err(error) = ready!(ended) {
                tracing::debug!(%error, "HTTP/2 connection ended");
            }
            Poll::Ready(())
        }));
        Ok(Self { sender, extended_connect, alert })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Returns whether the server supports extended CONNECT, once that is known.
    pub(crate) async fn supports_extended_connect(&mut self) -> bool {
        let known = self.extended_connect.wait_for(Option::is_some).await;
        // A connection that has ended supports nothing.
        known.is_ok_and(|takes| *takes == Some(true))
    }

    pub(crate) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        Ok(self.exchange(request).await?.map(wire_body::from_hyper))
    }

    /// Like [`send`](Self::send), but returns the response in a form that can be upgraded.
    pub(crate) async fn exchange(
        &mut self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, SendFailure> {
        fields::multiplex(&mut request).map_err(SendFailure::new)?;
        fields::set_content_length(&mut request);
        *request.version_mut() = Version::HTTP_2;
        match self.sender.try_send_request(request.map(QueuedBody::from)).await {
            Ok(response) => Ok(response),
            Err(mut failure) => {
                let unsent = failure.take_message().map(|request| request.into_body().into());
                let error = failure.into_error();
                if let Some(rejected) = self.alert.error() {
                    return Err(SendFailure::new(rejected));
                }
                let unprocessed = wire_body::is_unprocessed(&error);
                Err(SendFailure { error: wire_body::request_error(error), unsent, unprocessed })
            }
        }
    }
}
