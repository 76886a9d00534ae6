//! One exchange from the caller's point of view: redirects, cookies, decompression, timeouts.

use std::{sync::Arc, time::Duration};

use http::{
    HeaderMap, HeaderValue, Method, Request, Response, Version,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, REFERER},
};
use http_body_util::BodyExt as _;
use hyper::ext::ReasonPhrase;
use tokio::time::Instant;
use url::Url;

use super::{
    Inner, attempt, decode, guard,
    limits::Limits,
    redirect::{self, Hop, Redirect},
    report::{Encoded, Exchanged},
    request_url,
    route::Route,
};
use crate::{Body, Error, Kind, protocol::Omitted, zoned_url};

/// How much of a redirect's body is read so that its connection can be used again, in bytes.
const REDIRECT_BODY: u64 = 16 * 1024;

/// How long reading that much may take.
const REDIRECT_BODY_TIME: Duration = Duration::from_millis(500);

/// Executes a request; the URI in its head is ignored.
pub(super) async fn run(
    inner: &Arc<Inner>,
    request: Request<Body>,
    url: Url,
    limits: Limits,
) -> Result<(Response<Body>, Exchanged), Error> {
    let deadline = limits.total.map(|limit| Instant::now() + limit);
    let run = follow(inner, request, url, Limits { deadline, ..limits });
    let Some(at) = deadline else { return run.await };
    match tokio::time::timeout_at(at, run).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Error::new(Kind::TotalTimeout, "no response was received")),
    }
}

async fn follow(
    inner: &Arc<Inner>,
    request: Request<Body>,
    mut url: Url,
    limits: Limits,
) -> Result<(Response<Body>, Exchanged), Error> {
    let deadline = limits.deadline;
    let (mut head, body) = request.into_parts();
    let mut headers = head.headers;
    let omitted = head.extensions.remove::<Omitted>().unwrap_or_default();
    request_url::complete(&mut headers, &inner.config.headers, &omitted, &mut url);
    let may_offer = inner.config.decompress && !omitted.0.contains(&ACCEPT_ENCODING);
    let codings_offered = may_offer && {
        let chosen = headers.contains_key(ACCEPT_ENCODING);
        decode::offer(&mut headers);
        !chosen && headers.contains_key(ACCEPT_ENCODING)
    };
    let mut hop = Hop { method: head.method, url, headers, omitted, body: Some(body) };
    let rules = redirect::Rules { allow_downgrade: inner.config.allow_downgrade };
    let mut redirected = Vec::new();
    loop {
        let answered = match send(inner, &mut hop, &limits).await {
            Ok(answered) => answered,
            Err(error) => return Err(error.with_url(&hop.url).with_redirects(redirected)),
        };
        let (status, fields) = (answered.response.status(), answered.response.headers());
        if limits.redirects == 0 || !redirect::is_redirect(status, fields) {
            let ending =
                Ending { deadline, idle: limits.idle, codings: codings_offered, redirected };
            return Ok(finish(inner, answered, &hop, ending));
        }
        if redirected.len() == limits.redirects {
            let detail = format!("{} redirects have already been followed", redirected.len());
            return Err(Error::new(Kind::Redirect, detail)
                .with_url(&hop.url)
                .with_redirects(redirected));
        }
        let (from, headers) = (hop.url.clone(), answered.response.headers().clone());
        let reason = answered.response.extensions().get::<ReasonPhrase>().cloned();
        if let Err(error) = hop.follow(status, &headers, &rules) {
            return Err(error.with_url(&from).with_redirects(redirected));
        }
        if inner.config.referer_of_redirects {
            set_referer(&mut hop, &from);
        }
        if let Some(cookies) = &inner.config.cookies {
            cookies.redirected(&mut hop.headers);
        }
        let version = shown_version(answered.response.version(), answered.version);
        let ending = Ending { deadline, idle: limits.idle, codings: false, redirected: Vec::new() };
        drain(finish(inner, answered, &hop, ending).0.into_body()).await;
        let (to, reason) = (hop.url.clone(), reason.map(Into::into));
        redirected.push(Redirect { from, to, status, version, reason, headers });
    }
}

/// Names the page that redirected, unless that was encrypted and the next one is not (RFC 9110 §10.1.3).
fn set_referer(hop: &mut Hop, from: &Url) {
    let mut referer = from.clone();
    referer.set_fragment(None);
    match HeaderValue::try_from(zoned_url::shown(&referer)) {
        Ok(referer) if !(from.scheme() == "https" && hop.url.scheme() == "http") => {
            hop.headers.insert(REFERER, referer);
        }
        _ => drop(hop.headers.remove(REFERER)),
    }
}

/// Sends one request of the chain, with the client's own cookies.
async fn send(
    inner: &Arc<Inner>,
    hop: &mut Hop,
    limits: &Limits,
) -> Result<attempt::Answered, Error> {
    let Some(cookies) = &inner.config.cookies else {
        let route = Route::new(inner, &hop.url)?;
        return attempt::send(inner, hop, &route, &HeaderMap::new(), limits).await;
    };
    let field = cookies.field(&hop.url, &hop.headers);
    let added: HeaderMap = field.map(|field| (http::header::COOKIE, field)).into_iter().collect();
    let route = Route::new(inner, &hop.url)?;
    let answered = attempt::send(inner, hop, &route, &added, limits).await?;
    cookies.store(&hop.url, answered.response.headers());
    Ok(answered)
}

struct Ending {
    deadline: Option<Instant>,
    idle: Option<Duration>,
    codings: bool,
    redirected: Vec<Redirect>,
}

/// Wraps the body in its layers: guard, decoder, size limit.
fn finish(
    inner: &Arc<Inner>,
    answered: attempt::Answered,
    hop: &Hop,
    ending: Ending,
) -> (Response<Body>, Exchanged) {
    let attempt::Answered { response, report, use_guard, version, reused, reuse } = answered;
    let limits = guard::Limits { idle: ending.idle, deadline: ending.deadline };
    let (mut head, body) = response.into_parts();
    head.version = shown_version(head.version, version);
    let expected = guard::expected_length(&hop.method, head.status, &head.headers);
    let origin = (hop.url.clone(), Arc::clone(&report));
    let body = Body::boxed(guard::Guarded::new(body, expected, &limits, origin, use_guard));
    let (mut response, mut encoded) = (Response::from_parts(head, body), None);
    if ending.codings && hop.method != Method::HEAD {
        (response, encoded) = decoded(response);
    }
    if let Some(limit) = inner.config.max_body {
        response = response.map(|body| Body::boxed(guard::Bounded::new(body, limit)));
    }
    let redirected = ending.redirected;
    (response, Exchanged { report, url: hop.url.clone(), redirected, reused, reuse, encoded })
}

/// Decompresses a response, and returns what it was before, if that is something else.
fn decoded(response: Response<Body>) -> (Response<Body>, Option<Encoded>) {
    if !response.headers().contains_key(CONTENT_ENCODING) {
        return (response, None);
    }
    let (encoded, add) = Encoded::new(response.headers().clone());
    let counted = response.map(|body| {
        Body::boxed(body.map_frame(move |frame| {
            add(frame.data_ref().map_or(0, |data| data.len() as u64));
            frame
        }))
    });
    let decoded = decode::decode(counted);
    let is_encoded = decoded.headers().contains_key(CONTENT_ENCODING);
    (decoded, (!is_encoded).then_some(encoded))
}

/// Returns the version to report: HTTP/1.0 if the response states it, otherwise that of the
/// connection.
fn shown_version(stated: Version, negotiated: Version) -> Version {
    if stated < Version::HTTP_11 { stated } else { negotiated }
}

/// Reads a small body to its end, so that an HTTP/1.1 connection can be used again.
async fn drain(mut body: Body) {
    let all = async {
        let mut left = REDIRECT_BODY;
        while let Ok(Some(chunk)) = body.chunk().await {
            match left.checked_sub(chunk.len() as u64) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(REDIRECT_BODY_TIME, all).await;
}
