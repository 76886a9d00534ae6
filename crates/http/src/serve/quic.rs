//! HTTP/3 over QUIC: accepting and serving connections.

mod exchange;
mod head;
mod receive_window;
mod vanished;
mod window;

use std::{
    future::Future,
    net::{SocketAddr, UdpSocket},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use quinn::{
    TransportConfig, VarInt,
    crypto::rustls::{HandshakeData, QuicServerConfig},
};
use rustls_pki_types::CertificateDer;
use tokio::time::{sleep, timeout};

use self::{
    exchange::{RequestContext, exchange},
    receive_window::ReceiveWindow,
    vanished::vanished,
    window::{INITIAL_WINDOW, SendWindow},
};
use super::{
    ServeError, Transport,
    activity::EVICTION_TIME,
    admission::Permit,
    exchange::Exchange,
    limits::CLOSING_TIME,
    link::{Link, Negotiated},
    pace::Rate,
    shared::Shared,
    stats::Counters,
    tls::Tls,
    turn::Turn,
};
use crate::http3::{
    ConnectionDatagrams, ConnectionEnd, ConnectionOptions, ServerConnection, SideStreams,
};

/// The number of unidirectional streams that a client may open: control, two for QPACK, and a few
/// of reserved types (RFC 9114 §6.2.3).
const UNIDIRECTIONAL_STREAMS: u32 = 8;

/// The number of unread bytes of request bodies that a connection buffers, over all streams. They
/// are read only when there is room for their effects, so this limits what a peer can make a
/// connection buffer.
const RECEIVE_WINDOW: u32 = 1024 * 1024;

/// The window of one tunnel, in bytes; the connection's window is not a limit.
const TUNNEL_WINDOW: u32 = 256 * 1024;

/// The keep-alive interval of connections with tunnels, and their idle timeout in milliseconds.
const TUNNEL_KEEP_ALIVE: Duration = Duration::from_secs(15);
const TUNNEL_IDLE_TIMEOUT_MS: VarInt = VarInt::from_u32(60_000);

/// The share of the limit on connections above which handshakes in progress cause clients to have
/// to validate their addresses (RFC 9000 §8.1.2).
const RETRY_SHARE: usize = 4;

/// The number of round trips between a GOAWAY and the close.
const GOAWAY_ROUND_TRIPS: u32 = 2;

/// The longest time between a GOAWAY and the close.
const GOAWAY_TIME_MAX: Duration = Duration::from_secs(1);

/// The shortest time between a GOAWAY and the close, in which a packet is certainly sent.
const LEAST_GOAWAY_TIME: Duration = Duration::from_millis(10);

/// How much longer QUIC's idle timeout is than the server's own.
const IDLE_TIMEOUT_MARGIN: Duration = Duration::from_secs(60);

/// Returns the configuration of the QUIC endpoint.
pub(super) fn server_config(
    tls: &Tls,
    alpn: Vec<Vec<u8>>,
    shared: &Shared,
) -> Result<quinn::ServerConfig, ServeError> {
    let mut tls = tls.config(alpn)?;
    let limits = &shared.limits;
    if shared.early_data {
        // QUIC allows no other value to enable early data (RFC 9001 §4.6.1). A session is only resumed with this
        // configuration, whose settings never change, so those that a client remembers hold (RFC 9114 §7.2.4.2).
        tls.max_early_data_size = u32::MAX;
    }
    let crypto = QuicServerConfig::try_from(tls).map_err(ServeError::identity)?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    let mut transport = TransportConfig::default();
    // Idle and stalled connections are closed by the server's own timeouts, which take into account
    // when the server itself causes the silence. This one covers the rest, such as a peer that
    // disappears during the close.
    let silence = limits.idle_time + limits.idle_time / 2 + IDLE_TIMEOUT_MARGIN;
    let idle = quinn::IdleTimeout::try_from(silence).unwrap_or_else(|_| VarInt::MAX.into());
    transport
        .max_idle_timeout(Some(idle))
        .max_concurrent_bidi_streams(limits.concurrent_streams.into())
        .max_concurrent_uni_streams(UNIDIRECTIONAL_STREAMS.into())
        .send_window(INITIAL_WINDOW)
        .stream_receive_window(RECEIVE_WINDOW.into())
        .receive_window(RECEIVE_WINDOW.into());
    if shared.tunnels {
        // A tunnel that is not read must not block the others, and silence on all of them is no
        // reason to close the connection.
        transport
            .stream_receive_window(TUNNEL_WINDOW.into())
            .receive_window(VarInt::MAX)
            .max_idle_timeout(Some(TUNNEL_IDLE_TIMEOUT_MS.into()))
            .keep_alive_interval(Some(TUNNEL_KEEP_ALIVE));
    }
    config.transport_config(Arc::new(transport));
    config.max_incoming(limits.connections);
    Ok(config)
}

/// Creates a QUIC endpoint that serves on this socket.
pub(super) fn endpoint(
    socket: UdpSocket,
    tls: &Tls,
    config: quinn::ServerConfig,
) -> Result<quinn::Endpoint, ServeError> {
    let address = socket.local_addr().map_err(ServeError::Endpoint)?;
    tracing::debug!(%address, "QUIC endpoint");
    // Without an identity of its own, a server that restarts cannot tell clients by a stateless
    // reset that it knows nothing of their connections.
    let endpoint = match tls.identity() {
        Some(identity) => identity.quic_endpoint_config(address),
        None => quinn::EndpointConfig::default(),
    };
    eyas::serve_quic(socket, endpoint, config).map_err(ServeError::Endpoint)
}

type RequestStream = crate::http3::RequestStream<quinn::Connection>;

/// Accepts QUIC connections until the server stops.
pub(super) async fn accept(shared: Arc<Shared>, endpoint: quinn::Endpoint) {
    let mut draining = pin!(shared.drain.cancelled());
    let mut stopped = pin!(shared.abort.cancelled());
    loop {
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming,
            () = &mut draining => break,
            () = &mut stopped => break,
        };
        let Some(incoming) = incoming else { return };
        Counters::count(&shared.counters.quic_connections);
        let Some(permit) = shared.admission.admit(incoming.remote_address().ip(), Transport::Quic)
        else {
            Counters::count(&shared.counters.connections_refused);
            incoming.refuse();
            continue;
        };
        let busy = shared.handshakes.load(Relaxed) > shared.limits.connections / RETRY_SHARE;
        if busy && incoming.may_retry() {
            // This fails only for connections that may not be retried.
            if let Err(error) = incoming.retry() {
                error.into_incoming().refuse();
            }
            continue;
        }
        let shared_task = Arc::clone(&shared);
        let port = endpoint.local_addr().ok().map(|address| address.port());
        shared.tasks.spawn(connection(shared_task, incoming, port, permit));
    }
    // From now on no connection is accepted; open ones end by themselves.
    endpoint.set_server_config(None);
}

async fn connection(
    shared: Arc<Shared>,
    incoming: quinn::Incoming,
    port: Option<u16>,
    permit: Permit,
) {
    let is_early = Arc::<AtomicBool>::default();
    let activity = permit.activity();
    let connected = tokio::select! {
        connected = handshake(&shared, incoming, &is_early) => connected,
        () = activity.evicted() => None,
    };
    let Some(conn) = connected else {
        return Counters::count(&shared.counters.handshakes_failed);
    };
    Counters::count(&shared.counters.handshakes);
    let share = shared.budget.share();
    let options = ConnectionOptions {
        head_bytes: shared.limits.decoded_header_bytes() as u64,
        extended_connect: !shared.extended_connect.is_empty(),
        datagrams: !shared.extended_connect.is_empty() && shared.tunnels,
        remembered: None,
    };
    let (http3, streams) = ServerConnection::start(conn.clone(), options);
    let link = Link {
        remote: conn.remote_address(),
        local: conn.local_ip().zip(port).map(SocketAddr::from),
        transport: Transport::Quic,
        secure: true,
        negotiated: negotiated(&conn).into(),
        is_early,
        activity,
        share,
        tear_down: Arc::default(),
    };
    let window = Arc::new(SendWindow::new(conn.clone(), Arc::clone(&link.share)));
    // With tunnels alone, the connection has no limit, and QUIC keeps it open.
    let receiving = (!shared.tunnels)
        .then(|| Arc::new(ReceiveWindow::new(conn.clone(), Arc::clone(&link.share))));
    let datagrams = options.datagrams.then(|| ConnectionDatagrams::new(conn.clone()));
    if let Some(datagrams) = datagrams.clone() {
        // This task ends with the connection.
        shared.tasks.spawn(datagrams.run());
    }
    let link = Arc::new(link);
    let windows = Windows { sending: window, receiving };
    Connection { shared, link, windows, conn, http3, datagrams }.run(streams).await;
}

/// Returns the result of the handshake.
fn negotiated(conn: &quinn::Connection) -> Negotiated {
    let data = conn.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
    let certificates = conn
        .peer_identity()
        .and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok());
    data.map_or_else(Negotiated::default, |data| {
        Negotiated::new(
            data.server_name.as_deref(),
            data.protocol.as_deref(),
            certificates.as_ref().map(|certificates| certificates.as_slice()),
        )
    })
}

/// Completes the handshake, or, if 0-RTT data is accepted, starts it: then `is_early` is set until
/// it is complete.
async fn handshake(
    shared: &Arc<Shared>,
    incoming: quinn::Incoming,
    is_early: &Arc<AtomicBool>,
) -> Option<quinn::Connection> {
    let limit = shared.limits.handshake_time;
    let mut connecting = incoming.accept().ok()?;
    if shared.early_data {
        connecting = match connecting.into_0rtt() {
            Ok((conn, complete)) => {
                is_early.store(true, Relaxed);
                let (early, is_early) = (conn.clone(), Arc::clone(is_early));
                let shared_task = Arc::clone(shared);
                shared.tasks.spawn(async move {
                    let _in_progress = shared_task.handshake();
                    let too_long = || {
                        early.close(VarInt::from_u32(0), b"the handshake took too long");
                    };
                    tokio::select! {
                        completed = timeout(limit, complete) => match completed {
                            Ok(_) => is_early.store(false, Relaxed),
                            Err(_) => too_long(),
                        },
                        () = shared_task.handshakes_end() => too_long(),
                    }
                });
                return Some(conn);
            }
            Err(connecting) => connecting,
        };
    }
    let _in_progress = shared.handshake();
    tokio::select! {
        connected = timeout(limit, connecting) => connected.ok()?.ok(),
        () = shared.handshakes_end() => None,
    }
}

/// The flow control windows of a connection.
#[derive(Clone)]
struct Windows {
    sending: Arc<SendWindow>,
    /// Set if it is a limit.
    receiving: Option<Arc<ReceiveWindow>>,
}

impl Windows {
    /// Holds the window of a tunnel open and its connection alive, until this is dropped.
    async fn keep_tunnel(&self, turn: &Turn, rate: Rate) {
        match self.receiving.as_ref().filter(|_| turn.is_tunnel()) {
            Some(window) => window.open_tunnel().keep_alive(rate).await,
            None => std::future::pending().await,
        }
    }
}

struct Connection {
    shared: Arc<Shared>,
    link: Arc<Link>,
    windows: Windows,
    conn: quinn::Connection,
    http3: ServerConnection<quinn::Connection>,
    /// Set if datagrams are offered.
    datagrams: Option<ConnectionDatagrams>,
}

impl Connection {
    /// Serves until the connection ends, or is to end.
    async fn run(self, streams: SideStreams<quinn::Connection>) {
        let shared = Arc::clone(&self.shared);
        let mut streams = pin!(streams.run());
        let mut idle = pin!(self.link.activity.idle(Rate::minimum(&shared.limits)));
        let mut draining = pin!(shared.drain.cancelled());
        let mut stopped = pin!(shared.abort.cancelled());
        let mut evicted = pin!(self.link.activity.evicted());
        loop {
            tokio::select! {
                () = &mut evicted => return self.leave(streams).await,
                end = &mut streams => return tracing::debug!(%end, "HTTP/3 connection ended"),
                accepted = self.http3.accept() => match accepted {
                    Ok(request) => self.serve(request),
                    Err(_) => return,
                },
                () = &mut draining => {
                    return self.close_gracefully(streams, stopped).await;
                }
                () = &mut idle => {
                    Counters::count(&shared.counters.timed_out);
                    return self.close_gracefully(streams, sleep(CLOSING_TIME)).await;
                }
                () = &mut stopped => return,
            }
        }
    }

    /// Tells the client of a connection that was evicted that nothing was processed (RFC 9114 §5.2).
    async fn leave(&self, mut streams: Pin<&mut impl Future<Output = ConnectionEnd>>) {
        self.http3.go_away();
        let told = timeout(EVICTION_TIME, async {
            // Those whose heads are not complete are rejected.
            self.link.activity.answered().await;
            // An immediate close would overtake the GOAWAY.
            sleep((self.conn.rtt() * GOAWAY_ROUND_TRIPS).max(LEAST_GOAWAY_TIME)).await;
        });
        let mut told = pin!(told);
        loop {
            tokio::select! {
                _ = &mut told => return,
                _ = &mut streams => return,
                accepted = self.http3.accept() => match accepted {
                    Ok(request) => request.reject(),
                    Err(_) => return,
                },
            }
        }
    }

    /// Serves one request in a separate task, so that requests do not wait for each other.
    fn serve(&self, request: RequestStream) {
        if !self.link.share.has_request_slot() {
            Counters::count(&self.shared.counters.requests_refused);
            return request.reject();
        }
        let shared = Arc::clone(&self.shared);
        let link = Arc::clone(&self.link);
        let conn = self.conn.clone();
        // Started here rather than in the task, so that a shutdown in between does not miss it.
        let awaiting = Exchange::awaiting(&link.activity, link.share.request_slot());
        let context = RequestContext {
            shared,
            link,
            windows: self.windows.clone(),
            datagrams: self.datagrams.clone(),
        };
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = exchange(context, awaiting, request) => {}
                // There is no peer left to answer.
                _ = conn.closed() => {}
            }
        });
    }

    /// Sends GOAWAY (RFC 9114 §5.2), then completes the responses in progress, at most until
    /// `deadline`, or until the peer has vanished.
    async fn close_gracefully(
        &self,
        mut streams: Pin<&mut impl Future<Output = ConnectionEnd>>,
        deadline: impl Future<Output = ()>,
    ) {
        // One past the last accepted request: everything before it is served (RFC 9114 §5.2).
        self.http3.go_away();
        let (mut deadline, mut vanished) = (pin!(deadline), pin!(vanished(&self.conn)));
        let rtt = self.conn.rtt();
        let mut answered = pin!(async {
            self.link.activity.answered().await;
            // An immediate close would overtake the GOAWAY, and a peer that receives only the close
            // cannot know whether its last requests were processed.
            sleep((rtt * GOAWAY_ROUND_TRIPS).min(GOAWAY_TIME_MAX)).await;
        });
        loop {
            tokio::select! {
                biased;
                () = &mut deadline => return,
                // One whose window is full of a response does not let the GOAWAY pass either.
                () = &mut vanished => return,
                _ = &mut streams => return,
                accepted = self.http3.accept() => match accepted {
                    Ok(request) => self.serve(request),
                    Err(_) => return,
                },
                () = &mut answered => return,
            }
        }
    }
}
