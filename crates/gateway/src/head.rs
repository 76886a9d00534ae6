//! The head of the request for the upstream.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header, request};

use crate::fields;
use crate::forwarded;
use crate::peer::RequestPeer;
use crate::shared::SharedGateway;
use crate::validation::{BodyFraming, ValidRequest};

/// How many fields are added to those of a request, at most.
const ADDED: usize = 8;

const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// The content of a request, after its body was peeked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestContent {
    None,
    Length(u64),
    Open,
}

impl RequestContent {
    /// Returns the content by the framing and by whether the body has already ended.
    pub(crate) fn from_framing(framing: BodyFraming, is_over: bool) -> Self {
        match framing {
            BodyFraming::Nothing | BodyFraming::Length(0) => Self::None,
            BodyFraming::Open if is_over => Self::None,
            BodyFraming::Length(length) => Self::Length(length),
            BodyFraming::Open => Self::Open,
        }
    }
}

/// Returns the head of a request for the upstream, in HTTP/1.1 and without its framing.
pub(crate) fn for_upstream(
    shared: &SharedGateway,
    valid: &ValidRequest,
    (from, peer): (&request::Parts, &RequestPeer),
) -> Option<Request<()>> {
    let is_trusted = peer.ip().is_some_and(|ip| shared.trusts(ip));
    let mut headers = HeaderMap::with_capacity(from.headers.len() + ADDED);
    // RFC 9110 §7.2: it should come first.
    let host = valid.host.clone().unwrap_or_else(|| shared.authority());
    headers.insert(header::HOST, host.clone());
    fields::copy_request(&from.headers, &mut headers, is_trusted);
    forwarded::add(&mut headers, peer, &host);
    shared.pseudonym.add(from.version, &mut headers);
    if valid.accepts_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    if !valid.expects_continue {
        headers.remove(header::EXPECT);
    }
    if peer.early {
        // RFC 8470 §5.1.
        headers.insert(EARLY_DATA, HeaderValue::from_static("1"));
    }
    let mut request = Request::new(());
    *request.method_mut() = from.method.clone();
    *request.uri_mut() = match from.uri.path_and_query() {
        Some(same) if same == valid.target.as_str() => Uri::from(same.clone()),
        _ => valid.target.parse().ok()?,
    };
    *request.version_mut() = Version::HTTP_11;
    *request.headers_mut() = headers;
    Some(request)
}

/// Sets the framing of the body.
pub(crate) fn frame<B>(request: &mut Request<B>, content: RequestContent) {
    let anticipates_content =
        [Method::POST, Method::PUT, Method::PATCH, Method::QUERY].contains(request.method());
    let headers = request.headers_mut();
    match content {
        // RFC 9110 §8.6: a method that anticipates content announces that there is none.
        RequestContent::None if anticipates_content => {
            headers.insert(header::CONTENT_LENGTH, 0.into());
        }
        RequestContent::None => {}
        RequestContent::Length(length) => {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        RequestContent::Open => {
            headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
    if content == RequestContent::None {
        headers.remove(header::EXPECT);
    }
}
