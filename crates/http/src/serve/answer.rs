//! Turns a request into its response, for all versions of HTTP and all kinds of service.

use std::{
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::Poll,
};

use futures_util::FutureExt;
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::ext::Protocol;
use tokio_util::sync::CancellationToken;

use super::{
    access::Entry,
    body::ResponseBody,
    content::Content,
    exchange::{Exchange, OpenExchange},
    fields::{self, RequestInfo},
    link::Link,
    malformed,
    metered::Allowance,
    pace::{Pace, Rate},
    reply::{Reply, error, failure, with_server_fields},
    request_body::RequestBody,
    service::body::ServiceBody,
    shared::Shared,
    stats::Counters,
    turn::Turn,
    upgrade::TunnelOffer,
};

/// Answers one request.
pub(super) async fn respond(
    shared: &Arc<Shared>,
    link: &Link,
    mut exchange: Exchange,
    request: Request<RequestBody>,
) -> Response<ResponseBody> {
    let info = RequestInfo::from_request(shared, &request);
    let version = request.version();
    shared.counters.request(version);
    tracing::info!(
        target: "eyas_http::serve::access",
        remote = %link.remote,
        version = ?version,
        method = %request.method(),
        path = request.uri().path(),
    );
    let mut entry = shared.access_log.as_ref().map(|log| Entry::begin(log, link, &request));
    let (offer, request) = match exchange.turn().is_tunnel() {
        true => TunnelOffer::split_request(request),
        false => (None, request),
    };
    let mut reply = match rejection(shared, link, &request) {
        None => call_service(shared, link, exchange.turn(), request).await,
        Some(rejection) => with_server_fields(rejection),
    };
    exchange.note_answer(reply.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    let (exchange, abandoned) = open_tunnel(link, exchange, offer, &mut reply).await;
    let mut reply = fields::complete(shared, &info, reply);
    if info.is_head {
        *reply.body_mut() = Content::Empty;
    }
    if let Some(entry) = &mut entry {
        entry.answered(reply.status());
    }
    let fault = shared
        .fault
        .filter(|fault| reply.body().remaining().is_none_or(|length| length > fault.after))
        .map(|fault| fault.for_response(version, &link.tear_down));
    let counters = Arc::clone(&shared.counters);
    reply.map(|content| {
        let mut body = ResponseBody::new(content, fault, counters, Some(exchange), entry);
        if let Some(abandoned) = abandoned {
            body.set_abandoned(abandoned);
        }
        body
    })
}

/// Opens a tunnel, if one was offered to the service and it has accepted it. Returns what holds the exchange open, and
/// what is to be cancelled when the client reads no more of a tunnel.
async fn open_tunnel(
    link: &Link,
    exchange: Exchange,
    offer: Option<TunnelOffer>,
    reply: &mut Reply,
) -> (OpenExchange, Option<CancellationToken>) {
    let turn = Arc::clone(exchange.turn());
    let Some(offer) = offer.filter(|_| reply.status().is_success()) else {
        turn.set_tunnel(false);
        return (OpenExchange::Response { _exchange: exchange }, None);
    };
    let exchange = Arc::new(exchange);
    let accepted = offer.accept(&exchange, !reply.body().has_ended()).await;
    if let Some(download) = accepted.download {
        reply.headers_mut().remove(header::CONTENT_LENGTH);
        let share = Arc::clone(&link.share);
        *reply.body_mut() = Content::Service(ServiceBody::new(download, share, turn));
    }
    (OpenExchange::Tunnel { _exchange: exchange }, Some(accepted.abandoned))
}

/// Rejects requests that no service should see.
fn rejection(shared: &Shared, link: &Link, request: &Request<RequestBody>) -> Option<Reply> {
    // RFC 8470 §5.2: a request that is not safe to repeat is retried after the handshake.
    if link.is_early.load(Relaxed) && !request.method().is_safe() {
        return Some(error(StatusCode::TOO_EARLY, "Retry this request after the handshake."));
    }
    if let Some(status) = shared.limits.excess(request) {
        let limit = shared.limits.header_bytes;
        return Some(error(
            status,
            &format!("The limit for the head of a request is {limit} bytes."),
        ));
    }
    if let Err(why) = malformed::check(request) {
        let mut reply = error(StatusCode::BAD_REQUEST, &why.to_string());
        // The request that follows cannot be trusted either (RFC 9112 §11.2).
        reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return Some(reply);
    }
    if let Some(protocol) = request.extensions().get::<Protocol>()
        && !shared.offers(protocol)
    {
        // RFC 9220 §3.
        let text = format!("CONNECT for {} is not supported here.", protocol.as_str());
        return Some(error(StatusCode::NOT_IMPLEMENTED, &text));
    }
    if announced_length(request).is_some_and(|length| length > shared.limits.body_bytes) {
        let limit = shared.limits.body_bytes;
        let text = format!("The limit for request bodies is {limit} bytes.");
        return Some(error(StatusCode::PAYLOAD_TOO_LARGE, &text));
    }
    None
}

fn announced_length(request: &Request<RequestBody>) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Calls the service. There is always a reply, even if the service fails or panics, or if the rest
/// of the request does not arrive in time.
async fn call_service(
    shared: &Shared,
    link: &Link,
    turn: &Turn,
    mut request: Request<RequestBody>,
) -> Reply {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let (share, alt_svc) = (Arc::clone(&link.share), shared.alt_svc.clone());
    request.extensions_mut().insert(Allowance { share, alt_svc });
    turn.set_service(true);
    let answering = AssertUnwindSafe(shared.application.answer(link, request)).catch_unwind();
    let mut answering = pin!(answering);
    let mut pace = Pace::new(Rate::minimum(&shared.limits));
    let answered = poll_fn(|cx| {
        if let Poll::Ready(answered) = answering.as_mut().poll(cx) {
            return Poll::Ready(Some(answered));
        }
        if turn.waits_for_service() {
            pace.pause();
            return Poll::Pending;
        }
        pace.poll_stalled(cx, || turn.received()).map(|()| None)
    });
    let answered = answered.await;
    turn.set_service(false);
    match answered {
        Some(Ok(Ok(reply))) => reply,
        Some(Ok(Err(error))) => {
            tracing::error!(%error, %method, path = uri.path(), "the service failed");
            with_server_fields(failure())
        }
        Some(Err(_)) => {
            tracing::error!(%method, path = uri.path(), "the service panicked");
            with_server_fields(failure())
        }
        None => {
            Counters::count(&shared.counters.timed_out);
            with_server_fields(too_slow())
        }
    }
}

/// Returns the answer to a request of HTTP/1 that comes when another connection has got the place of this one.
/// It was not processed, so any may be sent again (RFC 9110 §15.6.4).
pub(super) fn evicted(shared: &Shared) -> Response<ResponseBody> {
    Counters::count(&shared.counters.requests_refused);
    let detail = "The server needed the place of this connection. Send the request again.";
    let mut reply = with_server_fields(error(StatusCode::SERVICE_UNAVAILABLE, detail));
    reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("0"));
    let counters = Arc::clone(&shared.counters);
    reply.map(|content| ResponseBody::new(content, None, counters, None, None))
}

fn too_slow() -> Reply {
    let mut reply = error(StatusCode::REQUEST_TIMEOUT, "The request's body arrived too slowly.");
    reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    reply
}

/// Returns whether the client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1).
pub(super) fn expects_continue<B>(request: &Request<B>) -> bool {
    let expect_continue = request.headers().get(header::EXPECT);
    expect_continue.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Returns a 100 Continue.
pub(super) fn continue_response() -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::CONTINUE;
    response
}
