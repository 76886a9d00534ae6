//! Creating responses.

use eyas_http::serve::{RequestBody, metered::MeteredBody};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};

use super::range::{self, RequestedRange};

const SERVER: &str = concat!("eyas/", env!("CARGO_PKG_VERSION"));

/// A response before it is sent.
pub(super) type SiteReply = Response<MeteredBody>;

/// Adds the fields that every response has.
pub(super) fn with_server_fields(mut reply: SiteReply) -> SiteReply {
    let headers = reply.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static(SERVER));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}

/// Returns a response without content.
pub(super) fn empty(status: StatusCode) -> SiteReply {
    let mut reply = Response::new(MeteredBody::empty());
    *reply.status_mut() = status;
    reply
}

/// Returns a plain-text response.
pub(super) fn text(status: StatusCode, text: String) -> SiteReply {
    typed(status, "text/plain; charset=utf-8", text)
}

/// Returns a response with this media type.
pub(super) fn typed(status: StatusCode, media_type: &'static str, body: String) -> SiteReply {
    let mut reply = empty(status);
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    *reply.body_mut() = MeteredBody::full(body);
    reply
}

/// Returns an error response with a description.
pub(super) fn error(status: StatusCode, what: &str) -> SiteReply {
    text(status, format!("{status}\n{what}\n"))
}

/// Returns the response for when the server's budget is used up.
pub(super) fn busy() -> SiteReply {
    let what = "The server is busy with other requests. Try again in a moment.";
    let mut reply = error(StatusCode::SERVICE_UNAVAILABLE, what);
    reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}

/// Returns a redirection; a location that is not valid in a header field is a server error.
pub(super) fn redirect(status: StatusCode, location: &str) -> SiteReply {
    match HeaderValue::try_from(location) {
        Ok(location) => {
            let mut reply = empty(status);
            reply.headers_mut().insert(header::LOCATION, location);
            reply
        }
        Err(_) => error(StatusCode::INTERNAL_SERVER_ERROR, "The redirection has no valid target."),
    }
}

/// Returns the response to a request with none of these methods: OPTIONS is answered, others are
/// refused.
pub(super) fn refusal(request: &Request<RequestBody>, methods: &[Method]) -> Option<SiteReply> {
    if methods.contains(request.method()) {
        return None;
    }
    if request.method() == Method::OPTIONS {
        return Some(options(methods));
    }
    let what = format!("Use one of: {}.", names(methods));
    let mut reply = error(StatusCode::METHOD_NOT_ALLOWED, &what);
    allow_field(reply.headers_mut(), methods);
    Some(reply)
}

/// Returns the response to OPTIONS.
pub(super) fn options(methods: &[Method]) -> SiteReply {
    let mut reply = empty(StatusCode::NO_CONTENT);
    allow_field(reply.headers_mut(), methods);
    reply
}

fn names(methods: &[Method]) -> String {
    let names: Vec<&str> =
        methods.iter().map(Method::as_str).chain([Method::OPTIONS.as_str()]).collect();
    names.join(", ")
}

fn allow_field(headers: &mut HeaderMap, methods: &[Method]) {
    if let Ok(field) = HeaderValue::try_from(names(methods)) {
        headers.insert(header::ALLOW, field);
    }
}

/// Returns the representation, or the part that the request asks for.
pub(super) fn ranged(
    headers: &HeaderMap,
    length: u64,
    content: impl FnOnce(u64, u64) -> MeteredBody,
) -> SiteReply {
    let (status, start, end) = match range::requested(headers, length) {
        RequestedRange::All => (StatusCode::OK, 0, length),
        RequestedRange::Part(start, end) => (StatusCode::PARTIAL_CONTENT, start, end),
        RequestedRange::Nothing => {
            let what = format!("There are {length} bytes.");
            let mut reply = error(StatusCode::RANGE_NOT_SATISFIABLE, &what);
            content_range(&mut reply, &format!("bytes */{length}"));
            return reply;
        }
    };
    let mut reply = empty(status);
    *reply.body_mut() = content(start, end);
    reply.headers_mut().insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if status == StatusCode::PARTIAL_CONTENT {
        content_range(&mut reply, &format!("bytes {start}-{}/{length}", end - 1));
    }
    reply
}

fn content_range(reply: &mut SiteReply, range: &str) {
    if let Ok(field) = HeaderValue::try_from(range) {
        reply.headers_mut().insert(header::CONTENT_RANGE, field);
    }
}

/// Sets the media type, unless the response already has one.
pub(super) fn with_type(mut reply: SiteReply, media_type: &str) -> SiteReply {
    if !reply.headers().contains_key(header::CONTENT_TYPE)
        && let Ok(field) = HeaderValue::try_from(media_type)
    {
        reply.headers_mut().insert(header::CONTENT_TYPE, field);
    }
    reply
}
