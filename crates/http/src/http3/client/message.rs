//! The heads of requests that are sent, and of responses that are received (RFC 9114 §4.3).

use eyas_h3::{
    fault::StreamFault,
    message::{Content, PseudoField, RequestMethod, check_response},
    qpack::{FieldLine, Sensitivity},
};
use http::{
    Method, Request, Response, StatusCode, Version,
    uri::{Authority, PathAndQuery},
};
use hyper::ext::Protocol;

use crate::http3::message::{SentField, announced_length, header_fields, headers, invalid, pairs};

/// Returns the fields of a request with an absolute URI, or with an authority for CONNECT. An extended one (RFC 9220 §3)
/// has its protocol in the extensions.
pub(in crate::http3) fn request_fields(head: &Request<()>) -> Vec<SentField<'_>> {
    let uri = head.uri();
    let is_connect = *head.method() == Method::CONNECT;
    let protocol = head.extensions().get::<Protocol>().filter(|_| is_connect);
    let is_plain_connect = is_connect && protocol.is_none();
    let path = uri.path_and_query().map_or("", PathAndQuery::as_str);
    let pseudo_fields = [
        (":method", Some(head.method().as_str())),
        // RFC 9114 §4.4: CONNECT has neither a scheme nor a path.
        (":scheme", (!is_plain_connect).then(|| uri.scheme_str().unwrap_or("https"))),
        (":authority", uri.authority().map(Authority::as_str)),
        // §4.3.1: the path of an "http" or "https" URI must not be empty.
        (":path", (!is_plain_connect).then_some(if path.is_empty() { "/" } else { path })),
        (":protocol", protocol.map(Protocol::as_str)),
    ];
    let pseudo_fields = pseudo_fields.into_iter().filter_map(|(name, value)| {
        Some((name.as_bytes(), value?.as_bytes(), Sensitivity::Ordinary))
    });
    pseudo_fields.chain(header_fields(head.headers())).collect()
}

/// Returns what follows the head of a request.
pub(in crate::http3) fn request_content(head: &Request<()>) -> Content {
    match announced_length(head.headers()) {
        _ if *head.method() == Method::CONNECT => Content::Tunnel,
        Some(length) => Content::Length(length),
        None => Content::Any,
    }
}

/// Parses the head of a response to a request with this method. Returns also what follows it.
pub(in crate::http3) fn parse_response(
    lines: &[FieldLine],
    method: RequestMethod,
) -> Result<(Response<()>, Content), StreamFault> {
    let head = check_response(pairs(lines), method).map_err(StreamFault::Message)?;
    let mut response = Response::new(());
    let status = StatusCode::from_u16(head.status);
    *response.status_mut() = status.map_err(|_| invalid(PseudoField::Status))?;
    *response.headers_mut() = headers(lines)?;
    *response.version_mut() = Version::HTTP_3;
    Ok((response, head.content))
}
