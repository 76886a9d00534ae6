//! `/echo`: the request, sent back.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use eyas_http::serve::{
    PeerInfo, RequestBody,
    metered::{MeteredBody, Piece, Source},
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body::Body;
use serde_json::{Value, json};

use super::{
    BoxError,
    reply::{self, SiteReply},
};

/// Returns the request's head as JSON for GET; methods with a body get the body back as it arrives.
/// A client that sends without reading is slowed down to its own reading rate, because nothing is
/// buffered here.
pub(super) fn respond(peer: &PeerInfo, request: Request<RequestBody>) -> SiteReply {
    const ALLOWED: [Method; 7] = [
        Method::GET,
        Method::HEAD,
        Method::QUERY,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ];
    if let Some(refusal) = reply::refusal(&request, &ALLOWED) {
        return refusal;
    }
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return reply::typed(StatusCode::OK, "application/json", head(peer, &request));
    }
    let media_type = request.headers().get(header::CONTENT_TYPE).cloned();
    let media_type =
        media_type.unwrap_or_else(|| HeaderValue::from_static("application/octet-stream"));
    let mut reply = reply::empty(StatusCode::OK);
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, media_type);
    // Content from a client must not run in a browser as part of this site.
    let sandbox = HeaderValue::from_static("sandbox");
    headers.insert(header::CONTENT_SECURITY_POLICY, sandbox);
    *reply.body_mut() = MeteredBody::from_source(EchoBody(request.into_body()));
    reply
}

/// The request's body, without its trailers.
struct EchoBody(RequestBody);

impl Source for EchoBody {
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        _: usize,
    ) -> Poll<Option<Result<Piece, BoxError>>> {
        while let Some(frame) = ready!(Pin::new(&mut self.0).poll_frame(cx)?) {
            if let Ok(data) = frame.into_data() {
                return Poll::Ready(Some(Ok(data.into())));
            }
        }
        Poll::Ready(None)
    }

    fn remaining(&self) -> Option<u64> {
        self.0.size_hint().exact()
    }
}

fn head(peer: &PeerInfo, request: &Request<RequestBody>) -> String {
    let uri = request.uri();
    let value = json!({
        "method": request.method().as_str(),
        "path": uri.path(),
        "query": uri.query(),
        "authority": uri.authority().map(|authority| authority.as_str()),
        "protocol": format!("{:?}", request.version()),
        "secure": peer.secure,
        "remote": peer.remote.to_string(),
        "headers": fields(request.headers()),
    });
    format!("{value:#}\n")
}

/// Returns the fields as pairs, in the order of arrival, because a name can be repeated.
fn fields(headers: &HeaderMap) -> Value {
    headers
        .iter()
        .map(|(name, value)| json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())]))
        .collect()
}
