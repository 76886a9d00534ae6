//! Connections over TCP: accepting them, TLS, and the life of one that speaks HTTP/1.

use std::{
    io,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use eyas::sockets;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{
    Limits, ServeError, ServerIdentity, Transport, Versions,
    activity::{Activity, Metered, Quiet},
    admission::Permit,
    answer,
    exchange::Exchange,
    http2,
    limits::CLOSING_TIME,
    link::{Agreed, Link},
    pace::Rate,
    preface,
    request_body::RequestBody,
    shared::Shared,
    stats::Counters,
};

/// After a failed accept (no descriptors left, usually) nothing is accepted for this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// hyper's own limit on the fields of a request. To name it, or any other, costs an allocation per
/// request.
const HYPER_HEADER_FIELDS: usize = 100;

/// How TCP connections are spoken to.
#[derive(Clone)]
pub(super) struct Protocol {
    acceptor: Option<TlsAcceptor>,
    /// Whether TLS is spoken, here or below.
    is_protected: bool,
    versions: Versions,
    http1: Arc<http1::Builder>,
    http2: Arc<h2::server::Builder>,
}

/// Returns the TLS acceptor of the server.
pub(super) fn acceptor(
    identity: &ServerIdentity,
    alpn: Vec<Vec<u8>>,
) -> Result<TlsAcceptor, ServeError> {
    let mut config = identity.server_config().map_err(ServeError::identity)?;
    config.alpn_protocols = alpn;
    // Tickets instead of a table: resumption that costs no memory.
    config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(ServeError::identity)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

impl Protocol {
    pub(super) fn new(limits: &Limits, versions: Versions, acceptor: Option<TlsAcceptor>) -> Self {
        Self::with(limits, versions, acceptor, (false, false))
    }

    /// Does the same, with or without extended CONNECT over HTTP/2, and with or without tunnels.
    pub(super) fn with(
        limits: &Limits,
        versions: Versions,
        acceptor: Option<TlsAcceptor>,
        (extended_connect, tunnels): (bool, bool),
    ) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_read_time)
            .max_buf_size(limits.header_bytes)
            .half_close(false);
        if limits.header_fields != HYPER_HEADER_FIELDS {
            http1.max_headers(limits.header_fields);
        }
        let http2 = Arc::new(http2::settings(limits, extended_connect, tunnels));
        let is_protected = acceptor.is_some();
        Self { acceptor, is_protected, versions, http1: Arc::new(http1), http2 }
    }

    /// Configures it for connections that a lower layer protects.
    pub(super) fn protected_below(mut self) -> Self {
        self.acceptor = None;
        self.is_protected = true;
        self
    }
}

/// Accepts TCP connections until the server stops.
pub(super) async fn accept(shared: Arc<Shared>, protocol: Protocol, listener: TcpListener) {
    let mut draining = pin!(shared.drain.cancelled());
    let mut stopped = pin!(shared.abort.cancelled());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut draining => return,
            () = &mut stopped => return,
        };
        let (tcp, remote) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                pause_after(&shared, &error).await;
                continue;
            }
        };
        let (transport, counter) = if sockets::speaks_mptcp(&tcp) {
            (Transport::Mptcp, &shared.counters.mptcp_connections)
        } else {
            (Transport::Tcp, &shared.counters.tcp_connections)
        };
        Counters::count(counter);
        let Some(permit) = shared.admission.admit(remote.ip(), transport) else {
            Counters::count(&shared.counters.connections_refused);
            continue;
        };
        let (shared_task, protocol) = (Arc::clone(&shared), protocol.clone());
        shared.tasks.spawn(async move {
            connection(shared_task, protocol, tcp, (remote, transport), permit).await;
        });
    }
}

/// Pauses after an error. An error of one connection that was gone before it was accepted is no
/// reason to.
async fn pause_after(shared: &Shared, error: &io::Error) {
    if !matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    ) {
        tracing::warn!(%error, "cannot accept connections");
        if let Some(notices) = &shared.notices {
            notices.exhausted(error);
        }
        sleep(ACCEPT_PAUSE).await;
    }
}

async fn connection(
    shared: Arc<Shared>,
    protocol: Protocol,
    tcp: TcpStream,
    peer: (SocketAddr, Transport),
    permit: Permit,
) {
    if tcp.set_nodelay(true).is_err() {
        // The peer has already disconnected.
        return;
    }
    // What tears a connection down needs a handle of its own, and only a faulty server has one.
    let torn = shared.fault.is_some().then(|| Abortive::of(&tcp)).flatten();
    let (remote, transport) = peer;
    let ends = Ends { remote, local: tcp.local_addr().ok(), transport };
    speak(shared, protocol, tcp, ends, torn).await;
    drop(permit);
}

/// The two ends of a stream, and its transport.
pub(super) struct Ends {
    pub(super) remote: SocketAddr,
    pub(super) local: Option<SocketAddr>,
    pub(super) transport: Transport,
}

/// Speaks HTTP on a stream of bytes, under TLS if the server has an identity.
pub(super) async fn speak<S>(
    shared: Arc<Shared>,
    protocol: Protocol,
    stream: S,
    Ends { remote, local, transport }: Ends,
    torn: Option<Abortive>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::<Activity>::default();
    let link = Arc::new(Link {
        remote,
        local,
        transport,
        secure: protocol.is_protected,
        agreed: OnceLock::new(),
        is_early: Arc::default(),
        activity: Arc::clone(&activity),
        share: shared.budget.share(),
        tear_down: Arc::default(),
    });
    let (io, dropped) = Metered::new(stream, activity);
    let is_torn = match &protocol.acceptor {
        Some(acceptor) => over_tls(&shared, &link, &protocol, acceptor, io).await,
        None => in_clear(&shared, &link, &protocol, io).await,
    };
    if is_torn && let Some(torn) = torn {
        return torn.arm();
    }
    // A service keeps the stream if it upgraded the connection, which counts until the stream ends.
    tokio::select! {
        _ = dropped => {}
        () = shared.abort.cancelled() => {}
    }
}

/// Serves HTTP in the version that the handshake negotiates. Returns true if the connection is to
/// be torn down.
async fn over_tls<T>(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    protocol: &Protocol,
    acceptor: &TlsAcceptor,
    io: T,
) -> bool
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = timeout(shared.limits.handshake_time, acceptor.accept(io));
    let handshake = tokio::select! {
        handshake = handshake => handshake,
        () = shared.abort.cancelled() => return false,
    };
    match handshake {
        Ok(Ok(tls)) => {
            Counters::count(&shared.counters.handshakes);
            let session = tls.get_ref().1;
            let agreed = Agreed::new(session.server_name(), session.alpn_protocol());
            let speaks_http2 = session.alpn_protocol() == Some(b"h2".as_slice());
            let _ = link.agreed.set(agreed);
            if speaks_http2 {
                http2::serve(shared, link, &protocol.http2, tls).await
            } else {
                serve_http1(shared, link, &protocol.http1, tls).await
            }
        }
        Ok(Err(error)) => {
            Counters::count(&shared.counters.handshakes_failed);
            tracing::debug!(remote = %link.remote, %error, "TLS handshake failed");
            false
        }
        Err(_) => {
            Counters::count(&shared.counters.handshakes_failed);
            false
        }
    }
}

/// Serves HTTP in the version that the client starts with. Returns true if the connection is to be
/// torn down.
async fn in_clear<T>(shared: &Arc<Shared>, link: &Arc<Link>, protocol: &Protocol, io: T) -> bool
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match protocol.versions {
        Versions { http2: false, .. } => serve_http1(shared, link, &protocol.http1, io).await,
        Versions { http1: false, .. } => http2::serve(shared, link, &protocol.http2, io).await,
        _ => {
            // A client that sends nothing, or sends slowly, is idle.
            let idle = link.activity.idle(Rate::least(&shared.limits));
            let begun = tokio::select! {
                begun = preface::speaks_http2(io) => begun,
                () = idle => {
                    Counters::count(&shared.counters.timed_out);
                    return false;
                }
                () = shared.drain.cancelled() => return false,
                () = shared.abort.cancelled() => return false,
            };
            match begun {
                Ok((true, io)) => http2::serve(shared, link, &protocol.http2, io).await,
                Ok((false, io)) => serve_http1(shared, link, &protocol.http1, io).await,
                // Disconnected before it sent anything.
                Err(_) => false,
            }
        }
    }
}

/// Serves one connection of HTTP/1 to its end. True if it is to be torn down.
async fn serve_http1<T>(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    hyper: &http1::Builder,
    io: T,
) -> bool
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request: http::Request<Incoming>| {
        let (shared, link) = (Arc::clone(shared), Arc::clone(link));
        async move {
            // One at a time: the limit on connections is theirs, too.
            let exchange = Exchange::begin(&link.activity, link.share.place());
            let limit = shared.limits.body_bytes;
            let counters = Arc::clone(&shared.counters);
            let turn = Arc::clone(exchange.turn());
            let request = request.map(|body| RequestBody::http1(body, limit, counters, turn));
            let response = answer::respond(&shared, &link, exchange, request).await;
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let mut conn = pin!(hyper.serve_connection(TokioIo::new(io), service).with_upgrades());
    let mut quiet = pin!(link.activity.quiet(Rate::least(&shared.limits)));
    let mut draining = pin!(shared.drain.cancelled());
    let mut stopped = pin!(shared.abort.cancelled());
    let mut torn_down = pin!(link.tear_down.notified());
    // Armed once the connection is asked to close.
    let mut deadline = pin!(sleep(Duration::MAX));
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            ended = conn.as_mut() => {
                if let Err(error) = ended {
                    note(shared, &error);
                }
                return false;
            }
            () = &mut torn_down => return true,
            () = &mut deadline, if is_closing => return false,
            why = &mut quiet, if !is_closing => {
                Counters::count(&shared.counters.timed_out);
                if why == Quiet::Stalled {
                    return false;
                }
                is_closing = true;
                deadline.as_mut().reset(Instant::now() + CLOSING_TIME);
                conn.as_mut().graceful_shutdown();
            }
            // The server's shutdown limits how long this takes.
            () = &mut draining, if !is_closing => {
                is_closing = true;
                conn.as_mut().graceful_shutdown();
            }
            () = &mut stopped => return false,
        }
    }
}

/// Counts and logs the end of a connection that did not end well.
fn note(shared: &Shared, error: &hyper::Error) {
    if error.is_timeout() {
        Counters::count(&shared.counters.timed_out);
    }
    tracing::debug!(%error, "connection ended");
}

/// A second handle of a TCP socket, to reset the connection instead of closing it.
pub(super) struct Abortive(socket2::Socket);

impl Abortive {
    #[cfg(unix)]
    fn of(tcp: &TcpStream) -> Option<Self> {
        use std::os::fd::AsFd;
        let handle = tcp.as_fd().try_clone_to_owned().ok()?;
        Some(Self(handle.into()))
    }

    #[cfg(not(unix))]
    fn of(_: &TcpStream) -> Option<Self> {
        None
    }

    /// Makes closing the last handle reset the connection from now on (RFC 9293 §3.10.5, abort).
    fn arm(self) {
        let _ = self.0.set_linger(Some(Duration::ZERO));
    }
}
