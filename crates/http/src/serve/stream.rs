//! HTTP/1 and HTTP/2 over TCP: accepting connections, and one connection's life.

use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use eyas::sockets;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{
    Limits, ServeError, ServerIdentity, Versions,
    activity::{Activity, Metered, Quiet},
    admission::{Over, Permit},
    body::RequestBody,
    server::Shared,
    site::{self, Link},
    stats::Counters,
};

/// After a failed accept (no descriptors left, usually) nothing is accepted for this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// After a graceful close, the peer gets this long to read the rest and to close.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// HTTP/2's window for one request's body, in bytes.
const STREAM_WINDOW: u32 = 1024 * 1024;

/// HTTP/2's window for all request bodies of a connection, in bytes.
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// Bytes of a response that HTTP/2 keeps for a stream until the peer takes them.
const STREAM_SEND_BUFFER: usize = 256 * 1024;

/// hyper's own limit on the fields of a request. To name it, or any other, costs an allocation per
/// request.
const HYPER_HEADER_FIELDS: usize = 100;

type Hyper = auto::Builder<TokioExecutor>;

/// How TCP connections are spoken to.
#[derive(Clone)]
pub(super) struct Protocol {
    acceptor: Option<TlsAcceptor>,
    either: Arc<Hyper>,
    http1: Arc<Hyper>,
    http2: Arc<Hyper>,
}

/// The TLS side of the server.
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
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_read_time)
            .max_buf_size(limits.header_bytes)
            .half_close(false);
        if limits.header_fields != HYPER_HEADER_FIELDS {
            builder.http1().max_headers(limits.header_fields);
        }
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.concurrent_streams)
            .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(STREAM_SEND_BUFFER);
        let http1 = Arc::new(builder.clone().http1_only());
        let http2 = Arc::new(builder.clone().http2_only());
        let either = match versions {
            Versions { http2: false, .. } => Arc::clone(&http1),
            Versions { http1: false, .. } => Arc::clone(&http2),
            _ => Arc::new(builder),
        };
        Self { acceptor, either, http1, http2 }
    }

    /// For connections that something below protects.
    pub(super) fn without_tls(mut self) -> Self {
        self.acceptor = None;
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
                pause_after(&error).await;
                continue;
            }
        };
        let (over, counter) = match sockets::speaks_mptcp(&tcp) {
            true => (Over::Mptcp, &shared.counters.mptcp_connections),
            false => (Over::Tcp, &shared.counters.tcp_connections),
        };
        Counters::count(counter);
        let Some(permit) = shared.admission.admit(remote.ip(), over) else {
            Counters::count(&shared.counters.connections_refused);
            continue;
        };
        let (shared_task, protocol) = (Arc::clone(&shared), protocol.clone());
        shared.tasks.spawn(async move {
            connection(shared_task, protocol, tcp, remote, permit).await;
        });
    }
}

/// An error of one connection that was gone before it was accepted is no reason to wait.
async fn pause_after(error: &io::Error) {
    if !matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    ) {
        tracing::warn!(%error, "cannot accept connections");
        sleep(ACCEPT_PAUSE).await;
    }
}

async fn connection(
    shared: Arc<Shared>,
    protocol: Protocol,
    tcp: TcpStream,
    remote: SocketAddr,
    permit: Permit,
) {
    if tcp.set_nodelay(true).is_err() {
        // The peer is gone already.
        return;
    }
    // What tears a connection down needs a handle of its own, and only a faulty server has one.
    let torn = shared.fault.is_some().then(|| Abortive::of(&tcp)).flatten();
    speak(shared, protocol, tcp, remote, torn).await;
    drop(permit);
}

/// Speaks HTTP on a stream of bytes, under TLS if the server has an identity.
pub(super) async fn speak<S>(
    shared: Arc<Shared>,
    protocol: Protocol,
    stream: S,
    remote: SocketAddr,
    torn: Option<Abortive>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::<Activity>::default();
    let link = Arc::new(Link {
        remote,
        secure: protocol.acceptor.is_some(),
        is_early: Arc::default(),
        activity: Arc::clone(&activity),
        tear_down: Arc::default(),
    });
    let io = Metered::new(stream, activity);
    let Some(acceptor) = &protocol.acceptor else {
        return serve(&shared, &link, &protocol.either, io, torn).await;
    };
    let handshake = timeout(shared.limits.handshake_time, acceptor.accept(io));
    let handshake = tokio::select! {
        handshake = handshake => handshake,
        () = shared.abort.cancelled() => return,
    };
    match handshake {
        Ok(Ok(tls)) => {
            Counters::count(&shared.counters.handshakes);
            let hyper = match tls.get_ref().1.alpn_protocol() {
                Some(b"h2") => &protocol.http2,
                _ => &protocol.http1,
            };
            serve(&shared, &link, hyper, tls, torn).await;
        }
        Ok(Err(error)) => {
            Counters::count(&shared.counters.handshakes_failed);
            tracing::debug!(%remote, %error, "TLS handshake failed");
        }
        Err(_) => Counters::count(&shared.counters.handshakes_failed),
    }
}

/// Serves one connection to its end.
async fn serve<T>(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    hyper: &Hyper,
    io: T,
    torn: Option<Abortive>,
) where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request: http::Request<Incoming>| {
        let (shared, link) = (Arc::clone(shared), Arc::clone(link));
        async move {
            let exchange = link.activity.begin();
            let limit = shared.limits.body_bytes;
            let counters = Arc::clone(&shared.counters);
            let request = request.map(|body| RequestBody::hyper(body, limit, counters));
            let response = site::respond(&shared, &link, exchange, request).await;
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let mut conn = pin!(hyper.serve_connection(TokioIo::new(io), service).into_owned());
    let mut quiet = pin!(link.activity.quiet(shared.limits.idle_time));
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
                    note(shared, &*error);
                }
                return;
            }
            () = &mut torn_down => {
                if let Some(torn) = torn {
                    torn.arm();
                }
                return;
            }
            () = &mut deadline, if is_closing => return,
            why = &mut quiet, if !is_closing => {
                Counters::count(&shared.counters.timed_out);
                if why == Quiet::Stalled {
                    return;
                }
                is_closing = true;
                deadline.as_mut().reset(Instant::now() + CLOSING_TIME);
                conn.as_mut().graceful_shutdown();
            }
            // How long this may take is for the server's shutdown to say.
            () = &mut draining, if !is_closing => {
                is_closing = true;
                conn.as_mut().graceful_shutdown();
            }
            () = &mut stopped => return,
        }
    }
}

/// Counts and logs the end of a connection that did not end well.
fn note(shared: &Shared, error: &(dyn std::error::Error + 'static)) {
    if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout) {
        Counters::count(&shared.counters.timed_out);
    }
    tracing::debug!(error, "connection ended");
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

    /// From now on closing the last handle resets the connection (RFC 9293 §3.10.5, abort).
    fn arm(self) {
        let _ = self.0.set_linger(Some(Duration::ZERO));
    }
}
