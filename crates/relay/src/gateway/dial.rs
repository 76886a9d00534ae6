//! Opens connections to the upstream.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use eyas::Feedback;
use eyas::race::candidate::{Security, Transport};
use eyas::race::policy::Policy;
use eyas::race::target::{Host, Target};
use eyas_http::EarlyAnswer;
use eyas_http::proxy_protocol::{self, Addresses};
use hyper::client::conn::http1::Builder;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::connection::{Connection, Http1Connection, Wanted};
use super::failure::Failure;
use super::shared::Shared;
use super::stats::Counters;
use super::upstream::{Address, Scheme};
use crate::proxy_status::ErrorType;

/// The interval of PINGs on a connection over HTTP/2 with requests in flight, and the time for the answer. So a
/// host that has disappeared is noticed long before a response would be late.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// The flow control window of a response over HTTP/2, in bytes.
const STREAM_WINDOW: u32 = 256 * 1024;
/// That of a connection: clients that do not read their responses must not hold up those of others.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * super::pool::MAX_STREAMS as u32;

/// Opens a connection. One over HTTP/2 is opened by one request for all that wait for it.
pub(super) async fn connect(shared: &Shared, wanted: Wanted) -> Result<Connection, Failure> {
    let is_shared = !wanted.http1_only && shared.speaks_http2.load(Relaxed);
    if !is_shared {
        return dial(shared, wanted).await;
    }
    let _turn = shared.dialling.lock().await;
    match shared.pool.take(wanted) {
        Some(connection) => Ok(connection),
        None => dial(shared, wanted).await,
    }
}

async fn dial(shared: &Shared, wanted: Wanted) -> Result<Connection, Failure> {
    let permit = permit(shared).await?;
    let limit = shared.limits.connect_time;
    let connection = match &shared.upstream.0 {
        Address::Unix(path) => {
            let connecting = timeout(limit, UnixStream::connect(path)).await;
            let stream = connecting
                .map_err(|_| timed_out(shared, limit))?
                .map_err(|error| unreachable_because(shared, &error))?;
            handshake(shared, wanted, (stream, None), permit).await
        }
        Address::Tcp { scheme: Scheme::H2c, .. } if wanted.http1_only => {
            return Err(Failure::NoUpgrade);
        }
        Address::Tcp { host, port, scheme } => {
            let (stream, is_http2) = race(shared, host, (*port, *scheme), wanted).await?;
            match is_http2 {
                true => handshake_http2(shared, *scheme, stream, permit).await,
                false => {
                    if !wanted.http1_only {
                        shared.speaks_http2.store(false, Relaxed);
                    }
                    let feedback = Some(stream.feedback().clone());
                    handshake(shared, wanted, (stream, feedback), permit).await
                }
            }
        }
    };
    let connection = connection.map_err(|error| unreachable_because(shared, &error))?;
    Counters::count(&shared.counters.connections);
    Ok(connection)
}

/// Waits for the permit for another connection.
async fn permit(shared: &Shared) -> Result<OwnedSemaphorePermit, Failure> {
    if let Ok(permit) = Arc::clone(&shared.permits).try_acquire_owned() {
        return Ok(permit);
    }
    // An idle connection makes room.
    shared.pool.close_oldest();
    let waiting = Arc::clone(&shared.permits).acquire_owned();
    match timeout(shared.limits.connect_time, waiting).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) | Err(_) => Err(Failure::Busy(shared.limits.connections)),
    }
}

/// Returns a stream to the upstream, and whether it is for HTTP/2.
async fn race(
    shared: &Shared,
    host: &Host,
    (port, scheme): (u16, Scheme),
    wanted: Wanted,
) -> Result<(eyas::ByteStream, bool), Failure> {
    let security = if scheme.is_secure() { Security::Tls } else { Security::None };
    let transports = vec![Transport::Tcp];
    let mut target = Target::plain(host.clone(), port, transports.clone(), security);
    if scheme.is_secure() {
        let names: &[&str] = if wanted.http1_only { &["http/1.1"] } else { &["h2", "http/1.1"] };
        target = target.with_alpn(names.iter().copied());
    }
    let deadline = shared.limits.connect_time;
    let policy = Policy { transports, deadline, ..Policy::default() };
    let mut initiation = shared.endpoint().preconnection(target).policy(policy).initiate();
    let connection = initiation.usable().await.map_err(|error| {
        let (error_type, text) = (ErrorType::from(&error), error.to_string());
        match error_type.is_connect_timeout() {
            true => Failure::ConnectTimedOut(error_type, text),
            false => Failure::Unreachable(error_type, text),
        }
    })?;
    initiation.detach();
    let closed = |_| {
        let text = format!("{} closed at once", shared.upstream);
        Failure::Unreachable(ErrorType::ConnectionTerminated, text)
    };
    let is_http2 = match scheme {
        Scheme::Http => false,
        Scheme::H2c => true,
        Scheme::Https => connection.info().alpn.as_deref() == Some("h2"),
    };
    Ok((connection.into_stream().map_err(closed)?, is_http2))
}

async fn handshake<T>(
    shared: &Shared,
    wanted: Wanted,
    (mut stream, feedback): (T, Option<Feedback>),
    permit: OwnedSemaphorePermit,
) -> io::Result<Connection>
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
        .max_buf_size(limits.header_bytes.max(super::Limits::MIN_HEADER_BYTES))
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
    let (connected, cut) = Http1Connection::new(sender, input_end, feedback);
    tokio::spawn(async move {
        tokio::select! {
            // The request gets the error. Between requests it does not matter.
            _ = connection.with_upgrades() => {}
            () = cut.cancelled() => {}
        }
        counters.open.fetch_sub(1, Relaxed);
        drop(permit);
    });
    Ok(Connection::Http1(connected))
}

async fn handshake_http2(
    shared: &Shared,
    scheme: Scheme,
    stream: eyas::ByteStream,
    permit: OwnedSemaphorePermit,
) -> io::Result<Connection> {
    let feedback = stream.feedback().clone();
    let header_bytes = u32::try_from(shared.limits.header_bytes).unwrap_or(u32::MAX);
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
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
    tokio::spawn(async move {
        // Its requests get the error.
        let _ = connection.await;
        counters.open.fetch_sub(1, Relaxed);
        drop(permit);
    });
    shared.speaks_http2.store(true, Relaxed);
    let share = shared.pool.share(sender, scheme, feedback);
    share.ok_or_else(|| io::Error::other("no request fits on a new connection"))
}

fn timed_out(shared: &Shared, limit: Duration) -> Failure {
    let text = format!("{} accepted no connection within {limit:?}", shared.upstream);
    Failure::ConnectTimedOut(ErrorType::ConnectionTimeout, text)
}

fn unreachable_because(shared: &Shared, error: &io::Error) -> Failure {
    let error_type = match error.kind() {
        io::ErrorKind::ConnectionRefused => ErrorType::ConnectionRefused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            ErrorType::ConnectionTerminated
        }
        _ => ErrorType::DestinationUnavailable,
    };
    Failure::Unreachable(error_type, format!("cannot connect to {}: {error}", shared.upstream))
}
