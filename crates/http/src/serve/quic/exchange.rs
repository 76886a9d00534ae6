//! One request over HTTP/3, and its response.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use eyas_h3::{code::ErrorCode, message::Content};
use hyper::ext::Protocol;
use tokio::time::{Instant, timeout};

use super::{RequestStream, Windows, head, window::SendWindow};
use crate::{
    http3::{ConnectionDatagrams, Receiving, Sending, response_content},
    serve::{
        answer,
        body::ResponseBody,
        budget::LEAST_PIECE,
        exchange::Exchange,
        interim::InterimResponses,
        link::Link,
        pace::{Pace, Rate},
        piece::{Flow, PIECE},
        request_body::RequestBody,
        shared::Shared,
        stats::Counters,
        turn::Turn,
    },
};

/// The size of a DATA frame for a slow peer. Progress is counted in frames accepted by quinn, so
/// even a slow peer must be able to receive one in time.
const MIN_FRAME_BYTES: usize = 16 * 1024;

/// A frame that is accepted within this time doubles the size of the next one.
const FAST_SEND_TIME: Duration = Duration::from_secs(1);

/// What a request has of its connection.
pub(super) struct RequestContext {
    pub(super) shared: Arc<Shared>,
    pub(super) link: Arc<Link>,
    pub(super) windows: Windows,
    /// Set if datagrams are offered.
    pub(super) datagrams: Option<ConnectionDatagrams>,
}

/// Serves one request, whose head is still awaited.
pub(super) async fn exchange(context: RequestContext, awaiting: Exchange, stream: RequestStream) {
    let RequestContext { shared, link, windows, datagrams } = context;
    let begun = head::begin(&shared, &link, awaiting, stream).await;
    let Some((mut request, exchange, RequestStream { mut send, recv })) = begun else { return };
    let is_extended = request.extensions().get::<Protocol>().is_some();
    if let Some(datagrams) = datagrams
        && is_extended
    {
        request.extensions_mut().insert(datagrams.for_stream(recv.id()));
    }
    let method = request.method().clone();
    let turn = Arc::clone(exchange.turn());
    // Writes report it too, but there are none while a service produces nothing.
    let stopped = send.stopped();
    let mut stopped = pin!(async {
        if let Ok(None) = stopped.await {
            std::future::pending::<()>().await;
        }
    });
    let response = tokio::select! {
        biased;
        response = respond(&shared, &link, exchange, request, (&mut send, recv)) => response,
        () = &mut stopped => None,
    };
    if turn.is_malformed() {
        // RFC 9114 §4.1.2.
        return send.reset(ErrorCode::MessageError);
    }
    let Some(response) = response else {
        return send.reset(ErrorCode::RequestCancelled);
    };
    let window = Arc::clone(&windows.sending);
    let flow = Flow::default();
    let mut pace = Pace::new(Rate::minimum(&shared.limits));
    let stalled = poll_fn(|cx| {
        if turn.waits_for_service() || turn.is_tunnel() {
            pace.pause();
            return Poll::Pending;
        }
        pace.poll_stalled(cx, || flow.taken() + window.sent_behind(&flow))
    });
    let ended = tokio::select! {
        biased;
        delivered = deliver(&mut send, response, &method, &window, &flow) => Some(delivered),
        () = windows.keep_tunnel(&turn, Rate::minimum(&shared.limits)) => None,
        () = &mut stopped => return send.reset(ErrorCode::RequestCancelled),
        () = stalled => None,
    };
    match ended {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            tracing::debug!(error, "HTTP/3 response cut short");
            send.reset(abort_code(&turn, is_extended));
        }
        None => {
            Counters::count(&shared.counters.responses_stalled);
            send.reset(ErrorCode::RequestCancelled);
        }
    }
}

/// Returns why a response is cut short.
fn abort_code(turn: &Turn, is_extended: bool) -> ErrorCode {
    match turn.is_tunnel() {
        _ if turn.is_malformed() => ErrorCode::MessageError,
        // RFC 9220 §3: "RST exceptions are represented by a stream error of type H3_REQUEST_CANCELLED".
        true if is_extended => ErrorCode::RequestCancelled,
        // RFC 9114 §4.4: "A proxy treats any error in the TCP connection, [...] as a stream error of type
        // H3_CONNECT_ERROR."
        true => ErrorCode::ConnectError,
        false => ErrorCode::InternalError,
    }
}

/// Returns the response to a request, unless the peer has disconnected.
async fn respond(
    shared: &Arc<Shared>,
    link: &Link,
    exchange: Exchange,
    mut request: http::Request<()>,
    (send, recv): (&mut Sending<quinn::Connection>, Receiving<quinn::Connection>),
) -> Option<http::Response<ResponseBody>> {
    let turn = Arc::clone(exchange.turn());
    if answer::expects_continue(&request) {
        turn.expect_continue();
    }
    let patience = shared.limits.idle_time;
    let (mut limit, counters) = (shared.limits.body_bytes, Arc::clone(&shared.counters));
    if shared.is_tunnel(&request) {
        turn.set_tunnel(true);
        limit = u64::MAX;
    }
    let has_length = request.headers().contains_key(http::header::CONTENT_LENGTH);
    let body = RequestBody::http3(recv, has_length, limit, counters, Arc::clone(&turn));
    let (interim_responses, mut interims) = InterimResponses::new();
    request.extensions_mut().insert(interim_responses);
    let mut response_future = pin!(answer::respond(shared, link, exchange, request.map(|()| body)));
    loop {
        tokio::select! {
            biased;
            response = &mut response_future => {
                while let Some(interim) = interims.try_next() {
                    send_interim(send, &interim, patience).await?;
                }
                return Some(response);
            }
            () = turn.continue_requested() => {
                send_interim(send, &answer::continue_response(), patience).await?;
            }
            interim = interims.next() => {
                send_interim(send, &interim, patience).await?;
            }
        }
    }
}

/// Sends an informational response, unless the peer leaves no room for it.
async fn send_interim(
    send: &mut Sending<quinn::Connection>,
    response: &http::Response<()>,
    patience: Duration,
) -> Option<()> {
    timeout(patience, send.send_response(response, Content::Interim)).await.ok()?.ok()
}

type DeliveryError = Box<dyn std::error::Error + Send + Sync>;

/// Sends a response and waits until the peer has acknowledged it.
async fn deliver(
    send: &mut Sending<quinn::Connection>,
    response: http::Response<ResponseBody>,
    method: &http::Method,
    window: &SendWindow,
    flow: &Flow,
) -> Result<(), DeliveryError> {
    let (head, mut body) = response.into_parts();
    let _open = body.take_exchange();
    let head = http::Response::from_parts(head, ());
    let content = match body.is_faulty() {
        true => Content::Any,
        false => response_content(&head, method),
    };
    send.send_response(&head, content).await?;
    // quinn does not report the peer's window, so begin with small pieces in case the peer accepts
    // nothing.
    let mut room = LEAST_PIECE;
    let mut size = MIN_FRAME_BYTES;
    while let Some(piece) = body.piece(room).await {
        let mut piece = piece?;
        while !piece.is_empty() {
            let (frame, started) = (piece.split_to(size), Instant::now());
            send.send_data(frame.bytes()).await?;
            size = if started.elapsed() < FAST_SEND_TIME {
                (size * 2).min(PIECE)
            } else {
                MIN_FRAME_BYTES
            };
            flow.record_taken(frame.len());
            window.sent(frame.len());
        }
        room = (room * 4).min(PIECE);
    }
    let trailers = body.take_trailers();
    drop(body);
    flow.end();
    if let Some(trailers) = trailers {
        send.send_trailers(&trailers).await?;
    }
    send.finish().await?;
    Ok(())
}
