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

use super::{
    Inner, alternatives, early, lease,
    limits::Limits,
    redirect::Hop,
    report::Reuse,
    reused::{self, Missed, Sent},
    route::Route,
    stats::Counters,
};
use crate::{
    Body, Error, Kind,
    connection_report::ConnectionReport,
    pool::{Leased, UseGuard},
    protocol::{Omitted, SendFailure},
};

/// The maximum number of connections tried for one request, for whatever reason.
const MAX_TRIES: usize = 4;

/// The target of the events of requests.
const EVENTS: &str = "eyas_http::request";

const ALT_USED: http::HeaderName = http::HeaderName::from_static("alt-used");

/// A response's head with its connection.
pub(super) struct Answered {
    pub(super) response: Response<Body>,
    pub(super) report: Arc<ConnectionReport>,
    pub(super) use_guard: UseGuard,
    pub(super) version: Version,
    pub(super) reused: bool,
    /// How a connection from the pool fared, if the request was given one.
    pub(super) reuse: Option<Reuse>,
}

/// The retries that a request has used up.
#[derive(Default)]
struct Chances {
    tries: usize,
    repeated: bool,
    misdirected: bool,
    /// How the last connection from the pool fared.
    reuse: Option<Reuse>,
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
        let lease = lease::lease(inner, route, std::mem::take(&mut chances.early), None);
        let leased = lease::within_connect_timeout(limits, lease).await?;
        let early = leased.early;
        match once(inner, hop, route, added, leased, limits).await {
            Ok(answered) if is_misdirected(&answered, hop, &chances) => {
                chances.misdirected = true;
                alternatives::misdirected(inner, route, &answered.report);
            }
            // RFC 8470 §5.2: once more, without early data.
            Ok(answered) if early && answered.response.status() == StatusCode::TOO_EARLY => {}
            Ok(answered) => {
                let reuse = answered.reuse.clone().or(chances.reuse);
                return Ok(Answered { reuse, ..answered });
            }
            Err(failed) if early => {
                // It may be because of what is remembered.
                inner.known.forget(&route.key);
                tracing::debug!(error = %failed.failure.error, "retrying an early request without early data");
            }
            Err(Failed { failure, report, reused, sent_body, reuse }) => {
                chances.reuse = reuse.or(chances.reuse);
                let may_retry = may_retry_after(&failure, reused, hop, sent_body, &mut chances);
                if !may_retry || chances.tries >= MAX_TRIES {
                    Counters::count(&inner.counters.failures);
                    return Err(match report {
                        Some(report) => failure.error.with_candidate(&*report),
                        None => failure.error,
                    });
                }
                if let Some(body) = failure.unsent {
                    hop.body = Some(body);
                }
                Counters::count(&inner.counters.retries);
                tracing::debug!(error = %failure.error, "retrying on another connection");
            }
        }
    }
}

/// Returns whether the alternative is not authoritative for the origin (RFC 7838 §6); the request
/// was then not processed, whatever its method (RFC 9110 §15.5.20).
fn is_misdirected(answered: &Answered, hop: &Hop, chances: &Chances) -> bool {
    answered.response.status() == StatusCode::MISDIRECTED_REQUEST
        && answered.report.alternative().is_some()
        && hop.body.is_some()
        && !chances.misdirected
}

struct Failed {
    failure: SendFailure,
    /// The connection that failed, if there was one.
    report: Option<Arc<ConnectionReport>>,
    reused: bool,
    /// Whether a body that cannot be sent again has been consumed.
    sent_body: bool,
    reuse: Option<Reuse>,
}

async fn once(
    inner: &Arc<Inner>,
    hop: &mut Hop,
    route: &Route,
    added: &HeaderMap,
    leased: Leased,
    limits: &Limits,
) -> Result<Answered, Failed> {
    let mut first = Some(hop.body.take().unwrap_or_default());
    hop.body = first.as_ref().and_then(Body::try_clone);
    let mut second = hop.body.as_ref().and_then(Body::try_clone);
    let may_repeat = second.is_some() && hop.method.is_idempotent();
    let conditions = reused::Conditions { inner, route, limits, may_repeat };
    let (method, fields) = (&hop.method, (&hop.headers, &hop.omitted));
    let host = hop.url.host_str().unwrap_or_default();
    let start = |mut leased: Leased| {
        tell(inner, method, host, &leased);
        let body = first.take().or_else(|| second.take()).unwrap_or_default();
        let request = request((method, fields), route, added, &leased, body);
        async move {
            let result = leased.sender.send(request).await;
            (leased, result)
        }
    };
    let Sent { outcome, reuse } = reused::send(conditions, leased, start).await;
    let sent_body = hop.body.is_none();
    match outcome {
        Ok((leased, response)) => {
            let (report, reused) = (Arc::clone(leased.report()), leased.reused);
            report.first_byte_seen();
            // A server that is not authoritative for the origin cannot name its alternatives (RFC
            // 7838 §6).
            if response.status() != StatusCode::MISDIRECTED_REQUEST {
                learn(inner, route, &report, response.headers());
            }
            let (use_guard, version) = (leased.use_guard(), leased.version());
            inner.pool.put_back(&route.key, leased);
            Ok(Answered { response, report, use_guard, version, reused, reuse })
        }
        Err(Missed::NoConnection(error)) => {
            let failure = SendFailure::new(error);
            Err(Failed { failure, report: None, reused: false, sent_body, reuse })
        }
        Err(Missed::NoResponse(report, failure)) => {
            Err(Failed { failure, report: Some(report), reused: false, sent_body, reuse })
        }
        Err(Missed::Failed(leased, failure)) => {
            let (report, reused) = (Arc::clone(leased.report()), leased.reused);
            let closed = leased.sender.is_closed();
            if closed || failure.unprocessed || failure.unsent.is_some() {
                inner.pool.retire(&route.key, &leased);
            }
            // A reused connection that closed was merely stale, unless it is known to have failed.
            if closed && !leased.early && (!reused || failure.error.path_failure().is_some()) {
                alternatives::failed(inner, route, &report);
                report.failed(&failure.error);
            }
            Err(Failed { failure, report: Some(report), reused, sent_body, reuse })
        }
    }
}

/// Counts the request, and tells it as an event, which the [crate's documentation](crate#events)
/// lists.
fn tell(inner: &Inner, method: &Method, host: &str, leased: &Leased) {
    Counters::count(&inner.counters.requests);
    let info = leased.report().info();
    let (transport, remote) = (info.transport, &info.remote);
    tracing::debug!(
        target: EVENTS,
        %method, host, version = ?leased.version(), %transport, ?remote, reused = leased.reused,
        "request"
    );
    if leased.reused {
        Counters::count(&inner.counters.reuses);
        tracing::debug!(target: EVENTS, host, %transport, ?remote, "reuse");
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
    // RFC 9112 §9.3.1. Also if a part of a head had arrived: RFC 9110 §9.2.2 allows it until "the client
    // is able to read the server's response".
    let allowed = reused && hop.method.is_idempotent() && !chances.repeated;
    chances.repeated |= allowed;
    allowed
}

fn request(
    (method, (headers, omitted)): (&Method, (&HeaderMap, &Omitted)),
    route: &Route,
    added: &HeaderMap,
    leased: &Leased,
    body: Body,
) -> Request<Body> {
    let mut request = Request::new(body);
    *request.method_mut() = method.clone();
    *request.uri_mut() = route.uri.clone();
    let mut headers = headers.clone();
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
    if !omitted.0.is_empty() {
        request.extensions_mut().insert(omitted.clone());
    }
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
