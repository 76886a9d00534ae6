//! The head of the request that the upstream gets.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header, request};

use super::ask::{Ask, Framing};
use super::fields;
use super::forwarded;
use super::peer::Peer;
use super::shared::Shared;

const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// What is known of the body once it has been looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    None,
    Length(u64),
    Open,
}

impl Content {
    /// What there is, by how it ends and by whether it has ended already.
    pub(super) fn of(framing: Framing, is_over: bool) -> Self {
        match framing {
            Framing::Nothing | Framing::Length(0) => Self::None,
            Framing::Open if is_over => Self::None,
            Framing::Length(length) => Self::Length(length),
            Framing::Open => Self::Open,
        }
    }
}

/// The head of a request without its framing: as the upstream gets it, in HTTP/1.1.
pub(super) fn onward(
    shared: &Shared,
    ask: &Ask,
    (from, peer): (&mut request::Parts, &Peer),
) -> Option<Request<()>> {
    let is_trusted = peer.ip().is_some_and(|ip| shared.trusts(ip));
    let mut headers = fields::of_request(std::mem::take(&mut from.headers), is_trusted);
    // In front, as RFC 9110 §7.2 wants it.
    let host = ask.host.clone().unwrap_or_else(|| shared.authority());
    let mut all = HeaderMap::with_capacity(headers.len() + 8);
    all.insert(header::HOST, host.clone());
    forwarded::add(&mut headers, peer, &host);
    shared.pseudonym.add(from.version, &mut headers);
    if ask.takes_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    if !ask.expects_continue {
        headers.remove(header::EXPECT);
    }
    if peer.early {
        // RFC 8470 §5.1.
        headers.insert(EARLY_DATA, HeaderValue::from_static("1"));
    }
    all.extend(headers);
    let mut request = Request::new(());
    *request.method_mut() = from.method.clone();
    *request.uri_mut() = ask.target.parse::<Uri>().ok()?;
    *request.version_mut() = Version::HTTP_11;
    *request.headers_mut() = all;
    Some(request)
}

/// Says how the body ends.
pub(super) fn frame<B>(request: &mut Request<B>, content: Content) {
    let is_awaited = [Method::POST, Method::PUT, Method::PATCH].contains(request.method());
    let headers = request.headers_mut();
    match content {
        // RFC 9110 §8.6: a method that anticipates content says that there is none.
        Content::None if is_awaited => {
            headers.insert(header::CONTENT_LENGTH, 0.into());
        }
        Content::None => {}
        Content::Length(length) => {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        Content::Open => {
            headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
    if content == Content::None {
        headers.remove(header::EXPECT);
    }
}
