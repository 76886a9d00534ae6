//! One HTTP/2 connection, by the h2 crate.
//!
//! The server uses h2 directly instead of hyper, because it must know how many bytes a peer has
//! room for before it reads them, and how many have left.

use std::{
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use h2::{
    Reason, RecvStream, SendStream,
    server::{Builder, SendResponse},
};
use http::{Request, Response};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Duration, Instant, sleep, timeout},
};

use super::{
    Limits, answer,
    body::ResponseBody,
    budget::{LEAST_PIECE, Share},
    exchange::Exchange,
    interim::InterimResponses,
    limits::CLOSING_TIME,
    link::{ConnectProtocol, Link},
    pace::{Pace, Rate},
    piece::{Flow, PIECE, Piece},
    request_body::RequestBody,
    shared::Shared,
    stats::Counters,
    turn::Turn,
};

/// The window for one request's body, in bytes.
const STREAM_WINDOW: u32 = 1024 * 1024;

/// The window for all request bodies of a connection, in bytes. Nothing reads them before there is room
/// for what they cause, so this is what a peer can make a connection hold.
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// The windows for one tunnel and for all of a connection, in bytes: one that nobody reads is not to stop
/// the others, so each has its own alone (RFC 9113 §6.9.1: 2^31 - 1 is the most).
const TUNNEL_WINDOWS: (u32, u32) = (256 * 1024, (1 << 31) - 1);

/// Bytes of a response that a stream keeps for the socket, once the peer has opened its window.
const STREAM_SEND_BUFFER: usize = 256 * 1024;

/// Closed streams that are still remembered, so that late frames on them are not errors.
const RESET_STREAMS: usize = 32;

/// Streams that a peer has reset before they were looked at; above it, the connection ends.
const PENDING_RESET_STREAMS: usize = 20;

/// Returns the settings of connections.
pub(super) fn settings(limits: &Limits, extended_connect: bool, tunnels: bool) -> Builder {
    let mut builder = Builder::new();
    if extended_connect {
        builder.enable_connect_protocol();
    }
    let (stream, connection) =
        if tunnels { TUNNEL_WINDOWS } else { (STREAM_WINDOW, CONNECTION_WINDOW) };
    builder
        .max_concurrent_streams(limits.concurrent_streams)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .initial_window_size(stream)
        .initial_connection_window_size(connection)
        .max_send_buffer_size(STREAM_SEND_BUFFER)
        .max_concurrent_reset_streams(RESET_STREAMS)
        .max_pending_accept_reset_streams(PENDING_RESET_STREAMS);
    builder
}

type Connection<T> = h2::server::Connection<T, Piece>;

/// Serves one connection to its end. True if it is to be torn down.
pub(super) async fn serve<T>(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    settings: &Builder,
    io: T,
) -> bool
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = timeout(shared.limits.header_read_time, settings.handshake(io));
    let handshake = tokio::select! {
        handshake = handshake => handshake,
        () = shared.abort.cancelled() => return false,
    };
    match handshake {
        Ok(Ok(conn)) => live(shared, link, conn).await,
        Ok(Err(error)) => {
            tracing::debug!(%error, "no HTTP/2");
            false
        }
        Err(_) => {
            Counters::count(&shared.counters.timed_out);
            false
        }
    }
}

async fn live<T>(shared: &Arc<Shared>, link: &Arc<Link>, mut conn: Connection<T>) -> bool
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut idle = pin!(link.activity.idle(Rate::least(&shared.limits)));
    let mut draining = pin!(shared.drain.cancelled());
    let mut stopped = pin!(shared.abort.cancelled());
    let mut torn_down = pin!(link.tear_down.notified());
    // Armed once the connection is asked to close.
    let mut deadline = pin!(sleep(Duration::MAX));
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            accepted = conn.accept() => match accepted {
                Some(Ok((request, respond))) => begin(shared, link, request, respond),
                Some(Err(error)) => {
                    tracing::debug!(%error, "connection ended");
                    return false;
                }
                None => return false,
            },
            () = &mut torn_down => return true,
            () = &mut deadline, if is_closing => return false,
            () = &mut idle, if !is_closing => {
                Counters::count(&shared.counters.timed_out);
                is_closing = true;
                deadline.as_mut().reset(Instant::now() + CLOSING_TIME);
                conn.graceful_shutdown();
            }
            // The server's shutdown limits how long this takes.
            () = &mut draining, if !is_closing => {
                is_closing = true;
                conn.graceful_shutdown();
            }
            () = &mut stopped => return false,
        }
    }
}

/// Answers a request in a task of its own, or refuses it.
fn begin(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    request: Request<RecvStream>,
    mut respond: SendResponse<Piece>,
) {
    if !link.share.has_place() {
        Counters::count(&shared.counters.requests_refused);
        // RFC 9113 §8.7: nothing was done, it may be sent again.
        return respond.send_reset(Reason::REFUSED_STREAM);
    }
    let exchange = Exchange::begin(&link.activity, link.share.place());
    let (shared_task, link) = (Arc::clone(shared), Arc::clone(link));
    shared.tasks.spawn(serve_request(shared_task, link, exchange, request, respond));
}

async fn serve_request(
    shared: Arc<Shared>,
    link: Arc<Link>,
    exchange: Exchange,
    request: Request<RecvStream>,
    mut respond: SendResponse<Piece>,
) {
    let turn = Arc::clone(exchange.turn());
    let Some(response) = response(&shared, &link, exchange, request, &mut respond).await else {
        return;
    };
    let (head, mut body) = response.into_parts();
    let _open = body.take_exchange();
    let is_over = body.is_over();
    let Ok(stream) = respond.send_response(Response::from_parts(head, ()), is_over) else { return };
    if is_over {
        return;
    }
    let mut delivery = Delivery {
        stream,
        body,
        turn,
        flow: Arc::default(),
        share: Arc::clone(&link.share),
        pace: Pace::new(Rate::least(&shared.limits)),
        room: 0,
        is_over: false,
    };
    match poll_fn(|cx| delivery.poll(cx)).await {
        End::Delivered | End::Abandoned => {}
        End::Broken => delivery.stream.send_reset(Reason::INTERNAL_ERROR),
        End::Stalled => {
            Counters::count(&shared.counters.responses_stalled);
            delivery.stream.send_reset(Reason::CANCEL);
        }
    }
}

/// Sends the response to a request, unless the peer cancelled it or disconnected.
async fn response(
    shared: &Arc<Shared>,
    link: &Link,
    exchange: Exchange,
    mut request: Request<RecvStream>,
    respond: &mut SendResponse<Piece>,
) -> Option<Response<ResponseBody>> {
    let turn = Arc::clone(exchange.turn());
    let (mut limit, counters) = (shared.limits.body_bytes, Arc::clone(&shared.counters));
    if let Some(protocol) = request.extensions_mut().remove::<h2::ext::Protocol>() {
        turn.set_tunnel();
        limit = u64::MAX;
        request.extensions_mut().insert(ConnectProtocol(protocol.as_str().into()));
    }
    if shared.is_tunnel(&request) {
        turn.set_unwatched_tunnel();
        limit = u64::MAX;
    }
    if answer::expects_continue(&request) {
        turn.expect();
    }
    let (interim_responses, mut interims) = InterimResponses::new();
    request.extensions_mut().insert(interim_responses);
    let request = request.map(|body| RequestBody::http2(body, limit, counters, Arc::clone(&turn)));
    let mut answering = pin!(answer::respond(shared, link, exchange, request));
    loop {
        tokio::select! {
            response = &mut answering => {
                while let Some(interim) = interims.take() {
                    respond.send_informational(interim).ok()?;
                }
                return Some(response);
            }
            _ = poll_fn(|cx| respond.poll_reset(cx)) => return None,
            () = turn.invited() => respond.send_informational(answer::go_on()).ok()?,
            interim = interims.next() => respond.send_informational(interim).ok()?,
        }
    }
}

/// How a response ended.
enum End {
    /// All of it has been written.
    Delivered,
    /// The peer cancelled it, or the connection has ended.
    Abandoned,
    /// Its body could not be made.
    Broken,
    /// The peer took too little of it for too long.
    Stalled,
}

/// A response on its way.
struct Delivery {
    stream: SendStream<Piece>,
    body: ResponseBody,
    turn: Arc<Turn>,
    flow: Arc<Flow>,
    share: Arc<Share>,
    pace: Pace,
    /// Bytes that the peer has room for.
    room: usize,
    /// Whether the last piece is given away.
    is_over: bool,
}

impl Delivery {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if let Poll::Ready(end) = self.poll_pieces(cx) {
            return Poll::Ready(end);
        }
        if self.stream.poll_reset(cx).is_ready() {
            return Poll::Ready(End::Abandoned);
        }
        let is_services = self.turn.is_services() && self.flow.is_all_taken();
        if is_services || self.turn.is_unwatched() {
            self.pace.rest();
            return Poll::Pending;
        }
        let flow = &self.flow;
        self.pace.poll_stalled(cx, || flow.taken()).map(|()| End::Stalled)
    }

    fn poll_pieces(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        while !self.is_over {
            if self.room == 0 {
                self.stream.reserve_capacity(self.body.wanted());
                match ready!(self.stream.poll_capacity(cx)) {
                    Some(Ok(room)) => self.room = room,
                    Some(Err(_)) | None => return Poll::Ready(End::Abandoned),
                }
                continue;
            }
            if self.share.room() < LEAST_PIECE {
                // What each response may have in any case it has on its way already.
                ready!(self.flow.poll_all_taken(cx));
            }
            if let Some(prepared) = ready!(self.body.poll_prepared(cx)) {
                self.make_room(prepared);
                if self.room == 0 {
                    continue;
                }
            }
            match ready!(self.body.poll_piece(cx, self.room.min(PIECE))) {
                Some(Ok(piece)) if piece.is_empty() => {}
                Some(Ok(piece)) => {
                    self.is_over = self.body.is_over();
                    let piece = piece.flowing(&self.flow);
                    if self.stream.send_data(piece, self.is_over).is_err() {
                        return Poll::Ready(End::Abandoned);
                    }
                    self.room = self.stream.capacity();
                }
                Some(Err(error)) => {
                    tracing::debug!(%error, "HTTP/2 response cut short");
                    return Poll::Ready(End::Broken);
                }
                None => {
                    self.is_over = true;
                    let ended = match self.body.take_trailers() {
                        Some(trailers) => self.stream.send_trailers(trailers),
                        None => self.stream.send_data(bytes::Bytes::new().into(), true),
                    };
                    if ended.is_err() {
                        return Poll::Ready(End::Abandoned);
                    }
                }
            }
        }
        self.flow.poll_all_taken(cx).map(|()| End::Delivered)
    }

    /// Requests window capacity for the bytes of a service, and takes what is available.
    fn make_room(&mut self, prepared: usize) {
        if self.room < prepared.min(PIECE) {
            self.stream.reserve_capacity(self.body.wanted());
            self.room = self.stream.capacity();
        }
    }
}
