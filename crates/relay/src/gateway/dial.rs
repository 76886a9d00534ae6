//! Opens connections to the upstream.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use eyas::race::candidate::{Security, Transport};
use eyas::race::policy::Policy;
use eyas::race::target::{Host, Target};
use eyas_http::EarlyAnswer;
use eyas_http::proxy_protocol::{self, Addresses};
use hyper::client::conn::http1::Builder;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::failure::Failure;
use super::pool::{Connection, Owner};
use super::shared::Shared;
use super::stats::Counters;
use super::upstream::Address;
use crate::proxy_status::ErrorType;

/// Opens a connection.
pub(super) async fn dial(shared: &Shared, owner: Owner) -> Result<Connection, Failure> {
    let permit = permit(shared).await?;
    let limit = shared.limits.connect_time;
    let connection = match &shared.upstream.0 {
        Address::Unix(path) => {
            let connecting = timeout(limit, UnixStream::connect(path)).await;
            let stream = connecting
                .map_err(|_| timed_out(shared, limit))?
                .map_err(|error| unreachable_because(shared, &error))?;
            handshake(shared, owner, stream, permit).await
        }
        Address::Tcp { host, port, secure } => {
            let stream = race(shared, host, (*port, *secure)).await?;
            handshake(shared, owner, stream, permit).await
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

async fn race(
    shared: &Shared,
    host: &Host,
    (port, secure): (u16, bool),
) -> Result<eyas::ByteStream, Failure> {
    let security = if secure { Security::Tls } else { Security::None };
    let transports = vec![Transport::Tcp];
    let mut target = Target::plain(host.clone(), port, transports.clone(), security);
    if secure {
        target = target.with_alpn(["http/1.1"]);
    }
    let deadline = shared.limits.connect_time;
    let policy = Policy { transports, deadline, ..Policy::default() };
    let mut initiation = shared.endpoint.preconnection(target).policy(policy).initiate();
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
    connection.into_stream().map_err(closed)
}

async fn handshake<T>(
    shared: &Shared,
    owner: Owner,
    mut stream: T,
    permit: OwnedSemaphorePermit,
) -> io::Result<Connection>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if shared.proxy_protocol {
        let client = owner.map(|(source, destination)| Addresses { source, destination });
        let header = proxy_protocol::header(client)
            .ok_or_else(|| io::Error::other("the PROXY header cannot be built"))?;
        stream.write_all(&header).await?;
    }
    let mut builder = Builder::new();
    let limits = &shared.limits;
    builder
        .max_buf_size(limits.header_bytes.max(super::Limits::MIN_HEADER_BYTES))
        .max_headers(limits.header_fields)
        // RFC 9112 §5.2: a gateway replaces each obs-fold in a response by spaces.
        .allow_obsolete_multiline_headers_in_responses(true);
    let stream = EarlyAnswer::new(stream);
    let input_end = stream.input_end();
    let (sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let counters = Arc::clone(&shared.counters);
    counters.open.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let (connected, cut) = Connection::new(sender, input_end);
    tokio::spawn(async move {
        tokio::select! {
            // The request gets the error. Between requests it does not matter.
            _ = connection.with_upgrades() => {}
            () = cut.cancelled() => {}
        }
        counters.open.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        drop(permit);
    });
    Ok(connected)
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
