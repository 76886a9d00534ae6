//! Connections over TCP: accepting them, TLS, and serving HTTP/1 on them.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, OnceLock},
    task::Poll,
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
    Limits, ServeError, Transport, Versions,
    activity::{Metered, Quiet},
    admission::Permit,
    answer,
    body::ResponseBody,
    cleartext,
    exchange::Exchange,
    http2,
    limits::CLOSING_TIME,
    lingering,
    link::{Link, Negotiated, StreamInfo},
    pace::Rate,
    preface,
    rare::RareEvents,
    request_body::RequestBody,
    request_line::RequestLine,
    shared::Shared,
    stats::Counters,
    tls::Tls,
};

/// How long to pause after a failed accept, usually because no descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// hyper's default limit on the fields of a request. Setting any limit, even the default, costs an
/// allocation per request.
const HYPER_HEADER_FIELDS: usize = 100;

/// How HTTP is served on byte streams.
#[derive(Clone)]
pub(super) struct Protocol {
    acceptor: Option<TlsAcceptor>,
    /// Whether the stream is encrypted, here or in a lower layer.
    is_encrypted: bool,
    versions: Versions,
    http1: Arc<http1::Builder>,
    http2: Arc<h2::server::Builder>,
}

/// Returns the TLS acceptor of the server.
pub(super) fn acceptor(tls: &Tls, alpn: Vec<Vec<u8>>) -> Result<TlsAcceptor, ServeError> {
    let mut config = tls.config(alpn)?;
    if !tls.asks_clients() {
        // Tickets instead of a table: resumption that costs no memory.
        config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(ServeError::identity)?;
    }
    Ok(TlsAcceptor::from(Arc::new(config)))
}

impl Protocol {
    /// Creates it with or without extended CONNECT over HTTP/2 and tunnels.
    pub(super) fn new(
        limits: &Limits,
        versions: Versions,
        acceptor: Option<TlsAcceptor>,
        (extended_connect, tunnels): (bool, bool),
        keeps_field_case: bool,
    ) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_read_time)
            .max_buf_size(limits.header_bytes)
            .preserve_header_case(keeps_field_case)
            .half_close(false);
        if limits.header_fields != HYPER_HEADER_FIELDS {
            http1.max_headers(limits.header_fields);
        }
        let http2 = Arc::new(http2::settings(limits, extended_connect, tunnels));
        let is_encrypted = acceptor.is_some();
        Self { acceptor, is_encrypted, versions, http1: Arc::new(http1), http2 }
    }

    /// Returns how handshakes are accepted, if it uses TLS.
    pub(super) const fn acceptor(&self) -> Option<&TlsAcceptor> {
        self.acceptor.as_ref()
    }

    /// Configures it for streams that a lower layer encrypts.
    pub(super) fn encrypted_below(mut self) -> Self {
        self.acceptor = None;
        self.is_encrypted = true;
        self
    }
}

/// Accepts TCP connections until the server stops.
pub(super) async fn accept(shared: Arc<Shared>, protocol: Protocol, listener: TcpListener) {
    let mut draining = pin!(shared.drain.cancelled());
    let mut aborted = pin!(shared.abort.cancelled());
    loop {
        let accept = async {
            shared.admission.evicted_leave().await;
            listener.accept().await
        };
        let accepted = tokio::select! {
            accepted = accept => accepted,
            () = &mut draining => return,
            () = &mut aborted => return,
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
        let (shared_task, protocol) = (Arc::clone(&shared), protocol.clone());
        if shared.balancers.as_ref().is_some_and(|balancers| balancers.include(remote)) {
            let balancer = (remote, transport);
            shared.workers.spawn(&shared.tasks, tcp, move |tcp| {
                balanced(shared_task, protocol, tcp, balancer)
            });
            continue;
        }
        let Some(permit) = shared.admission.admit(remote.ip(), transport) else {
            Counters::count(&shared.counters.connections_refused);
            continue;
        };
        let local = tcp.local_addr().ok();
        let activity = permit.activity();
        let info = StreamInfo { remote, local, transport, is_encrypted: false, activity };
        shared.workers.spawn(&shared.tasks, tcp, move |tcp| {
            connection(shared_task, protocol, tcp, info, permit)
        });
    }
}

/// Serves a connection of a load balancer, as one of the client that it names.
async fn balanced(
    shared: Arc<Shared>,
    protocol: Protocol,
    mut tcp: TcpStream,
    balancer: (SocketAddr, Transport),
) {
    let Some(balancers) = &shared.balancers else { return };
    let client = balancers.client(&mut tcp, balancer, shared.limits.handshake_time);
    let client = tokio::select! {
        client = client => client,
        () = shared.handshakes_end() => return,
    };
    let info = match client {
        Ok(client) => client,
        Err(error) => {
            Counters::count(&shared.counters.connections_refused);
            // A balancer that checks whether the port is open sends nothing.
            let is_silent = error.kind() == io::ErrorKind::UnexpectedEof;
            if let Some(notices) = shared.notices.as_ref().filter(|_| !is_silent) {
                notices.unnamed(balancer.0, &error);
            }
            return;
        }
    };
    let Some(permit) = shared.admission.admit(info.remote.ip(), info.transport) else {
        return Counters::count(&shared.counters.connections_refused);
    };
    let info = StreamInfo { activity: permit.activity(), ..info };
    connection(Arc::clone(&shared), protocol, tcp, info, permit).await;
}

/// Pauses after an error, unless it only concerns a connection that was closed before it was
/// accepted.
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
    info: StreamInfo,
    permit: Permit,
) {
    if tcp.set_nodelay(true).is_err() {
        // The peer has already disconnected.
        return;
    }
    // Resetting a connection needs a second handle; only a deliberately faulty server does it.
    let abort_handle = shared.fault.is_some().then(|| AbortHandle::from_stream(&tcp)).flatten();
    let lingering = Arc::clone(&shared);
    let activity = permit.activity();
    let mut eviction_ends = pin!(activity.eviction_ends());
    let end = {
        let mut serving = pin!(serve_stream(shared, protocol, tcp, info, abort_handle));
        let mut rare = RareEvents::new();
        let end = poll_fn(|cx| {
            // What has arrived is read first, so that it is answered.
            if let Poll::Ready(end) = serving.as_mut().poll(cx) {
                return Poll::Ready(Some(end));
            }
            rare.poll(cx, |cx| eviction_ends.as_mut().poll(cx)).map(|()| None)
        });
        end.await
    };
    let Some(end) = end else { return };
    if let Some(end) = end {
        let rate = Rate::minimum(&lingering.limits);
        tokio::select! {
            () = lingering::close(rate, &end.stream, end.has_unread_request) => {}
            // It was answered without a request, or because the place is needed.
            () = &mut eviction_ends => {}
            () = lingering.abort.cancelled() => {}
        }
    }
    drop(permit);
}

/// A stream that was shut down by its server, but not by the client.
pub(super) struct ShutDown<S> {
    stream: S,
    /// Whether the client may still be sending a request that nobody reads.
    has_unread_request: bool,
}

/// Serves HTTP on a byte stream, over TLS if the server has an identity.
pub(super) async fn serve_stream<S>(
    shared: Arc<Shared>,
    protocol: Protocol,
    stream: S,
    StreamInfo { remote, local, transport, is_encrypted, activity }: StreamInfo,
    abort_handle: Option<AbortHandle>,
) -> Option<ShutDown<S>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let link = Arc::new(Link {
        remote,
        local,
        transport,
        secure: protocol.is_encrypted || is_encrypted,
        negotiated: OnceLock::new(),
        is_early: Arc::default(),
        activity: Arc::clone(&activity),
        share: shared.budget.share(),
        tear_down: Arc::default(),
    });
    let (io, dropped) = Metered::new(stream, activity);
    let must_reset = match &protocol.acceptor {
        Some(acceptor) => over_tls(&shared, &link, &protocol, acceptor, io).await,
        None => over_cleartext(&shared, &link, &protocol, io).await,
    };
    if must_reset && let Some(abort_handle) = abort_handle {
        abort_handle.arm();
        return None;
    }
    // If the connection was upgraded, its service still holds the stream, and the connection counts
    // until that ends.
    tokio::select! {
        stream = dropped => {
            let has_unread_request = link.activity.has_unread_request();
            stream.ok()?.map(|stream| ShutDown { stream, has_unread_request })
        }
        () = shared.abort.cancelled() => None,
    }
}

/// Serves HTTP in the version that the handshake negotiates. Returns whether the connection must be
/// reset.
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
    let handshake = async {
        match cleartext::detect(io).await? {
            (true, io) => cleartext::refuse(io).await.map(|()| None),
            (false, io) => acceptor.accept(io).await.map(Some),
        }
    };
    let handshake = tokio::select! {
        handshake = timeout(shared.limits.handshake_time, handshake) => handshake,
        () = shared.handshakes_end() => return false,
    };
    match handshake {
        Ok(Ok(None)) => {
            Counters::count(&shared.counters.handshakes_failed);
            link.activity.note_unread_request();
            false
        }
        Ok(Ok(Some(tls))) => {
            Counters::count(&shared.counters.handshakes);
            let session = tls.get_ref().1;
            let negotiated = Negotiated::new(
                session.server_name(),
                session.alpn_protocol(),
                session.peer_certificates(),
            );
            let speaks_http2 = session.alpn_protocol() == Some(b"h2".as_slice());
            let _ = link.negotiated.set(negotiated);
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

/// Serves HTTP in the version that the client starts with. Returns whether the connection must be
/// reset.
async fn over_cleartext<T>(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    protocol: &Protocol,
    io: T,
) -> bool
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match protocol.versions {
        Versions { http2: false, .. } => serve_http1(shared, link, &protocol.http1, io).await,
        Versions { http1: false, .. } => http2::serve(shared, link, &protocol.http2, io).await,
        _ => {
            // A client that sends nothing, or sends slowly, is idle.
            let idle = link.activity.idle(Rate::minimum(&shared.limits));
            let detected = tokio::select! {
                biased;
                detected = preface::detect_http2(io) => detected,
                () = link.activity.evicted() => return false,
                () = idle => {
                    Counters::count(&shared.counters.timed_out);
                    return false;
                }
                () = shared.drain.cancelled() => return false,
                () = shared.abort.cancelled() => return false,
            };
            match detected {
                Ok((true, io)) => http2::serve(shared, link, &protocol.http2, io).await,
                Ok((false, io)) => serve_http1(shared, link, &protocol.http1, io).await,
                // The client disconnected before it sent anything.
                Err(_) => false,
            }
        }
    }
}

/// Serves one HTTP/1 connection to its end. Returns whether it must be reset.
async fn serve_http1<T>(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    hyper: &http1::Builder,
    io: T,
) -> bool
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let (shared, link) = (Arc::clone(shared), Arc::clone(link));
        async move { Ok::<_, Infallible>(respond(&shared, &link, request).await) }
    });
    let io = RequestLine::new(io, shared.limits.header_bytes);
    let mut conn = pin!(hyper.serve_connection(TokioIo::new(io), service).with_upgrades());
    let mut quiet = pin!(link.activity.quiet(Rate::minimum(&shared.limits)));
    let mut draining = pin!(shared.drain.cancelled());
    let mut aborted = pin!(shared.abort.cancelled());
    let mut torn_down = pin!(link.tear_down.notified());
    // Armed once the connection is asked to close.
    let mut deadline = pin!(sleep(Duration::MAX));
    let mut is_closing = false;
    let mut evicted = pin!(link.activity.evicted());
    let mut rare = RareEvents::new();
    loop {
        let event = poll_fn(|cx| {
            if let Poll::Ready(ended) = conn.as_mut().poll(cx) {
                return Poll::Ready(Event::Served(ended));
            }
            rare.poll(cx, |cx| {
                let mut next = pin!(async {
                    tokio::select! {
                        biased;
                        () = &mut torn_down => Event::TornDown,
                        () = &mut deadline, if is_closing => Event::Ended,
                        () = &mut evicted, if !is_closing => Event::Closing,
                        why = &mut quiet, if !is_closing => Event::Quiet(why),
                        () = &mut draining, if !is_closing => Event::Closing,
                        () = &mut aborted => Event::Ended,
                    }
                });
                next.as_mut().poll(cx)
            })
        });
        match event.await {
            Event::Served(ended) => {
                if let Err(error) = ended {
                    record_error(shared, &error);
                }
                return false;
            }
            Event::TornDown => return true,
            Event::Ended => return false,
            Event::Closing => {
                is_closing = true;
                conn.as_mut().graceful_shutdown();
            }
            Event::Quiet(why) => {
                Counters::count(&shared.counters.timed_out);
                if why == Quiet::Stalled {
                    return false;
                }
                is_closing = true;
                deadline.as_mut().reset(Instant::now() + CLOSING_TIME);
                conn.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Responds to a request over HTTP/1.
async fn respond(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    request: http::Request<Incoming>,
) -> http::Response<ResponseBody> {
    // There is one request at a time, so the limit on connections applies to them too.
    let exchange = Exchange::awaiting(&link.activity, link.share.request_slot());
    let Some(exchange) = exchange.begin() else {
        link.activity.note_unread_request();
        return answer::evicted(shared);
    };
    let limit = shared.limits.body_bytes;
    let counters = Arc::clone(&shared.counters);
    let turn = Arc::clone(exchange.turn());
    let request = request.map(|body| RequestBody::http1(body, limit, counters, turn));
    answer::respond(shared, link, exchange, request).await
}

/// What happens to a connection over HTTP/1.
enum Event {
    Served(hyper::Result<()>),
    /// It must be reset.
    TornDown,
    /// Its time to close is over, or the server has stopped.
    Ended,
    /// The server accepts no more work, whose shutdown limits how long this takes; or another connection has got its
    /// place: what was complete got 503, and the rest may still become so until it is dropped.
    Closing,
    Quiet(Quiet),
}

/// Logs the error that ended a connection, and counts it if it was a timeout.
fn record_error(shared: &Shared, error: &hyper::Error) {
    if error.is_timeout() {
        Counters::count(&shared.counters.timed_out);
    }
    tracing::debug!(%error, "connection ended");
}

/// A second handle to a TCP socket, used to reset the connection instead of closing it.
pub(super) struct AbortHandle(socket2::Socket);

impl AbortHandle {
    fn from_stream(tcp: &TcpStream) -> Option<Self> {
        socket2::SockRef::from(tcp).try_clone().ok().map(Self)
    }

    /// Makes closing the last handle reset the connection from now on (RFC 9293 §3.10.5, abort).
    fn arm(self) {
        let _ = self.0.set_linger(Some(Duration::ZERO));
    }
}
