//! The head of a request on a stream of HTTP/2 or HTTP/3.

use http::{HeaderMap, HeaderValue, Request, Uri, Version, header, uri};

use crate::request_body::UploadBody;
use crate::upstream::UpstreamScheme;

/// Turns the head of a request into that of HTTP/2 (RFC 9113 §8.3.1) or HTTP/3 (RFC 9114 §4.3.1): the host goes into
/// the target, and the end of the stream ends the body.
pub(crate) fn to_multiplexed(
    request: &mut Request<UploadBody>,
    scheme: UpstreamScheme,
    version: Version,
) {
    let host = request.headers_mut().remove(header::HOST);
    request.headers_mut().remove(header::TRANSFER_ENCODING);
    // hyper does not report a 100 Continue of HTTP/2.
    if version == Version::HTTP_2 && request.headers_mut().remove(header::EXPECT).is_some() {
        request.body().progress().gate.open();
    }
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(if scheme.is_secure() { uri::Scheme::HTTPS } else { uri::Scheme::HTTP });
    parts.authority = host.as_ref().and_then(|host| host.as_bytes().try_into().ok());
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    *request.version_mut() = version;
}

/// Turns it back into that of HTTP/1.1.
pub(crate) fn to_http1(mut request: Request<UploadBody>) -> Request<UploadBody> {
    let parts = std::mem::take(request.uri_mut()).into_parts();
    let host = parts.authority.and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    let is_open = !http_body::Body::is_end_stream(request.body())
        && !request.headers().contains_key(header::CONTENT_LENGTH);
    let fields = std::mem::take(request.headers_mut());
    let headers: &mut HeaderMap = request.headers_mut();
    headers.extend(host.map(|host| (header::HOST, host)));
    headers.extend(fields);
    if is_open {
        headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    *request.uri_mut() = parts.path_and_query.map_or_else(Uri::default, Uri::from);
    *request.version_mut() = Version::HTTP_11;
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_was_not_sent_on_a_stream_is_what_it_was() {
        for version in [Version::HTTP_2, Version::HTTP_3] {
            for (framing, value) in [("content-length", "0"), ("x", "y")] {
                let request = || {
                    let request = Request::put("/p?q").header("host", "a.example:81");
                    request.header(framing, value).body(UploadBody::none()).expect("a request")
                };
                let mut sent = request();
                to_multiplexed(&mut sent, UpstreamScheme::H2c, version);
                assert_eq!(
                    (sent.uri().to_string(), sent.version()),
                    ("http://a.example:81/p?q".to_owned(), version)
                );
                assert!(!sent.headers().contains_key(header::HOST));
                let (back, expected) = (to_http1(sent), request());
                assert_eq!((back.uri(), back.version()), (expected.uri(), expected.version()));
                assert_eq!(back.headers(), expected.headers());
            }
        }
    }
}
