//! The heads of requests that are received, and of responses that are sent (RFC 9114 §4.3).

use eyas_h3::{
    fault::StreamFault,
    message::{Content, PseudoField, RequestOptions, check_request},
    qpack::{FieldLine, Sensitivity},
};
use http::{
    HeaderMap, Method, Request, Response, StatusCode, Uri, Version,
    uri::{Authority, PathAndQuery, Scheme},
};
use hyper::ext::Protocol;

use crate::http3::message::{SentField, announced_length, header_fields, headers, invalid, pairs};

/// Parses the head of a request. Returns also what follows it.
pub(in crate::http3) fn parse_request(
    lines: &[FieldLine],
    options: RequestOptions,
) -> Result<(Request<()>, Content), StreamFault> {
    let head = check_request(pairs(lines), options).map_err(StreamFault::Message)?;
    let mut request = Request::new(());
    let method = Method::from_bytes(head.method);
    *request.method_mut() = method.map_err(|_| invalid(PseudoField::Method))?;
    let mut uri = http::uri::Parts::default();
    if let Some(scheme) = head.scheme {
        let scheme = Scheme::try_from(scheme);
        uri.scheme = Some(scheme.map_err(|_| invalid(PseudoField::Scheme))?);
    }
    if let Some(authority) = head.authority.or(head.host) {
        let authority = Authority::try_from(authority);
        uri.authority = Some(authority.map_err(|_| invalid(PseudoField::Authority))?);
    }
    if let Some(path) = head.path {
        let path = PathAndQuery::try_from(path);
        uri.path_and_query = Some(path.map_err(|_| invalid(PseudoField::Path))?);
    }
    *request.uri_mut() = Uri::from_parts(uri).map_err(|_| invalid(PseudoField::Path))?;
    if let Some(protocol) = head.protocol {
        let protocol = std::str::from_utf8(protocol).map_err(|_| invalid(PseudoField::Protocol))?;
        request.extensions_mut().insert(Protocol::from(protocol));
    }
    *request.headers_mut() = headers(lines)?;
    *request.version_mut() = Version::HTTP_3;
    Ok((request, head.content))
}

/// Returns the fields of a response.
pub(in crate::http3) fn response_fields<'a>(
    status: &'a StatusCode,
    headers: &'a HeaderMap,
) -> Vec<SentField<'a>> {
    let status = (&b":status"[..], status.as_str().as_bytes(), Sensitivity::Ordinary);
    std::iter::once(status).chain(header_fields(headers)).collect()
}

/// Returns what follows the head of a response to a request with this method.
pub(crate) fn response_content(head: &Response<()>, method: &Method) -> Content {
    let status = head.status();
    let is_empty = *method == Method::HEAD
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    match announced_length(head.headers()) {
        _ if status.is_informational() => Content::Interim,
        _ if *method == Method::CONNECT && status.is_success() => Content::Tunnel,
        _ if is_empty => Content::Empty,
        Some(length) => Content::Length(length),
        None => Content::Any,
    }
}
