//! Starts HTTP on connections to the upstream.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use eyas::ConnectionFeedback;
use eyas_http::proxy_protocol::{self, Addresses};
use eyas_http::{EarlyAnswer, Http3Sender, Patience};
use futures_util::FutureExt as _;
use hyper::client::conn::http1::Builder;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use crate::connection::{UpstreamConnection, WantedConnection};
use crate::http1_connection::Http1Connection;
use crate::settings::SettingsStream;
use crate::share::{MAX_STREAMS, SharedSender};
use crate::shared::SharedGateway;
use crate::stats::GatewayCounters;
use crate::upstream::UpstreamScheme;

/// The interval of PINGs on a connection over HTTP/2 with requests in flight, and the time for the answer. So a
/// host that has disappeared is noticed long before a response would be late.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// The same over HTTP/3: such a host is given up after 8 to 10 s, and gets no more requests after 4 to 6 s.
const PATIENCE: Patience =
    Patience { interval: Duration::from_secs(2), asked_after: 1, questions: Some(3) };
/// The flow control window of a response over HTTP/2, in bytes.
const STREAM_WINDOW: u32 = 256 * 1024;
/// That of a connection: clients that do not read their responses must not hold up those of others.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;

/// Counts a connection as open until it is dropped.
struct OpenConnection {
    counters: Arc<GatewayCounters>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.counters.open.fetch_sub(1, Relaxed);
    }
}

/// Starts HTTP/1.1 on a stream to the upstream.
pub(crate) async fn http1<T>(
    shared: &SharedGateway,
    wanted: WantedConnection,
    (mut stream, feedback): (T, Option<ConnectionFeedback>),
    permit: OwnedSemaphorePermit,
) -> io::Result<UpstreamConnection>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if shared.proxy_protocol {
        let client = wanted.owner.map(|(source, destination)| Addresses { source, destination });
        let header = proxy_protocol::header(client)
            .ok_or_else(|| io::Error::other("the PROXY header cannot be built"))?;
        stream.write_all(&header).await?;
    }
    let mut builder = Builder::new();
    let limits = &shared.limits;
    builder
        .max_buf_size(limits.header_bytes.max(crate::GatewayLimits::MIN_HEADER_BYTES))
        .max_headers(limits.header_fields)
        .preserve_header_case(true)
        // RFC 9112 §5.2: a gateway replaces each obs-fold in a response by spaces.
        .allow_obsolete_multiline_headers_in_responses(true);
    let stream = EarlyAnswer::new(stream);
    let input_end = stream.input_end();
    let (sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let counters = Arc::clone(&shared.counters);
    counters.open.fetch_add(1, Relaxed);
    let open = OpenConnection { counters, _permit: permit };
    let work = async move {
        let _open = open;
        // The request gets the error. Between requests it does not matter.
        let _ = connection.with_upgrades().await;
    };
    Ok(UpstreamConnection::Http1(Http1Connection::new(sender, work, input_end, feedback)))
}

/// Starts HTTP/2 on a stream to the upstream, and returns the first share of it.
pub(crate) async fn http2(
    shared: &SharedGateway,
    scheme: UpstreamScheme,
    stream: eyas::ByteStream,
    permit: OwnedSemaphorePermit,
) -> io::Result<UpstreamConnection> {
    let feedback = stream.feedback().clone();
    let header_bytes = u32::try_from(shared.limits.header_bytes).unwrap_or(u32::MAX);
    let stream = SettingsStream::new(stream);
    let settings = stream.signal();
    let (sender, mut connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(header_bytes)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    let counters = Arc::clone(&shared.counters);
    counters.open.fetch_add(1, Relaxed);
    let (extended_connect_tx, extended_connect) = watch::channel(None);
    tokio::spawn(async move {
        // Its requests get the error.
        let _ = poll_fn(|cx| {
            let ended = connection.poll_unpin(cx);
            if extended_connect_tx.borrow().is_none() && settings.are_read(cx) {
                let is_enabled = connection.is_extended_connect_protocol_enabled();
                extended_connect_tx.send_replace(Some(is_enabled));
            }
            ended
        })
        .await;
        counters.open.fetch_sub(1, Relaxed);
        drop(permit);
    });
    shared.is_multiplexed.store(true, Relaxed);
    // Where HTTP/3 would be better, the next race is to find out whether it works by now.
    let is_fallback = scheme == UpstreamScheme::Https && shared.allows_http3;
    let until = is_fallback.then(|| Instant::now() + shared.limits.fallback_time);
    let sender = SharedSender::Http2(sender, extended_connect);
    let share = shared.pool.share(sender, scheme, feedback, until);
    share.ok_or_else(|| io::Error::other("no request fits on a new connection"))
}

/// Starts HTTP/3 on a QUIC connection to the upstream, and returns the first share of it.
pub(crate) async fn http3(
    shared: &SharedGateway,
    scheme: UpstreamScheme,
    connection: &eyas::Connection,
    permit: OwnedSemaphorePermit,
) -> io::Result<UpstreamConnection> {
    let quic = connection.quic().cloned().ok_or(io::ErrorKind::NotConnected)?;
    let started = Http3Sender::start(quic, shared.limits.header_bytes, PATIENCE).await;
    let sender = started.map_err(io::Error::other)?;
    let (closed, counters) = (sender.closed(), Arc::clone(&shared.counters));
    counters.open.fetch_add(1, Relaxed);
    tokio::spawn(async move {
        closed.await;
        counters.open.fetch_sub(1, Relaxed);
        drop(permit);
    });
    shared.is_multiplexed.store(true, Relaxed);
    let share = shared.pool.share(SharedSender::Http3(sender), scheme, connection.feedback(), None);
    share.ok_or_else(|| io::Error::other("no request fits on a new connection"))
}
