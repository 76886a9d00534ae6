//! Messages as the http crate has them, and as fields with pseudo-header fields (RFC 9114 §4.3).

use bytes::Bytes;
use eyas_h3::{
    fault::StreamFault,
    message::{MessageFault, PseudoField, check_trailers},
    qpack::{FieldLine, Sensitivity},
};
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The most fields that the http crate can hold.
const MAX_FIELDS: u64 = 1 << 15;

/// What each field adds to the size of its section (RFC 9114 §4.2.2), in bytes.
const LINE_OVERHEAD: u64 = 32;

/// A field to be sent.
pub(super) type SentField<'a> = (&'a [u8], &'a [u8], Sensitivity);

/// Returns what `Content-Length` says, if it is one number.
pub(super) fn announced_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns the fields of trailers, or of a head without its pseudo-header fields.
pub(super) fn header_fields(headers: &HeaderMap) -> impl Iterator<Item = SentField<'_>> {
    headers.iter().map(|(name, value)| {
        (name.as_str().as_bytes(), value.as_bytes(), Sensitivity::from(value.is_sensitive()))
    })
}

/// Parses trailers.
pub(super) fn parse_trailers(lines: &[FieldLine]) -> Result<HeaderMap, StreamFault> {
    check_trailers(pairs(lines)).map_err(StreamFault::Message)?;
    headers(lines)
}

pub(super) fn pairs(lines: &[FieldLine]) -> impl Iterator<Item = (&[u8], &[u8])> {
    lines.iter().map(|line| (&line.name[..], &line.value[..]))
}

/// Collects the fields other than pseudo-header fields. Their values are not copied.
pub(super) fn headers(lines: &[FieldLine]) -> Result<HeaderMap, StreamFault> {
    let too_many = |_| StreamFault::FieldSectionTooLarge { limit: MAX_FIELDS * LINE_OVERHEAD };
    let mut headers = HeaderMap::try_with_capacity(lines.len()).map_err(too_many)?;
    for line in lines.iter().filter(|line| !line.name.starts_with(b":")) {
        let name = HeaderName::from_lowercase(&line.name);
        let name = name.map_err(|_| StreamFault::Message(MessageFault::NameInvalid))?;
        let mut value = value(&line.value)?;
        value.set_sensitive(line.sensitive);
        headers.try_append(name, value).map_err(too_many)?;
    }
    Ok(headers)
}

fn value(bytes: &Bytes) -> Result<HeaderValue, StreamFault> {
    let value = HeaderValue::from_maybe_shared(bytes.clone());
    value.map_err(|_| StreamFault::Message(MessageFault::ValueInvalid))
}

pub(super) fn invalid(field: PseudoField) -> StreamFault {
    StreamFault::Message(MessageFault::PseudoFieldInvalid(field))
}

#[cfg(all(test, feature = "client", feature = "server"))]
mod tests {
    use eyas_h3::message::{Content, RequestMethod, RequestOptions};
    use http::{Method, Request, Response};
    use hyper::ext::Protocol;

    use super::*;
    use crate::http3::{
        client::message::{parse_response, request_fields},
        server::message::{parse_request, response_content, response_fields},
    };

    /// Returns the fields as a peer decodes them.
    fn received(fields: &[SentField<'_>]) -> Vec<FieldLine> {
        let line = |(name, value, sensitivity): &SentField<'_>| FieldLine {
            name: Bytes::copy_from_slice(name),
            value: Bytes::copy_from_slice(value),
            sensitive: *sensitivity == Sensitivity::Sensitive,
        };
        fields.iter().map(line).collect()
    }

    /// Returns the names of the pseudo-header fields, in order.
    fn pseudo_fields<'a>(fields: &[SentField<'a>]) -> Vec<&'a str> {
        let names = fields.iter().map(|(name, ..)| std::str::from_utf8(name).expect("a name"));
        names.filter(|name| name.starts_with(':')).collect()
    }

    #[test]
    fn a_request_is_read_back() {
        let options = RequestOptions { extended_connect: true };
        for (method, uri, protocol, expected) in [
            (
                "GET",
                "https://a.example/b?c",
                None,
                &[":method", ":scheme", ":authority", ":path"][..],
            ),
            ("OPTIONS", "https://a.example/", None, &[":method", ":scheme", ":authority", ":path"]),
            // RFC 9114 §4.4.
            ("CONNECT", "a.example:443", None, &[":method", ":authority"]),
            // RFC 9220 §3.
            (
                "CONNECT",
                "https://a.example/chat",
                Some("websocket"),
                &[":method", ":scheme", ":authority", ":path", ":protocol"],
            ),
        ] {
            let mut head = Request::builder().method(method).uri(uri).body(()).expect("a request");
            head.headers_mut().append("x", "1".parse().expect("a value"));
            head.headers_mut().append("x", "2".parse().expect("a value"));
            if let Some(protocol) = protocol {
                head.extensions_mut().insert(Protocol::from_static(protocol));
            }
            let fields = request_fields(&head);
            assert_eq!(pseudo_fields(&fields), expected, "{method} {uri}");
            let (read, content) = parse_request(&received(&fields), options).expect("well-formed");
            assert_eq!((read.method(), read.uri()), (head.method(), head.uri()));
            assert_eq!(read.headers(), head.headers());
            let found = read.extensions().get::<Protocol>().map(Protocol::as_str);
            assert_eq!(found, protocol);
            assert_eq!(content == Content::Tunnel, method == "CONNECT");
        }
    }

    #[test]
    fn a_response_is_read_back_with_what_follows_it() {
        for (status, length, method, expected) in [
            (200, None, "GET", Content::Any),
            (200, Some("5"), "GET", Content::Length(5)),
            (200, Some("5"), "HEAD", Content::Empty),
            (304, Some("5"), "GET", Content::Empty),
            (204, None, "GET", Content::Empty),
            (103, None, "GET", Content::Interim),
            (200, None, "CONNECT", Content::Tunnel),
            (407, Some("5"), "CONNECT", Content::Length(5)),
        ] {
            let mut head = Response::builder().status(status).body(()).expect("a response");
            if let Some(length) = length {
                head.headers_mut().insert("content-length", length.parse().expect("a value"));
            }
            let name = Method::from_bytes(method.as_bytes()).expect("a method");
            assert_eq!(response_content(&head, &name), expected, "{status} {method}");
            let code = head.status();
            let lines = received(&response_fields(&code, head.headers()));
            let method = RequestMethod::from_name(method.as_bytes());
            let (read, content) = parse_response(&lines, method).expect("well-formed");
            assert_eq!((read.status(), read.headers()), (head.status(), head.headers()));
            assert_eq!(content, expected);
        }
    }

    #[test]
    fn a_secret_remains_one() {
        let mut secret = HeaderValue::from_static("secret");
        secret.set_sensitive(true);
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, secret)]);
        let lines = received(&header_fields(&headers).collect::<Vec<_>>());
        assert!(lines[0].sensitive);
        let read = parse_trailers(&lines).expect("well-formed");
        assert!(read[header::AUTHORIZATION].is_sensitive());
    }

    /// The http crate panics on more, or fails.
    #[test]
    fn more_fields_than_can_be_held_are_too_many() {
        let line = |number: u64| FieldLine {
            name: format!("x-{number}").into(),
            value: Bytes::new(),
            sensitive: false,
        };
        let lines: Vec<_> = (0..2 * MAX_FIELDS).map(line).collect();
        let fault = parse_trailers(&lines).expect_err("too many");
        assert!(matches!(fault, StreamFault::FieldSectionTooLarge { .. }), "{fault}");
    }
}
