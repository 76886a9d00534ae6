//! One HTTP/2 connection, by the h2 crate.
//!
//! The server uses h2 directly instead of hyper, because it must know how many bytes the peer's
//! window allows before it reads them, and how many have been sent.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_util::future::Either;
use h2::{
    Reason, RecvStream, SendStream,
    server::{Builder, SendResponse},
};
use http::{Request, Response};
use hyper::ext::Protocol;
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
    link::Link,
    pace::{Pace, Rate},
    piece::{Flow, PIECE, Piece},
    rare::RareEvents,
    request_body::RequestBody,
    shared::Shared,
    stats::Counters,
    turn::Turn,
};

/// The window for one request's body, in bytes.
const STREAM_WINDOW: u32 = 1024 * 1024;

/// The window for all request bodies of a connection, in bytes. They are not read before there is
/// room for their effects, so this limits what a peer can make a connection buffer.
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// The windows for one tunnel and for all tunnels of a connection, in bytes. A tunnel that is not
/// read must not block the others, so only its own window is a limit (RFC 9113 §6.9.1: the maximum
/// is 2^31 - 1).
const TUNNEL_WINDOWS: (u32, u32) = (256 * 1024, (1 << 31) - 1);

/// The number of bytes of a response that a stream buffers for the socket, once the peer has opened
/// its window.
const STREAM_SEND_BUFFER: usize = 256 * 1024;

/// The number of closed streams that are remembered, so that late frames on them are not errors.
const RESET_STREAMS: usize = 32;

/// The number of streams that a peer may reset before they are accepted; above it, the connection
/// ends.
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
        .max_header_list_size(u32::try_from(limits.decoded_header_bytes()).unwrap_or(u32::MAX))
        .initial_window_size(stream)
        .initial_connection_window_size(connection)
        .max_send_buffer_size(STREAM_SEND_BUFFER)
        .max_concurrent_reset_streams(RESET_STREAMS)
        .max_pending_accept_reset_streams(PENDING_RESET_STREAMS);
    builder
}

type Connection<T> = h2::server::Connection<T, Piece>;

/// Serves one connection to its end. Returns whether it must be reset.
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
        Ok(Ok(conn)) => serve_requests(shared, link, conn).await,
        Ok(Err(error)) => {
            tracing::debug!(%error, "HTTP/2 handshake failed");
            false
        }
        Err(_) => {
            Counters::count(&shared.counters.timed_out);
            false
        }
    }
}

async fn serve_requests<T>(shared: &Arc<Shared>, link: &Arc<Link>, mut conn: Connection<T>) -> bool
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut idle = pin!(link.activity.idle(Rate::minimum(&shared.limits)));
    let mut draining = pin!(shared.drain.cancelled());
    let mut aborted = pin!(shared.abort.cancelled());
    let mut torn_down = pin!(link.tear_down.notified());
    // Armed once the connection is asked to close.
    let mut deadline = pin!(sleep(Duration::MAX));
    let mut is_closing = false;
    let (mut evicted, mut is_evicted) = (pin!(link.activity.evicted()), false);
    let mut rare = RareEvents::new();
    loop {
        let event = poll_fn(|cx| {
            if let Poll::Ready(accepted) = pin!(conn.accept()).as_mut().poll(cx) {
                return Poll::Ready(Either::Left(accepted));
            }
            rare.poll(cx, |cx| {
                let mut next = pin!(async {
                    tokio::select! {
                        biased;
                        () = &mut torn_down => Event::TornDown,
                        () = &mut deadline, if is_closing => Event::Ended,
                        () = &mut evicted, if !is_evicted => Event::Evicted,
                        () = &mut idle, if !is_closing => Event::Idle,
                        () = &mut draining, if !is_closing => Event::Draining,
                        () = &mut aborted => Event::Ended,
                    }
                });
                next.as_mut().poll(cx).map(Either::Right)
            })
        });
        match event.await {
            Either::Left(Some(Ok((request, respond)))) => {
                accept_request(shared, link, request, respond);
            }
            Either::Left(Some(Err(error))) => {
                tracing::debug!(%error, "connection ended");
                return false;
            }
            Either::Left(None) | Either::Right(Event::Ended) => return false,
            Either::Right(Event::TornDown) => return true,
            // What was read before was refused or has ended. RFC 9113 §6.8: what comes later was not processed.
            Either::Right(Event::Evicted) => {
                is_evicted = true;
                conn.abrupt_shutdown(Reason::NO_ERROR);
            }
            Either::Right(Event::Idle) => {
                Counters::count(&shared.counters.timed_out);
                is_closing = true;
                deadline.as_mut().reset(Instant::now() + CLOSING_TIME);
                conn.graceful_shutdown();
            }
            // The server's shutdown limits how long this takes.
            Either::Right(Event::Draining) => {
                is_closing = true;
                conn.graceful_shutdown();
            }
        }
    }
}

/// What happens to a connection beside its requests.
enum Event {
    /// It must be reset.
    TornDown,
    /// Its time to close is over, or the server has stopped.
    Ended,
    /// Another connection has got its place.
    Evicted,
    Idle,
    /// The server accepts no more work.
    Draining,
}

/// Answers a request in a separate task, or refuses it.
fn accept_request(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    request: Request<RecvStream>,
    mut respond: SendResponse<Piece>,
) {
    let begun = link.share.has_request_slot().then(|| link.share.request_slot());
    let begun = begun.and_then(|slot| Exchange::awaiting(&link.activity, slot).begin());
    let Some(exchange) = begun else {
        Counters::count(&shared.counters.requests_refused);
        // RFC 9113 §8.7: the request was not processed and may be retried.
        return respond.send_reset(Reason::REFUSED_STREAM);
    };
    let (shared_task, link) = (Arc::clone(shared), Arc::clone(link));
    // In a box, because a task is moved several times before it runs.
    let serving = Box::pin(serve_request(shared_task, link, exchange, request, respond));
    shared.tasks.spawn(serving);
}

async fn serve_request(
    shared: Arc<Shared>,
    link: Arc<Link>,
    exchange: Exchange,
    request: Request<RecvStream>,
    mut respond: SendResponse<Piece>,
) {
    let turn = Arc::clone(exchange.turn());
    let is_extended = request.extensions().get::<h2::ext::Protocol>().is_some();
    let Some(response) = response(&shared, &link, exchange, request, &mut respond).await else {
        return;
    };
    if turn.is_malformed() {
        // RFC 9113 §8.1.1.
        return respond.send_reset(Reason::PROTOCOL_ERROR);
    }
    let (head, mut body) = response.into_parts();
    let _open = body.take_exchange();
    let has_ended = body.has_ended();
    let Ok(stream) = respond.send_response(Response::from_parts(head, ()), has_ended) else {
        return;
    };
    if has_ended {
        return;
    }
    let mut delivery = Delivery {
        stream,
        body,
        turn,
        flow: Arc::default(),
        share: Arc::clone(&link.share),
        pace: Pace::new(Rate::minimum(&shared.limits)),
        room: 0,
        has_ended: false,
    };
    match poll_fn(|cx| delivery.poll(cx)).await {
        End::Delivered | End::Cancelled => {}
        End::Failed => delivery.stream.send_reset(match delivery.turn.is_tunnel() {
            _ if delivery.turn.is_malformed() => Reason::PROTOCOL_ERROR,
            // RFC 8441 §5: "RST exceptions are represented with the RST_STREAM frame [...] with the CANCEL error
            // code."
            true if is_extended => Reason::CANCEL,
            // RFC 9113 §8.5: "A proxy treats any error in the TCP connection, [...] as a stream error of type
            // CONNECT_ERROR."
            true => Reason::CONNECT_ERROR,
            false => Reason::INTERNAL_ERROR,
        }),
        End::Stalled => {
            Counters::count(&shared.counters.responses_stalled);
            delivery.stream.send_reset(Reason::CANCEL);
        }
    }
}

/// Returns the response to a request, unless the peer cancelled it or disconnected.
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
        request.extensions_mut().insert(Protocol::from(protocol.as_str()));
    }
    if shared.is_tunnel(&request) {
        turn.set_tunnel(true);
        limit = u64::MAX;
    }
    if answer::expects_continue(&request) {
        turn.expect_continue();
    }
    let (interim_responses, mut interims) = InterimResponses::new();
    request.extensions_mut().insert(interim_responses);
    let request = request.map(|body| RequestBody::http2(body, limit, counters, Arc::clone(&turn)));
    let mut response_future = pin!(answer::respond(shared, link, exchange, request));
    loop {
        tokio::select! {
            biased;
            response = &mut response_future => {
                while let Some(interim) = interims.try_next() {
                    respond.send_informational(interim).ok()?;
                }
                return Some(response);
            }
            _ = poll_fn(|cx| respond.poll_reset(cx)) => return None,
            () = turn.continue_requested() => respond.send_informational(answer::continue_response()).ok()?,
            interim = interims.next() => respond.send_informational(interim).ok()?,
        }
    }
}

/// How a response ended.
enum End {
    /// All of it has been written.
    Delivered,
    /// The peer cancelled it, or the connection has ended.
    Cancelled,
    /// The service failed to produce its body.
    Failed,
    /// The peer read too little of it for too long.
    Stalled,
}

/// A response being sent.
struct Delivery {
    stream: SendStream<Piece>,
    body: ResponseBody,
    turn: Arc<Turn>,
    flow: Arc<Flow>,
    share: Arc<Share>,
    pace: Pace,
    /// The number of bytes that the peer's window allows.
    room: usize,
    /// Whether the last piece has been passed to the transport.
    has_ended: bool,
}

impl Delivery {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if let Poll::Ready(end) = self.poll_pieces(cx) {
            return Poll::Ready(end);
        }
        if self.stream.poll_reset(cx).is_ready() {
            return Poll::Ready(End::Cancelled);
        }
        let waits_for_service = self.turn.waits_for_service() && self.flow.is_all_taken();
        if waits_for_service || self.turn.is_tunnel() {
            self.pace.pause();
            return Poll::Pending;
        }
        let flow = &self.flow;
        self.pace.poll_stalled(cx, || flow.taken()).map(|()| End::Stalled)
    }

    fn poll_pieces(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        while !self.has_ended {
            if self.room == 0 {
                self.stream.reserve_capacity(self.body.wanted());
                match ready!(self.stream.poll_capacity(cx)) {
                    Some(Ok(room)) => self.room = room,
                    Some(Err(_)) | None => return Poll::Ready(End::Cancelled),
                }
                continue;
            }
            if self.share.room() < LEAST_PIECE {
                // The minimum that every response may have is already in flight.
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
                    self.has_ended = self.body.has_ended();
                    let piece = piece.flowing(&self.flow);
                    if self.stream.send_data(piece, self.has_ended).is_err() {
                        return Poll::Ready(End::Cancelled);
                    }
                    self.room = self.stream.capacity();
                }
                Some(Err(error)) => {
                    tracing::debug!(%error, "HTTP/2 response cut short");
                    return Poll::Ready(End::Failed);
                }
                None => {
                    self.has_ended = true;
                    let ended = match self.body.take_trailers() {
                        Some(trailers) => self.stream.send_trailers(trailers),
                        None => self.stream.send_data(bytes::Bytes::new().into(), true),
                    };
                    if ended.is_err() {
                        return Poll::Ready(End::Cancelled);
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
