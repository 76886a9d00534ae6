//! HTTP/2 by hyper.

mod informational;

use std::{
    future::poll_fn,
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

use self::informational::Followed;
use super::{MAX_HEAD_BYTES, SendFailure, fields, queued_body::QueuedBody, wire_body};
use crate::{Body, Error, Kind};

/// What a stream may have under way towards us, in bytes: the receiver's buffer is bounded by it.
const STREAM_WINDOW: u32 = 2 * 1024 * 1024;

/// What all streams of a connection together may have under way, in bytes.
const CONNECTION_WINDOW: u32 = 5 * 1024 * 1024;

/// The same of a tunnel, and of all tunnels of a connection, which each have their own window alone
/// (RFC 9113 §6.9.1: 2^31 - 1 is the most).
const TUNNEL_WINDOWS: (u32, u32) = (1024 * 1024, (1 << 31) - 1);

/// One HTTP/2 connection; clones share it.
#[derive(Clone)]
pub(crate) struct Http2 {
    sender: http2::SendRequest<QueuedBody>,
    /// Whether the peer accepts extended CONNECT (RFC 8441 §3), once its settings have arrived.
    extended_connect: watch::Receiver<Option<bool>>,
}

impl Http2 {
    /// Takes over a stream. The connection runs in its own task, which ends with the last handle.
    /// If the streams are `tunnels`, an unread one stops only itself.
    pub(crate) async fn start<S>(stream: S, tunnels: bool) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (own, shared) =
            if tunnels { TUNNEL_WINDOWS } else { (STREAM_WINDOW, CONNECTION_WINDOW) };
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(own)
            .initial_connection_window_size(shared)
            .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX));
        let stream = Followed::new(stream);
        let greeting = stream.greeting();
        // Boxed because it is large, so that futures waiting for a connection stay small.
        let (sender, mut connection) = Box::pin(builder.handshake(TokioIo::new(stream)))
            .await
            .map_err(|error| Error::from_source(Kind::Protocol, error))?;
        let (tell, extended_connect) = watch::channel(None);
        // No block with an `await`: it would have room for the connection twice.
        tokio::spawn(poll_fn(move |cx| {
            let ended = connection.poll_unpin(cx);
            if tell.borrow().is_none() && greeting.is_over(cx) {
                tell.send_replace(Some(connection.is_extended_connect_protocol_enabled()));
            }
            if let Err(error) = ready!(ended) {
                tracing::debug!(%error, "HTTP/2 connection ended");
            }
            Poll::Ready(())
        }));
        Ok(Self { sender, extended_connect })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether the server accepts extended CONNECT, once that is known.
    pub(crate) async fn takes_extended_connect(&mut self) -> bool {
        let known = self.extended_connect.wait_for(Option::is_some).await;
        // A connection that has ended accepts none.
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
        fields::strip_connection_fields(request.headers_mut());
        *request.version_mut() = Version::HTTP_2;
        match self.sender.try_send_request(request.map(QueuedBody::from)).await {
            Ok(response) => Ok(response),
            Err(mut failure) => {
                let unsent = failure.take_message().map(|request| request.into_body().into());
                let error = failure.into_error();
                let unprocessed = wire_body::is_unprocessed(&error);
                Err(SendFailure { error: wire_body::request_error(error), unsent, unprocessed })
            }
        }
    }
}
