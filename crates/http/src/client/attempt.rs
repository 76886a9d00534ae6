//! One request on one connection, and when it may be retried on another.
//!
//! A request is sent again only if that is safe: if nothing of it was sent; if the peer said that
//! it did not process it; or, once, if it is idempotent, its connection had been used before (and
//! may have gone stale in the pool), and no part of a response was received.

use std::sync::Arc;

use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{AGE, ALT_SVC, PROXY_AUTHORIZATION},
};

use super::{Inner, alternatives, connect, early, limits::Limits, redirect::Hop, route::Route};
use crate::{
    Body, Error, Kind,
    connection_report::ConnectionReport,
    pool::{Checkout, Leased, UseGuard},
    protocol::SendFailure,
};

/// The maximum number of connections tried for one request, for whatever reason.
const MAX_TRIES: usize = 4;

const ALT_USED: http::HeaderName = http::HeaderName::from_static("alt-used");

/// A response's head with its connection.
pub(super) struct Answered {
    pub(super) response: Response<Body>,
    pub(super) report: Arc<ConnectionReport>,
    pub(super) use_guard: UseGuard,
    pub(super) version: Version,
    pub(super) reused: bool,
}

/// The retries that a request has used up.
#[derive(Default)]
struct Chances {
    tries: usize,
    repeated: bool,
    misdirected: bool,
    /// Whether the next connection may carry it before its handshake is complete.
    early: bool,
}

/// Sends the request of this hop. Leaves a copy of its body in the hop if the body can be cloned.
pub(super) async fn send(
    inner: &Arc<Inner>,
    hop: &mut Hop,
    route: &Route,
    added: &HeaderMap,
    limits: &Limits,
) -> Result<Answered, Error> {
    let early = early::is_allowed(inner, hop, route);
    let mut chances = Chances { early, ..Chances::default() };
    loop {
        chances.tries += 1;
        let lease = lease(inner, route, std::mem::take(&mut chances.early));
        let leased = within_connect_timeout(limits, lease).await?;
        let (report, early) = (Arc::clone(leased.report()), leased.early);
        match once(inner, hop, route, added, leased, limits).await {
            Ok(answered) if is_misdirected(&answered, &report, hop, &chances) => {
                chances.misdirected = true;
                alternatives::misdirected(inner, route, &report);
            }
            // RFC 8470 §5.2: once more, without early data.
            Ok(answered) if early && answered.response.status() == StatusCode::TOO_EARLY => {}
            Ok(answered) => return Ok(answered),
            Err(failed) if early => {
                tracing::debug!(error = %failed.failure.error, "retrying an early request without early data");
            }
            Err(Failed { failure, reused, sent_body }) => {
                let may_retry = may_retry_after(&failure, reused, hop, sent_body, &mut chances);
                if !may_retry || chances.tries >= MAX_TRIES {
                    return Err(failure.error.on(&*report));
                }
                if let Some(body) = failure.unsent {
                    hop.body = Some(body);
                }
                tracing::debug!(error = %failure.error, "retrying on another connection");
            }
        }
    }
}

/// Returns whether the alternative is not authoritative for the origin (RFC 7838 §6); the request
/// was then not processed, whatever its method (RFC 9110 §15.5.20).
fn is_misdirected(
    answered: &Answered,
    report: &ConnectionReport,
    hop: &Hop,
    chances: &Chances,
) -> bool {
    answered.response.status() == StatusCode::MISDIRECTED_REQUEST
        && report.alternative().is_some()
        && hop.body.is_some()
        && !chances.misdirected
}

struct Failed {
    failure: SendFailure,
    reused: bool,
    /// Whether a body that cannot be sent again has been consumed.
    sent_body: bool,
}

async fn once(
    inner: &Arc<Inner>,
    hop: &mut Hop,
    route: &Route,
    added: &HeaderMap,
    mut leased: Leased,
    limits: &Limits,
) -> Result<Answered, Failed> {
    let body = hop.body.take().unwrap_or_default();
    hop.body = body.try_clone();
    let request = request(hop, route, added, &leased, body);
    let reused = leased.reused;
    let sent = within_idle_timeout(limits, leased.sender.send(request)).await;
    let report = Arc::clone(leased.report());
    match sent {
        Ok(response) => {
            report.first_byte_seen();
            // A server that is not authoritative for the origin cannot name its alternatives (RFC
            // 7838 §6).
            if response.status() != StatusCode::MISDIRECTED_REQUEST {
                learn(inner, route, &report, response.headers());
            }
            let (use_guard, version) = (leased.use_guard(), leased.version());
            inner.pool.put_back(&route.key, leased);
            Ok(Answered { response, report, use_guard, version, reused })
        }
        Err(failure) => {
            let closed = leased.sender.is_closed();
            if closed || failure.unprocessed || failure.unsent.is_some() {
                inner.pool.retire(&route.key, &leased);
            }
            // A reused connection that closed was merely stale, unless it is known to have failed.
            if closed && !leased.early && (!reused || failure.error.path_failure().is_some()) {
                alternatives::failed(inner, route, &report);
                report.failed(&failure.error);
            }
            Err(Failed { failure, reused, sent_body: hop.body.is_none() })
        }
    }
}

fn may_retry_after(
    failure: &SendFailure,
    reused: bool,
    hop: &Hop,
    sent_body: bool,
    chances: &mut Chances,
) -> bool {
    if failure.unsent.is_some() {
        return true;
    }
    if sent_body || failure.error.kind() != Kind::Protocol {
        return false;
    }
    if failure.unprocessed {
        return true;
    }
    let allowed = reused && is_idempotent(&hop.method) && !chances.repeated;
    chances.repeated |= allowed;
    allowed
}

/// Returns whether the method is idempotent (RFC 9110 §9.2.2).
fn is_idempotent(method: &Method) -> bool {
    matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE")
}

/// Returns a connection from the pool, or a new one.
pub(super) async fn lease(inner: &Arc<Inner>, route: &Route, early: bool) -> Result<Leased, Error> {
    alternatives::try_best(inner, route).await;
    let permit = match inner.pool.checkout(&route.key).await {
        Checkout::Ready(leased) => return Ok(leased),
        Checkout::Dial(permit) => permit,
    };
    // Boxed because these futures are large, and a request that finds a connection needs neither.
    if !early {
        return Box::pin(connect::open(inner, route, permit)).await;
    }
    match Box::pin(early::open(inner, route, permit)).await {
        Ok(leased) => Ok(leased),
        Err(permit) => Box::pin(connect::open(inner, route, permit)).await,
    }
}

fn request(
    hop: &Hop,
    route: &Route,
    added: &HeaderMap,
    leased: &Leased,
    body: Body,
) -> Request<Body> {
    let mut request = Request::new(body);
    *request.method_mut() = hop.method.clone();
    *request.uri_mut() = route.uri.clone();
    let mut headers = hop.headers.clone();
    headers.extend(added.clone());
    if let Some(service) = leased.report().alternative()
        && let Ok(value) = HeaderValue::from_str(&service.alt_used(&route.key.host))
    {
        headers.insert(ALT_USED, value);
    }
    if route.is_forwarded()
        && let Some(proxy) = &route.proxy
        && let Some(authorization) = &proxy.authorization
    {
        headers.insert(PROXY_AUTHORIZATION, authorization.clone());
    }
    *request.headers_mut() = headers;
    request
}

/// Stores the alternative services announced by the response.
fn learn(inner: &Inner, route: &Route, report: &ConnectionReport, headers: &HeaderMap) {
    if !alternatives::are_used(inner, route) {
        return;
    }
    let fields: Vec<&[u8]> = headers.get_all(ALT_SVC).iter().map(HeaderValue::as_bytes).collect();
    let age = headers.get(AGE).and_then(|age| age.to_str().ok()?.trim().parse().ok());
    let age = std::time::Duration::from_secs(age.unwrap_or(0));
    let mut cache = inner.alternatives();
    if let Some(service) = report.alternative() {
        cache.worked(&route.origin(), service);
    }
    if !fields.is_empty() {
        cache.learn(&route.origin(), &fields.join(&b","[..]), age, inner.now());
    }
}

async fn within_connect_timeout(
    limits: &Limits,
    lease: impl Future<Output = Result<Leased, Error>>,
) -> Result<Leased, Error> {
    let Some(limit) = limits.connect else { return lease.await };
    tokio::time::timeout(limit, lease).await.unwrap_or_else(|_| {
        Err(Error::new(Kind::ConnectTimeout, format!("no connection was ready after {limit:?}")))
    })
}

async fn within_idle_timeout(
    limits: &Limits,
    send: impl Future<Output = Result<Response<Body>, SendFailure>>,
) -> Result<Response<Body>, SendFailure> {
    let Some(limit) = limits.idle else { return send.await };
    tokio::time::timeout(limit, send).await.unwrap_or_else(|_| {
        let error = Error::new(Kind::IdleTimeout, format!("no response after {limit:?}"));
        Err(SendFailure { error, unsent: None, unprocessed: false })
    })
}
