//! HTTP/2, implemented with hyper.

mod informational;

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Poll, ready},
    time::Duration,
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
    Life, MAX_HEAD_BYTES, SendFailure, alert::Alert, fields, queued_body::QueuedBody, wire_body,
};
use crate::{Body, Error, Kind};

/// The receive window of a stream, in bytes, which bounds what is buffered for it.
const STREAM_WINDOW: u32 = 2 * 1024 * 1024;

/// The receive window of a connection, in bytes.
const CONNECTION_WINDOW: u32 = 5 * 1024 * 1024;

/// The largest frame that is received, in bytes: with its header (RFC 9113 §4.1) it fills four records of TLS. With the
/// smallest allowed one, of 16 KiB, each frame would take a record and a few bytes of another.
const FRAME_BYTES: u32 = 4 * 16 * 1024 - 9;

/// The receive windows of a tunnel and of a connection that carries tunnels, where only the window
/// of each stream is to be a limit (RFC 9113 §6.9.1: the maximum is 2^31 - 1).
const TUNNEL_WINDOWS: (u32, u32) = (1024 * 1024, (1 << 31) - 1);

/// How the peer is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    /// Through the tunnel of a proxy.
    Tunnel,
}

/// How long a peer behind a tunnel may be silent while responses are outstanding before it is sent a
/// PING (RFC 9113 §6.7), and how long after that the connection is lost: the transport below only
/// shows whether the proxy still answers. The same times as over QUIC.
const PING_AFTER: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(30);

/// One HTTP/2 connection; clones share it.
#[derive(Clone)]
pub(crate) struct Http2 {
    sender: http2::SendRequest<QueuedBody>,
    /// Whether the peer accepts extended CONNECT (RFC 8441 §3), once its settings have arrived.
    extended_connect: watch::Receiver<Option<bool>>,
    alert: Arc<Alert>,
    /// What tells whether the host at the other end still answers.
    pub(super) below: Life,
}

impl Http2 {
    /// Starts HTTP/2 on a stream. The connection runs in its own task, which ends when the last
    /// handle is dropped. With `tunnels`, a stream that is not read does not block others.
    pub(crate) async fn start<S>(stream: S, way: Way, tunnels: bool) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (stream_window, connection_window) =
            if tunnels { TUNNEL_WINDOWS } else { (STREAM_WINDOW, CONNECTION_WINDOW) };
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval((way == Way::Tunnel).then_some(PING_AFTER))
            .keep_alive_timeout(PING_TIMEOUT)
            .initial_stream_window_size(stream_window)
            .initial_connection_window_size(connection_window)
            .max_frame_size(FRAME_BYTES)
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
        Ok(Self { sender, extended_connect, alert, below: Life::Unknown })
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

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        time::Instant,
    };

    use super::*;

    /// The frames that a client must get for its first request to have begun: SETTINGS, its
    /// acknowledgement, and HEADERS with `:status: 200` (RFC 7541 appendix A).
    const BEGUN: &[u8] =
        b"\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0\0\0\x01\x01\x04\0\0\0\x01\x88";

    /// Answers the first request, and then nothing; returns how many PINGs have come, if the client
    /// ends the connection.
    async fn fall_silent(mut peer: DuplexStream) -> usize {
        let mut preface = [0; 24];
        peer.read_exact(&mut preface).await.expect("a preface");
        let (mut pings, mut has_begun) = (0, false);
        let mut head = [0; 9];
        while peer.read_exact(&mut head).await.is_ok() {
            let length = usize::from(head[1]) << 8 | usize::from(head[2]);
            let mut payload = vec![0; length];
            peer.read_exact(&mut payload).await.expect("a whole frame");
            // HEADERS and PING.
            if head[3] == 1 && !std::mem::replace(&mut has_begun, true) {
                peer.write_all(BEGUN).await.expect("an open connection");
            }
            pings += usize::from(head[3] == 6);
        }
        pings
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_behind_a_tunnel_is_noticed() {
        for (way, pings) in [(Way::Tunnel, 1), (Way::Direct, 0)] {
            let (stream, peer) = duplex(65_536);
            let peer = tokio::spawn(fall_silent(peer));
            let mut http2 = Http2::start(stream, way, false).await.expect("it starts");
            let request = Request::get("https://a.example/").body(Body::empty());
            let response = http2.send(request.expect("a request")).await;
            let mut body = response.ok().expect("a response").into_body();
            let begun = Instant::now();
            let next = http_body_util::BodyExt::frame(&mut body);
            let next = tokio::time::timeout(Duration::from_secs(3600), next).await;
            match way {
                Way::Tunnel => {
                    let error = next.expect("an end").expect("no clean end").expect_err("an error");
                    assert_eq!(error.kind(), Kind::BodyReset, "{error}");
                    assert!(begun.elapsed() < 2 * (PING_AFTER + PING_TIMEOUT));
                }
                // The kernel's keep-alive notices it.
                Way::Direct => assert!(next.is_err()),
            }
            drop((body, http2));
            assert_eq!(peer.await.expect("no panic"), pings, "{way:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_through_a_tunnel_sends_nothing() {
        let (stream, peer) = duplex(65_536);
        let peer = tokio::spawn(fall_silent(peer));
        let http2 = Http2::start(stream, Way::Tunnel, false).await.expect("it starts");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        drop(http2);
        assert_eq!(peer.await.expect("no panic"), 0);
    }
}
