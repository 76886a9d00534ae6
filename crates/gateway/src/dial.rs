//! Opens connections to the upstream.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use eyas::Initiation;
use eyas::host::unix_socket::UnixStream;
use eyas::race::candidate::{Security, Transport};
use eyas::race::evidence::{self, EvidenceLevel, FailureCause};
use eyas::race::policy::Policy;
use eyas::race::target::{Target, TargetHost, TargetService};
use eyas_relay::proxy_status::ErrorType;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};

use crate::connection::{UpstreamConnection, WantedConnection};
use crate::failure::UpstreamFailure;
use crate::handshake;
use crate::shared::SharedGateway;
use crate::stats::GatewayCounters;
use crate::upstream::{UpstreamAddress, UpstreamScheme};

/// The limit on connections that are opened because the ones before ended before HTTP had begun on them.
const MAX_STARTED: u32 = 3;

/// Opens a connection. One that many requests share is opened by one of them for all that wait for it, and so is its
/// failure theirs.
pub(crate) async fn connect(
    shared: &Arc<SharedGateway>,
    wanted: WantedConnection,
) -> Result<UpstreamConnection, UpstreamFailure> {
    let is_shared = !wanted.http1_only && shared.is_multiplexed.load(Relaxed);
    if !is_shared {
        return dial(shared, wanted).await;
    }
    let asked = Instant::now();
    let mut last = shared.dialling.lock().await;
    if let Some(connection) = shared.pool.acquire(wanted) {
        return Ok(connection);
    }
    if let Some((began, failure)) = &*last
        && *began >= asked
    {
        return Err(failure.clone());
    }
    let began = Instant::now();
    let dialled = dial(shared, wanted).await;
    *last = dialled.as_ref().err().map(|failure| (began, failure.clone()));
    dialled
}

async fn dial(
    shared: &Arc<SharedGateway>,
    wanted: WantedConnection,
) -> Result<UpstreamConnection, UpstreamFailure> {
    match &shared.upstream.0 {
        UpstreamAddress::Unix(path) => {
            let (permit, limit) = (permit(shared).await?, shared.limits.connect_time);
            let connecting = timeout(limit, UnixStream::connect(path)).await;
            let stream = connecting
                .map_err(|_| timed_out(shared, limit))?
                .map_err(|error| unreachable_because(shared, &error))?;
            let connection = handshake::http1(shared, wanted, (stream, None), permit).await;
            let connection = connection.map_err(|error| unreachable_because(shared, &error))?;
            GatewayCounters::count(&shared.counters.connections);
            Ok(connection)
        }
        UpstreamAddress::Host { .. } if wanted.http1_only && shared.upstream.has_no_http1() => {
            Err(UpstreamFailure::NoUpgrade)
        }
        UpstreamAddress::Host { host, port, scheme } => {
            let mut started = 0;
            loop {
                let permit = permit(shared).await?;
                let connection = win(shared, host, (*port, *scheme), wanted).await?;
                let feedback = connection.feedback();
                started += 1;
                match start(shared, wanted, (connection, *scheme), permit).await {
                    // Its host went down just after the kernel had accepted the connection. Nothing of a request was
                    // sent, and the next race finds another address of the upstream.
                    Err(failure) if started < MAX_STARTED => {
                        let (cause, reached) = (FailureCause::Reset, EvidenceLevel::Transport);
                        let detail = failure.to_string();
                        feedback.broke(evidence::AttemptFailure::new(cause, reached, detail));
                    }
                    result => return result,
                }
            }
        }
    }
}

/// Races for a connection to the upstream.
async fn win(
    shared: &Arc<SharedGateway>,
    host: &TargetHost,
    (port, scheme): (u16, UpstreamScheme),
    wanted: WantedConnection,
) -> Result<eyas::Connection, UpstreamFailure> {
    let (target, policy) = race(shared, host, (port, scheme), wanted);
    // HTTP/3 does it while there are requests.
    let preconnection = shared.endpoint().preconnection(target).without_quic_keep_alive();
    let mut initiation = preconnection.policy(policy).initiate();
    let connection = initiation.usable().await.map_err(|error| {
        let (error_type, text) = (ErrorType::from(&error), error.to_string());
        match error_type.is_connect_timeout() {
            true => UpstreamFailure::ConnectTimedOut(error_type, text),
            false => UpstreamFailure::Unreachable(error_type, text),
        }
    })?;
    match wanted.http1_only || initiation.is_over() {
        true => initiation.detach(),
        false => await_better(shared, scheme, initiation),
    }
    Ok(connection)
}

/// Waits for the permit for another connection.
async fn permit(shared: &SharedGateway) -> Result<OwnedSemaphorePermit, UpstreamFailure> {
    if let Ok(permit) = Arc::clone(&shared.permits).try_acquire_owned() {
        return Ok(permit);
    }
    // An idle connection makes room.
    shared.pool.close_oldest();
    let waiting = Arc::clone(&shared.permits).acquire_owned();
    match timeout(shared.limits.connect_time, waiting).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) | Err(_) => Err(UpstreamFailure::Busy(shared.limits.connections)),
    }
}

/// Returns what a new connection is raced for: HTTP/3 over QUIC beside the older versions over TCP, where it may be
/// used.
fn race(
    shared: &SharedGateway,
    host: &TargetHost,
    (port, scheme): (u16, UpstreamScheme),
    wanted: WantedConnection,
) -> (Target, Policy) {
    let has_http3 = !wanted.http1_only && (scheme == UpstreamScheme::H3 || shared.allows_http3);
    let (stream_alpn, quic_alpn): (&[&str], &[&str]) = match scheme {
        UpstreamScheme::H3 => (&[], &["h3"]),
        UpstreamScheme::Https if wanted.http1_only => (&["http/1.1"], &[]),
        UpstreamScheme::Https if has_http3 => (&["h2", "http/1.1"], &["h3"]),
        UpstreamScheme::Https => (&["h2", "http/1.1"], &[]),
        UpstreamScheme::Http | UpstreamScheme::H2c => (&[], &[]),
    };
    let transports = match (stream_alpn.is_empty(), quic_alpn.is_empty()) {
        (_, true) => vec![Transport::Tcp],
        (true, false) => vec![Transport::Quic],
        (false, false) => vec![Transport::Quic, Transport::Tcp],
    };
    let target = match scheme.is_secure() {
        true => {
            let alpn = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let (stream_alpn, quic_alpn) = (alpn(stream_alpn), alpn(quic_alpn));
            let service = TargetService::Http { stream_alpn, quic_alpn };
            Target { service, ..Target::https(host.clone(), port) }
        }
        false => Target::plain(host.clone(), port, transports.clone(), Security::None),
    };
    let deadline = shared.limits.connect_time;
    (target, Policy { transports, deadline, ..Policy::default() })
}

/// Implements the late switch: a connection over HTTP/3 that becomes ready after the race was won is used for later
/// requests.
fn await_better(shared: &Arc<SharedGateway>, scheme: UpstreamScheme, mut initiation: Initiation) {
    let weak = Arc::downgrade(shared);
    tokio::spawn(async move {
        while let Some(connection) = initiation.better().await {
            let Some(shared) = weak.upgrade() else { return };
            let permit = Arc::clone(&shared.permits).try_acquire_owned();
            let Some(permit) = permit.ok().filter(|_| !shared.pool.has_http3()) else { continue };
            let wanted = WantedConnection::new(None, false);
            // Its first share is not used.
            match start(&shared, wanted, (connection, scheme), permit).await {
                Ok(_) => tracing::debug!("changed to the better connection"),
                Err(failure) => tracing::debug!(%failure, "the better connection failed"),
            }
        }
        initiation.finished().await;
    });
}

/// Starts the version of HTTP that a connection has negotiated.
async fn start(
    shared: &SharedGateway,
    wanted: WantedConnection,
    (connection, scheme): (eyas::Connection, UpstreamScheme),
    permit: OwnedSemaphorePermit,
) -> Result<UpstreamConnection, UpstreamFailure> {
    let unreachable = |error: io::Error| unreachable_because(shared, &error);
    let counters = &shared.counters;
    if connection.quic().is_some() {
        let started = handshake::http3(shared, scheme, &connection, permit).await;
        let share = started.map_err(unreachable)?;
        GatewayCounters::count(&counters.connections);
        GatewayCounters::count(&counters.http3_connections);
        return Ok(share);
    }
    let is_http2 = match scheme {
        UpstreamScheme::Http | UpstreamScheme::H3 => false,
        UpstreamScheme::H2c => true,
        UpstreamScheme::Https => connection.info().alpn.as_deref() == Some("h2"),
    };
    let stream = connection.into_stream().map_err(|_| {
        let text = format!("{} closed at once", shared.upstream);
        UpstreamFailure::Unreachable(ErrorType::ConnectionTerminated, text)
    })?;
    if is_http2 {
        let share = handshake::http2(shared, scheme, stream, permit).await.map_err(unreachable)?;
        GatewayCounters::count(&counters.connections);
        GatewayCounters::count(&counters.http2_connections);
        return Ok(share);
    }
    if !wanted.http1_only {
        shared.is_multiplexed.store(false, Relaxed);
    }
    let feedback = Some(stream.feedback().clone());
    let raced = (stream, feedback);
    let connection = handshake::http1(shared, wanted, raced, permit).await.map_err(unreachable)?;
    GatewayCounters::count(&counters.connections);
    Ok(connection)
}

fn timed_out(shared: &SharedGateway, limit: Duration) -> UpstreamFailure {
    let text = format!("{} accepted no connection within {limit:?}", shared.upstream);
    UpstreamFailure::ConnectTimedOut(ErrorType::ConnectionTimeout, text)
}

fn unreachable_because(shared: &SharedGateway, error: &io::Error) -> UpstreamFailure {
    let error_type = match error.kind() {
        io::ErrorKind::ConnectionRefused => ErrorType::ConnectionRefused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            ErrorType::ConnectionTerminated
        }
        _ => ErrorType::DestinationUnavailable,
    };
    UpstreamFailure::Unreachable(
        error_type,
        format!("cannot connect to {}: {error}", shared.upstream),
    )
}
