//! Errors: what went wrong, with which candidate, and what to do next.

use std::{borrow::Cow, error::Error as StdError, fmt};

use eyas::race::{evidence::FailureCause, trace::Trace};

use crate::{Redirect, zoned_url};

mod connect;

pub(crate) use connect::connect_error;

/// The kind of an error, as programs and exit codes distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The URL is invalid: malformed, without a host, or with a scheme other than `http` and
    /// `https`.
    Url,
    /// The request is invalid, such as a malformed field value or method.
    Request,
    /// DNS returned no address.
    Dns,
    /// No candidate could be connected: refused, unreachable, silent, no network.
    Connect,
    /// The security layer failed: handshake, no common ALPN, our own certificate.
    Tls,
    /// The server's certificate was not accepted.
    Certificate,
    /// The proxy could not be reached, or refused the request.
    Proxy,
    /// No connection within the connect timeout.
    ConnectTimeout,
    /// The exchange took longer than the total timeout.
    TotalTimeout,
    /// The peer was silent for longer than the idle timeout.
    IdleTimeout,
    /// The peer violated HTTP, or closed the connection before it answered.
    Protocol,
    /// Too many redirects, or a redirect that must not be followed.
    Redirect,
    /// The response's body was reset midway.
    BodyReset,
    /// The response's body was truncated.
    BodyTruncated,
    /// The length of the response's body differs from its `Content-Length`.
    BodyLength,
    /// The response's body is larger than the limit.
    BodyTooLarge,
    /// The response's body cannot be decompressed.
    BodyDecode,
    /// The response's body is not the expected JSON.
    BodyJson,
    /// The server answered with an error status, and the caller asked for that to be an error.
    Status,
    /// The caller's request body could not be read.
    RequestBody,
    /// The client was dropped during the request.
    Closed,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 21] = [
        Self::Url,
        Self::Request,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Certificate,
        Self::Proxy,
        Self::ConnectTimeout,
        Self::TotalTimeout,
        Self::IdleTimeout,
        Self::Protocol,
        Self::Redirect,
        Self::BodyReset,
        Self::BodyTruncated,
        Self::BodyLength,
        Self::BodyTooLarge,
        Self::BodyDecode,
        Self::BodyJson,
        Self::Status,
        Self::RequestBody,
        Self::Closed,
    ];

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Request => "request",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Certificate => "certificate",
            Self::Proxy => "proxy",
            Self::ConnectTimeout => "connect-timeout",
            Self::TotalTimeout => "total-timeout",
            Self::IdleTimeout => "idle-timeout",
            Self::Protocol => "protocol",
            Self::Redirect => "redirect",
            Self::BodyReset => "body-reset",
            Self::BodyTruncated => "body-truncated",
            Self::BodyLength => "body-length",
            Self::BodyTooLarge => "body-too-large",
            Self::BodyDecode => "body-decode",
            Self::BodyJson => "body-json",
            Self::Status => "status",
            Self::RequestBody => "request-body",
            Self::Closed => "closed",
        }
    }

    /// Returns whether the error concerns the response's body, after its head had arrived intact.
    pub const fn is_body(self) -> bool {
        matches!(
            self,
            Self::BodyReset
                | Self::BodyTruncated
                | Self::BodyLength
                | Self::BodyTooLarge
                | Self::BodyDecode
                | Self::BodyJson
        )
    }

    /// Returns whether one of the caller's time limits was exceeded.
    pub const fn is_timeout(self) -> bool {
        matches!(self, Self::ConnectTimeout | Self::TotalTimeout | Self::IdleTimeout)
    }

    const fn summary(self) -> &'static str {
        match self {
            Self::Url => "cannot use this URL",
            Self::Request => "cannot send this request",
            Self::Dns => "cannot resolve the host",
            Self::Connect => "cannot connect",
            Self::Tls => "cannot secure the connection",
            Self::Certificate => "cannot trust the server",
            Self::Proxy => "the proxy failed",
            Self::ConnectTimeout => "no connection within the time allowed",
            Self::TotalTimeout => "not finished within the time allowed",
            Self::IdleTimeout => "the peer is silent",
            Self::Protocol => "the exchange failed",
            Self::Redirect => "cannot follow the redirect",
            Self::BodyReset => "the response was reset midway",
            Self::BodyTruncated => "the response's body is truncated",
            Self::BodyLength => "the response's body does not match its Content-Length",
            Self::BodyTooLarge => "the response's body is too large",
            Self::BodyDecode => "the response's body cannot be decompressed",
            Self::BodyJson => "the response's body is not the expected JSON",
            Self::Status => "the server refused",
            Self::RequestBody => "cannot read the request's body",
            Self::Closed => "the client was closed",
        }
    }

    const fn next_step(self) -> &'static str {
        match self {
            Self::Url => "give an absolute URL such as https://example.com/",
            Self::Request => "check the method and the header fields",
            Self::Dns => "check the name, or specify a DNS server that knows it",
            Self::Connect => "race all candidates to see why each of them fails",
            Self::Tls => "check that the port speaks TLS, and what both sides offer",
            Self::Certificate => {
                "check the certificate and the clock, or specify the root to trust"
            }
            Self::Proxy => "check http_proxy, https_proxy, all_proxy and no_proxy",
            Self::ConnectTimeout => {
                "allow more time, or race all candidates to see which are silent"
            }
            Self::TotalTimeout => "allow more time",
            Self::IdleTimeout => "try again later, or allow more idle time",
            Self::Protocol => "try again, or restrict the HTTP versions",
            Self::Redirect => {
                "fetch its location directly, or allow more redirects if there were too many"
            }
            Self::BodyReset | Self::BodyTruncated => "try again; the received data is incomplete",
            Self::BodyLength => "the received data is not what the server meant to send",
            Self::BodyTooLarge => "allow a larger body",
            Self::BodyDecode => "retry without decompression",
            Self::BodyJson => "read the body as text to see what was received",
            Self::Status => "check the URL and the request; the response's body may say why",
            Self::RequestBody => "check the source of the body",
            Self::Closed => "keep the client alive until its responses are read",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error of a request.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    url: Option<String>,
    candidate: Option<String>,
    detail: String,
    status: Option<http::StatusCode>,
    is_empty_reply: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
    trace: Option<Box<Trace>>,
    /// The cause of the broken connection, if it is informative about its path.
    path_failure: Option<FailureCause>,
    /// Whether the detail already states what to do next, more precisely than the kind could.
    has_advice: bool,
    /// The redirects that were followed before.
    redirected: Vec<Redirect>,
}

impl Error {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            url: None,
            candidate: None,
            detail: detail.into(),
            status: None,
            is_empty_reply: false,
            source: None,
            trace: None,
            path_failure: None,
            has_advice: false,
            redirected: Vec::new(),
        }))
    }

    /// Creates an error whose detail is the text of the source, with all its causes.
    pub(crate) fn from_source(
        kind: Kind,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        let source = source.into();
        let mut error = Self::new(kind, chain(source.as_ref()));
        error.0.source = Some(source);
        error
    }

    pub(crate) fn with_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Adds the URL, unless a lower layer has added one.
    pub(crate) fn with_url(mut self, url: &url::Url) -> Self {
        self.0.url.get_or_insert_with(|| without_password(url));
        self
    }

    /// Adds the candidate, unless a lower layer has added one.
    pub(crate) fn with_candidate(mut self, candidate: impl fmt::Display) -> Self {
        self.0.candidate.get_or_insert_with(|| candidate.to_string());
        self
    }

    /// Sets the cause of the broken connection, if it is informative about its path.
    pub(crate) fn with_path_failure(mut self, cause: Option<FailureCause>) -> Self {
        self.0.path_failure = cause;
        self
    }

    /// Returns the cause of the broken connection, if it is informative about its path.
    pub(crate) fn path_failure(&self) -> Option<FailureCause> {
        self.0.path_failure
    }

    /// Marks the detail as containing advice.
    pub(crate) fn with_advice(mut self) -> Self {
        self.0.has_advice = true;
        self
    }

    /// Adds something to the detail.
    pub(crate) fn with_note(mut self, note: &str) -> Self {
        self.0.detail = format!("{}; {note}", self.0.detail);
        self
    }

    /// Marks that the peer closed the connection instead of answering.
    pub(crate) fn with_empty_reply(mut self) -> Self {
        self.0.is_empty_reply = true;
        self
    }

    pub(crate) fn with_status(mut self, status: http::StatusCode) -> Self {
        self.0.status = Some(status);
        self
    }

    pub(crate) fn with_trace(mut self, trace: Trace) -> Self {
        self.0.trace = Some(Box::new(trace));
        self
    }

    /// Adds the redirects that were followed before.
    pub(crate) fn with_redirects(mut self, redirected: Vec<Redirect>) -> Self {
        self.0.redirected = redirected;
        self
    }

    /// Returns the redirects that were followed before the error, in order.
    pub fn redirected(&self) -> &[Redirect] {
        &self.0.redirected
    }

    /// Returns the kind of error.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns the requested URL, with its password replaced by `***`.
    pub fn url(&self) -> Option<&str> {
        self.0.url.as_deref()
    }

    /// Returns the candidate that carried the exchange, such as `quic 192.0.2.1:443`.
    pub fn candidate(&self) -> Option<&str> {
        self.0.candidate.as_deref()
    }

    /// Returns whether the peer closed an HTTP/1 connection instead of answering.
    pub fn is_empty_reply(&self) -> bool {
        self.0.is_empty_reply
    }

    /// Returns the status of the response that is the error: for [`Kind::Status`], for a proxy that refused
    /// to connect, and for a response that does not match its request.
    pub fn status(&self) -> Option<http::StatusCode> {
        self.0.status
    }

    /// Returns the error from the lower layers.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Returns what to do next.
    pub fn next_step(&self) -> &'static str {
        self.0.kind.next_step()
    }

    /// Returns what happened, without what to do next.
    pub fn without_next_step(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| {
            if let Some(url) = &self.0.url {
                write!(f, "{}: ", shortened(url))?;
            }
            f.write_str(self.0.kind.summary())?;
            if let Some(candidate) = &self.0.candidate {
                write!(f, " [{candidate}]")?;
            }
            if !self.0.detail.is_empty() {
                write!(f, ": {}", shortened(&self.0.detail))?;
            }
            Ok(())
        })
    }

    /// Returns the trace of the race, if a race failed.
    pub fn trace(&self) -> Option<&Trace> {
        self.0.trace.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.without_next_step())?;
        if self.0.has_advice {
            return Ok(());
        }
        write!(f, "; {}", self.0.kind.next_step())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("url", &self.0.url)
            .field("candidate", &self.0.candidate)
            .field("detail", &self.0.detail)
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Returns the text of an error and its causes, without repetitions.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text_of_cause = cause.to_string();
        if !text.contains(&text_of_cause) {
            text.push_str(": ");
            text.push_str(&text_of_cause);
        }
        next = cause.source();
    }
    text
}

/// Returns a URL that is safe to display, with its password replaced by `***`.
pub fn without_password(url: &url::Url) -> String {
    if url.password().is_none() {
        return zoned_url::shown(url);
    }
    let mut shown = url.clone();
    // A URL with a password has a host, so this does not fail.
    let _ = shown.set_password(Some(MASK));
    zoned_url::shown(&shown)
}

/// Returns a text that failed to parse as a URL in a form that is safe to display: anything that
/// could be a password is replaced by `***`.
///
/// Since it cannot be known where the password ends in an invalid URL, everything up to the last
/// `@` counts as one.
pub fn text_without_password(text: &str) -> String {
    if let Ok(url) = zoned_url::parse_url(text)
        && url.has_host()
    {
        return without_password(&url);
    }
    let start = text.find("://").map_or(0, |at| at + 3);
    let user = |end: usize| text[start..end].find(':').map(|colon| (start + colon + 1, end));
    match text.rfind('@').filter(|end| *end > start).and_then(user) {
        Some((from, to)) => format!("{}{MASK}{}", &text[..from], &text[to..]),
        None => text.to_owned(),
    }
}

/// The replacement for a password.
const MASK: &str = "***";

/// The longest word of a message, in characters: more than any host name, less than a screen.
const MAX_WORD: usize = 300;
/// What remains of a longer word at its start and its end.
const KEPT_OF_WORD: (usize, usize) = (160, 40);
/// The longest message, and what remains of a longer one.
const MAX_TEXT: usize = 4_000;
const KEPT_OF_TEXT: (usize, usize) = (3_000, 500);

/// Shortens a message for people that quotes what a user or a peer has written: of words above 300
/// characters, such as a URL that is all payload, and of a text above 4,000, `…` replaces the middle.
pub fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_WORD {
        return Cow::Borrowed(text);
    }
    let words = text.split_inclusive(char::is_whitespace);
    let text: String = words.map(|word| without_middle(word, MAX_WORD, KEPT_OF_WORD)).collect();
    Cow::Owned(without_middle(&text, MAX_TEXT, KEPT_OF_TEXT).into_owned())
}

fn without_middle(text: &str, most: usize, (start, end): (usize, usize)) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= most {
        return Cow::Borrowed(text);
    }
    let at = |number: usize| text.char_indices().nth(number).map_or(text.len(), |(at, _)| at);
    Cow::Owned(format!("{}…{}", &text[..at(start)], &text[at(length - end)..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(Kind::from_name("timeout"), None);
    }

    #[test]
    fn long_words_and_texts_lose_their_middle() {
        let long = "é".repeat(65_536);
        let error = Error::new(Kind::Url, format!("\"{long}\" is not a URL")).to_string();
        assert!(error.chars().count() < 500 && error.contains("é…é"), "{error}");
        assert!(error.contains("\" is not a URL"), "{error}");
        let words = "word ".repeat(10_000);
        assert!(shortened(&words).chars().count() < 4_000);
        for unchanged in ["", "a b", &words[..3_999], &"x".repeat(300)] {
            assert_eq!(shortened(unchanged), unchanged);
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        for (text, shown) in [
            ("https://ada:secret@a.example/x", "https://ada:***@a.example/x"),
            ("https://ada@a.example/", "https://ada@a.example/"),
            ("https://a.example:8443/@x", "https://a.example:8443/@x"),
            ("https://ada:secret@a b/", "https://ada:***@a b/"),
            ("https://ada:se/cr@et@a.example:99999/", "https://ada:***@a.example:99999/"),
            ("ada:secret@a.example", "ada:***@a.example"),
            ("ftp://ada:secret@a.example/", "ftp://ada:***@a.example/"),
            ("a.example:x", "a.example:x"),
            ("@:", "@:"),
            ("://:@", "://:***@"),
        ] {
            assert_eq!(text_without_password(text), shown);
        }
    }
}
