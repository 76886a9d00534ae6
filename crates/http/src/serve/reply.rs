//! The server's own responses.

use http::{HeaderValue, Response, StatusCode, header};

use super::content::Content;

/// A response before it is sent.
pub(super) type Reply = Response<Content>;

const SERVER: &str = concat!("eyas/", env!("CARGO_PKG_VERSION"));

/// Returns an error response with a description.
pub(super) fn error(status: StatusCode, detail: &str) -> Reply {
    let mut reply = Response::new(Content::Full(format!("{status}\n{detail}\n").into()));
    *reply.status_mut() = status;
    let media_type = HeaderValue::from_static("text/plain; charset=utf-8");
    reply.headers_mut().insert(header::CONTENT_TYPE, media_type);
    reply
}

/// Returns the response for a service that did not provide a usable one.
pub(super) fn failure() -> Reply {
    error(StatusCode::INTERNAL_SERVER_ERROR, "The server could not process this request.")
}

/// Adds the fields that all of the server's own responses have.
pub(super) fn with_server_fields(mut reply: Reply) -> Reply {
    let headers = reply.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static(SERVER));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}
