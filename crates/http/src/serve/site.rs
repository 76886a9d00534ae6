//! What the server answers: the routes.

pub(super) mod bytes;
mod echo;
pub(super) mod files;
pub(super) mod listing;
mod page;
mod range;
mod reply;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use tokio::sync::Notify;

use self::reply::{Reply, error, redirect, refusal};
use super::{
    access::Entry,
    activity::{Activity, Exchange},
    admission::Over,
    body::{Content, RequestBody, ResponseBody},
    budget::Share,
    server::Shared,
};

/// The longest wait of `/slow?ms=`: one minute.
pub const MAX_SLOW: Duration = Duration::from_secs(60);

/// The longest chain of `/redirect/N`.
pub const MAX_REDIRECTS: u32 = 100;

/// What a route may know of the connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) remote: SocketAddr,
    pub(super) over: Over,
    pub(super) secure: bool,
    /// Whether the handshake still goes on, so that what comes may be a replay.
    pub(super) is_early: Arc<AtomicBool>,
    pub(super) activity: Arc<Activity>,
    pub(super) share: Arc<Share>,
    /// Told when a faulty server wants the connection reset.
    pub(super) tear_down: Arc<Notify>,
}

/// Answers one request.
pub(super) async fn respond(
    shared: &Arc<Shared>,
    link: &Link,
    exchange: Exchange,
    request: Request<RequestBody>,
) -> Response<ResponseBody> {
    let version = request.version();
    let is_head = request.method() == Method::HEAD;
    shared.counters.request(version);
    let work = exchange.work();
    tracing::info!(
        target: "eyas_http::serve::access",
        remote = %link.remote,
        version = ?version,
        method = %request.method(),
        path = request.uri().path(),
    );
    let mut entry = shared.access_log.as_ref().map(|log| Entry::begin(log, link, &request));
    let reply = match objection(shared, link, &request) {
        None => route(shared, link, request).await,
        Some(objection) => objection,
    };
    drop(work);
    let mut reply = with_fields(shared, version, reply);
    if is_head {
        *reply.body_mut() = Content::Empty;
    }
    if let Some(entry) = &mut entry {
        entry.answered(reply.status());
    }
    let fault = shared
        .fault
        .filter(|mishap| reply.body().remaining().is_none_or(|length| length > mishap.after))
        .map(|mishap| mishap.of(version, &link.tear_down));
    let counters = Arc::clone(&shared.counters);
    reply.map(|content| ResponseBody::new(content, fault, counters, exchange, entry))
}

/// Turns away what no route should see.
fn objection(shared: &Shared, link: &Link, request: &Request<RequestBody>) -> Option<Reply> {
    // RFC 8470 §5.2: what is not safe to repeat is asked for again after the handshake.
    if link.is_early.load(Relaxed) && !request.method().is_safe() {
        return Some(error(StatusCode::TOO_EARLY, "Send this again after the handshake."));
    }
    // RFC 9112 §3.2: one Host field in every HTTP/1.1 request.
    if request.version() == Version::HTTP_11
        && request.headers().get_all(header::HOST).iter().count() != 1
    {
        return Some(error(
            StatusCode::BAD_REQUEST,
            "An HTTP/1.1 request has exactly one Host field.",
        ));
    }
    if announced_length(request).is_some_and(|length| length > shared.limits.body_bytes) {
        let limit = shared.limits.body_bytes;
        let text = format!("A request body may have {limit} bytes at most here.");
        return Some(error(StatusCode::PAYLOAD_TOO_LARGE, &text));
    }
    None
}

fn announced_length(request: &Request<RequestBody>) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn route(shared: &Arc<Shared>, link: &Link, request: Request<RequestBody>) -> Reply {
    let path = request.uri().path();
    let (first, rest) = match path.trim_start_matches('/').split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path.trim_start_matches('/'), None),
    };
    match (first, rest) {
        ("", None) if shared.directory.is_none() => page(shared, link, &request),
        ("eyas", None) => page(shared, link, &request),
        ("bytes", Some(count)) => fetch(&request, || bytes(&request, count)),
        ("echo", None) => echo::respond(link, request),
        ("slow", None) => slow(&request).await,
        ("status", Some(code)) => fetch(&request, || status(code)),
        ("redirect", Some(count)) => fetch(&request, || redirects(count)),
        ("*", None) if request.method() == Method::OPTIONS => reply::options(&[Method::GET]),
        _ => match &shared.directory {
            Some(root) => match refusal(&request, &FETCHING) {
                None => files::respond(shared, root, link, &request).await,
                Some(refusal) => refusal,
            },
            None => error(StatusCode::NOT_FOUND, ROUTES),
        },
    }
}

const FETCHING: [Method; 2] = [Method::GET, Method::HEAD];

const ROUTES: &str = "Nothing is here. There are: / (or /eyas), /bytes/N, /echo, /slow?ms=N, \
                      /status/CODE, /redirect/N.";

/// Answers GET and HEAD, and tells others so.
fn fetch(request: &Request<RequestBody>, answer: impl FnOnce() -> Reply) -> Reply {
    refusal(request, &FETCHING).unwrap_or_else(answer)
}

fn page(shared: &Shared, link: &Link, request: &Request<RequestBody>) -> Reply {
    fetch(request, || page::respond(shared, link, request.version()))
}

fn bytes(request: &Request<RequestBody>, count: &str) -> Reply {
    let length = match count.parse::<u64>() {
        Ok(length) if length <= bytes::MAX_BYTES => length,
        _ => {
            return error(
                StatusCode::BAD_REQUEST,
                "/bytes/N wants a whole number of bytes, at most 1073741824 (1 GiB).",
            );
        }
    };
    let reply = reply::ranged(request.headers(), length, |start, end| {
        Content::Pattern(bytes::Pattern::new(start, end))
    });
    reply::with_type(reply, "application/octet-stream")
}

async fn slow(request: &Request<RequestBody>) -> Reply {
    if let Some(refusal) = refusal(request, &FETCHING) {
        return refusal;
    }
    let query = request.uri().query().unwrap_or_default();
    let wait = query.split('&').find_map(|pair| pair.strip_prefix("ms="));
    let wait = wait.and_then(|wait| wait.parse().ok()).map(Duration::from_millis);
    match wait {
        Some(wait) if wait <= MAX_SLOW => {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            reply::text(StatusCode::OK, format!("waited {} ms\n", wait.as_millis()))
        }
        _ => error(
            StatusCode::BAD_REQUEST,
            "/slow?ms=N wants a whole number of milliseconds, at most 60000.",
        ),
    }
}

fn status(code: &str) -> Reply {
    let code = code.parse().ok().filter(|code| (200..600).contains(code));
    match code.and_then(|code| StatusCode::from_u16(code).ok()) {
        // RFC 9110 §6.4.1: these have no content.
        Some(code @ (StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)) => reply::empty(code),
        Some(code) => reply::text(code, format!("{code}\n")),
        None => error(StatusCode::BAD_REQUEST, "/status/CODE wants a code from 200 to 599."),
    }
}

fn redirects(count: &str) -> Reply {
    match count.parse::<u32>() {
        Ok(0) => reply::text(StatusCode::OK, "the end of the chain\n".into()),
        Ok(count) if count <= MAX_REDIRECTS => {
            redirect(StatusCode::FOUND, &format!("/redirect/{}", count - 1))
        }
        _ => error(StatusCode::BAD_REQUEST, "/redirect/N wants a number from 0 to 100."),
    }
}

/// Adds what every response has.
fn with_fields(shared: &Shared, version: Version, mut reply: Reply) -> Reply {
    let status = reply.status();
    let length = reply.body().remaining();
    let headers = reply.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static(SERVER));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if matches!(version, Version::HTTP_2 | Version::HTTP_3) {
        // hyper adds it to the others.
        let now = httpdate::fmt_http_date(std::time::SystemTime::now());
        if let Ok(now) = HeaderValue::try_from(now) {
            headers.insert(header::DATE, now);
        }
    }
    if version != Version::HTTP_3
        && let Some(alt_svc) = &shared.alt_svc
    {
        headers.insert(header::ALT_SVC, alt_svc.clone());
    }
    if let Some(length) = length
        && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
    {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    reply
}

const SERVER: &str = concat!("eyas/", env!("CARGO_PKG_VERSION"));
