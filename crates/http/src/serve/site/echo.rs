//! `/echo`: the request, sent back.

use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use serde_json::{Value, json};

use super::reply::{self, Reply};
use crate::serve::{content::Content, link::Link, request_body::RequestBody};

/// GET gives the request's head as JSON; methods with a body get the body back as it arrives. A
/// client that sends without reading is slowed down to its own reading: nothing is gathered here.
pub(super) fn respond(link: &Link, request: Request<RequestBody>) -> Reply {
    const ALLOWED: [Method; 6] =
        [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    if let Some(refusal) = reply::refusal(&request, &ALLOWED) {
        return refusal;
    }
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return reply::typed(StatusCode::OK, "application/json", head(link, &request));
    }
    let media_type = request.headers().get(header::CONTENT_TYPE).cloned();
    let media_type =
        media_type.unwrap_or_else(|| HeaderValue::from_static("application/octet-stream"));
    let mut reply = reply::empty(StatusCode::OK);
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, media_type);
    // What a stranger sent must not run in a browser as this server's page.
    let sandbox = HeaderValue::from_static("sandbox");
    headers.insert(header::CONTENT_SECURITY_POLICY, sandbox);
    *reply.body_mut() = Content::Echo(Box::new(request.into_body()));
    reply
}

fn head(link: &Link, request: &Request<RequestBody>) -> String {
    let uri = request.uri();
    let value = json!({
        "method": request.method().as_str(),
        "path": uri.path(),
        "query": uri.query(),
        "authority": uri.authority().map(|authority| authority.as_str()),
        "protocol": format!("{:?}", request.version()),
        "secure": link.secure,
        "remote": link.remote.to_string(),
        "headers": fields(request.headers()),
    });
    format!("{value:#}\n")
}

/// The fields as pairs, in the order of arrival, for a name may come twice.
fn fields(headers: &HeaderMap) -> Value {
    headers
        .iter()
        .map(|(name, value)| json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())]))
        .collect()
}
