//! Decides whether a response is a redirect to follow, and which parts of the request may be sent
//! there (RFC 9110 §15.4).

use std::borrow::Cow;

use http::{
    HeaderMap, Method, StatusCode, Version,
    header::{
        AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION,
        CONTENT_TYPE, COOKIE, HOST, HeaderName, LOCATION, PROXY_AUTHORIZATION, TRANSFER_ENCODING,
    },
};
use percent_encoding::AsciiSet;
use url::Url;

use super::request_url;
use crate::{
    Body, Error, Kind, protocol::Omitted, text_without_password, without_password, zoned_url,
};

/// Fields that describe a body, and are removed with it.
const BODY_FIELDS: [HeaderName; 6] = [
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LENGTH,
    CONTENT_LOCATION,
    CONTENT_TYPE,
    TRANSFER_ENCODING,
];

/// Fields that are sent only to the origin they were meant for.
const ORIGIN_FIELDS: [HeaderName; 4] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, HOST];

/// One request of a chain.
pub(super) struct Hop {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// The fields that are not to be added.
    pub(super) omitted: Omitted,
    /// `None` once it has been sent and cannot be sent again.
    pub(super) body: Option<Body>,
}

/// A redirect that was followed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Redirect {
    /// The URL of the redirecting response, without user and password.
    pub from: Url,
    /// The URL that it redirected to, without user and password.
    pub to: Url,
    /// The status code.
    pub status: StatusCode,
    /// The version of HTTP that carried it.
    pub version: Version,
    /// The reason phrase of its status line, over HTTP/1, if it is not the usual one for the status.
    pub reason: Option<bytes::Bytes>,
    /// The header fields.
    pub headers: HeaderMap,
}

/// The rules by which redirects are followed.
pub(super) struct Rules {
    /// Whether `https` may lead to `http`.
    pub(super) allow_downgrade: bool,
}

/// Returns whether the response is a redirect with a location, which an empty one is not: it would
/// lead to the same URL for ever.
pub(super) fn is_redirect(status: StatusCode, headers: &HeaderMap) -> bool {
    let location = headers.get(LOCATION).map(|value| value.as_bytes().trim_ascii());
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
        && location.is_some_and(|location| !location.is_empty())
}

impl Hop {
    /// Turns this into the request that the redirect asks for.
    pub(super) fn follow(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        rules: &Rules,
    ) -> Result<(), Error> {
        let to = self.location(headers, rules)?;
        let becomes_get = match status {
            StatusCode::SEE_OTHER => !matches!(self.method, Method::GET | Method::HEAD),
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = Some(Body::empty());
            for name in &BODY_FIELDS {
                self.headers.remove(name);
            }
        } else if self.body.is_none() {
            let detail = format!(
                "{} requires the body to be sent again, and a pipe or another stream can be read \
                 only once: send a file, or data in memory",
                status
            );
            return Err(Error::new(Kind::Redirect, detail));
        }
        if to.origin() != self.url.origin() {
            for name in &ORIGIN_FIELDS {
                self.headers.remove(name);
            }
        }
        self.url = to;
        Ok(())
    }

    fn location(&self, headers: &HeaderMap, rules: &Rules) -> Result<Url, Error> {
        let refuse = |why: String| Error::new(Kind::Redirect, why);
        let location = headers
            .get(LOCATION)
            .map(|value| location_text(value.as_bytes()))
            .ok_or_else(|| refuse("there is no Location".to_owned()))?;
        let mut to = zoned_url::join(&self.url, &location).map_err(|error| {
            let shown = text_without_password(&location);
            refuse(format!("its Location {shown:?} is not a URL: {error}"))
        })?;
        if !matches!(to.scheme(), "http" | "https") || !to.has_host() {
            return Err(refuse(format!(
                "it leads to {}, which is not HTTP",
                without_password(&to)
            )));
        }
        // The server chose these, not the user: they are neither sent nor shown.
        request_url::remove_user_info(&mut to);
        if self.url.scheme() == "https" && to.scheme() == "http" && !rules.allow_downgrade {
            return Err(refuse(format!("it leads from https to {to}, which is not encrypted")));
        }
        if to.fragment().is_none() {
            to.set_fragment(self.url.fragment());
        }
        Ok(to)
    }
}

/// Returns a Location as text. Octets that are not UTF-8 are percent-encoded one by one: they are
/// what the server expects back, whatever its character set.
fn location_text(octets: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(octets) {
        Ok(text) => text.into(),
        Err(_) => percent_encoding::percent_encode(octets, OTHER_OCTETS).into(),
    }
}

/// Everything except ASCII; what else has to be encoded depends on the part of the URL.
const OTHER_OCTETS: &AsciiSet = &AsciiSet::EMPTY;

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn hop(method: Method, url: &str) -> Hop {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("secret"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        let (url, omitted) = (url.parse().expect("a URL"), Omitted::default());
        Hop { method, url, headers, omitted, body: Some("body".into()) }
    }

    fn to(location: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(location))])
    }

    const STRICT: Rules = Rules { allow_downgrade: false };

    #[test]
    fn the_method_changes_according_to_the_status() {
        for (status, method, becomes) in [
            (301, Method::POST, Method::GET),
            (302, Method::POST, Method::GET),
            (301, Method::PUT, Method::PUT),
            (302, Method::HEAD, Method::HEAD),
            (303, Method::PUT, Method::GET),
            (303, Method::HEAD, Method::HEAD),
            (301, Method::QUERY, Method::QUERY),
            (303, Method::QUERY, Method::GET),
            (307, Method::POST, Method::POST),
            (308, Method::POST, Method::POST),
        ] {
            let mut hop = hop(method.clone(), "https://a.example/x/y");
            let status = StatusCode::from_u16(status).expect("a status");
            hop.follow(status, &to("z?q"), &STRICT).expect("followed");
            assert_eq!(hop.method, becomes, "{status} of {method}");
            assert_eq!(hop.url.as_str(), "https://a.example/x/z?q");
            let changed = becomes != method;
            assert_eq!(hop.headers.contains_key(CONTENT_TYPE), !changed);
            let body = hop.body.expect("a body");
            assert_eq!(http_body::Body::is_end_stream(&body), changed);
            assert!(hop.headers.contains_key(AUTHORIZATION));
        }
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        for other in ["https://b.example/", "https://a.example:8443/", "//b.example/"] {
            let mut hop = hop(Method::GET, "https://a.example/");
            hop.follow(StatusCode::FOUND, &to(other), &STRICT).expect("followed");
            assert!(!hop.headers.contains_key(AUTHORIZATION), "{other}");
        }
    }

    //= hostile client
    //# a redirect with a password
    //= bound: neither sent nor shown
    #[test]
    fn credentials_in_a_location_are_neither_kept_nor_shown() {
        let mut hop = hop(Method::GET, "https://a.example/");
        let named = to("https://ada:secret@b.example/");
        hop.follow(StatusCode::FOUND, &named, &STRICT).expect("followed");
        assert_eq!(hop.url.as_str(), "https://b.example/");
        for location in
            ["http://ada:secret@b.example/", "ftp://ada:secret@b.example/", "//ada:secret@b c/"]
        {
            let error = hop.follow(StatusCode::FOUND, &to(location), &STRICT).expect_err(location);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_stream_is_not_sent_twice() {
        let mut hop = hop(Method::POST, "https://a.example/");
        hop.body = None;
        let error = hop
            .follow(StatusCode::PERMANENT_REDIRECT, &to("/b"), &STRICT)
            .expect_err("a stream cannot be repeated");
        assert_eq!(error.kind(), Kind::Redirect);
        hop.follow(StatusCode::SEE_OTHER, &to("/b"), &STRICT).expect("GET has no body");
    }

    #[test]
    fn a_location_is_followed_in_whatever_octets_it_was_written() {
        let cases: [(&[u8], &str); 9] = [
            (b"/caf\xe9", "https://a.example/caf%E9"),
            ("/café".as_bytes(), "https://a.example/caf%C3%A9"),
            ("?q=é".as_bytes(), "https://a.example/x?q=%C3%A9"),
            (b"?q=\xe9&r=%e9", "https://a.example/x?q=%E9&r=%e9"),
            (b"/a b", "https://a.example/a%20b"),
            (b"  /a\tb  ", "https://a.example/ab"),
            (b"/\xff\xfe#\xe9", "https://a.example/%FF%FE#%E9"),
            (b"/\x83\x65\x83\x58?\x83\x67", "https://a.example/%83e%83X?%83g"),
            ("//bücher.example/ü".as_bytes(), "https://xn--bcher-kva.example/%C3%BC"),
        ];
        for (location, url) in cases {
            let mut hop = hop(Method::GET, "https://a.example/x");
            let value = HeaderValue::from_bytes(location).expect(url);
            let headers = HeaderMap::from_iter([(LOCATION, value)]);
            hop.follow(StatusCode::FOUND, &headers, &STRICT).expect(url);
            assert_eq!(hop.url.as_str(), url);
        }
        let mut hop = hop(Method::GET, "https://a.example/");
        let value = HeaderValue::from_bytes(b"//b\xe9.example/").expect("a value");
        let headers = HeaderMap::from_iter([(LOCATION, value)]);
        let error = hop.follow(StatusCode::FOUND, &headers, &STRICT).expect_err("no host");
        assert_eq!(error.kind(), Kind::Redirect);
    }

    #[test]
    fn forbidden_redirects() {
        for location in ["http://a.example/", "ftp://a.example/", "https://", "http://[/"] {
            let mut hop = hop(Method::GET, "https://a.example/");
            let error = hop.follow(StatusCode::FOUND, &to(location), &STRICT).expect_err(location);
            assert_eq!(error.kind(), Kind::Redirect);
        }
        let mut hop = hop(Method::GET, "https://a.example/");
        let permissive = Rules { allow_downgrade: true };
        hop.follow(StatusCode::FOUND, &to("http://a.example/"), &permissive).expect("asked for");
    }
}
