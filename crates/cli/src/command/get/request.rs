//! The request of `eyas get`, built from its flags. Those that curl has mean the same as there.

use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use eyas_http::{Client, Error, Response};
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderName, PROXY_AUTHORIZATION, RANGE, REFERER,
    USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Method};
use http_body::Body as _;
use url::Url;

use super::content::{RequestContent, RequestInputs, upload_url};
use crate::failure::{Failure, FailureKind};
use crate::flags::{GetFlags, HeaderLine, RequestFlags};

/// The default `User-Agent`.
const DEFAULT_USER_AGENT: &str = concat!("eyas/", env!("CARGO_PKG_VERSION"));
/// The media type that curl states for the data of `-d`.
const FORM: &str = "application/x-www-form-urlencoded";

/// Fields whose values `-v` does not show.
const SECRETS: [HeaderName; 3] = [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE];

/// A request before it is sent.
pub(super) struct PreparedRequest {
    pub(super) method: Method,
    /// The URL, without user, password and fragment.
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// Headers that the client must not add by itself: those of `-H NAME:`.
    omitted: Vec<HeaderName>,
    /// `None` without content, and once it is sent.
    content: Option<RequestContent>,
}

impl PreparedRequest {
    /// Reads the flags, and the files that they name, except those that `inputs` has read for all
    /// requests.
    pub(super) async fn read(
        flags: &GetFlags,
        url: &Url,
        inputs: &RequestInputs,
    ) -> Result<Self, Failure> {
        let (request, data) = (&flags.request, inputs.data.as_deref());
        let content = RequestContent::read(request, data.filter(|_| !request.get)).await?;
        let method = match (&request.method, &content) {
            (Some(method), _) => method.clone(),
            (None, _) if request.head => Method::HEAD,
            (None, Some(RequestContent::Upload(_))) => Method::PUT,
            (None, Some(_)) => Method::POST,
            (None, None) => Method::GET,
        };
        let mut sent_url = upload_url(url, request.upload_file.as_deref());
        if let Some(data) = data.filter(|_| request.get) {
            add_to_query(&mut sent_url, data);
        }
        // These succeed for URLs with a host, as this one has.
        let _ = sent_url.set_username("");
        let _ = sent_url.set_password(None);
        sent_url.set_fragment(None);
        let lines = &inputs.header_lines;
        let has_data = matches!(content, Some(RequestContent::Data(_)));
        let headers = request_headers(request, lines, url, has_data)?;
        let without_value = lines.iter().filter(|line| line.value.is_none());
        let omitted = without_value.map(|line| line.name.clone()).collect();
        Ok(Self { method, url: sent_url, headers, omitted, content })
    }

    /// Asks for the rest of the body from this offset on, which replaces the range of `-r`. At offset
    /// 0 that is the whole body, and nothing changes.
    pub(super) fn set_offset(&mut self, offset: u64) {
        if offset > 0
            && let Ok(range) = HeaderValue::try_from(format!("bytes={offset}-"))
        {
            self.headers.insert(RANGE, range);
        }
    }

    /// Returns how many bytes of content are to be sent: 0 if that is unknown, as for a form, and once
    /// the request has been sent.
    pub(super) fn content_length(&self) -> u64 {
        match &self.content {
            Some(RequestContent::Data(data)) => data.len() as u64,
            Some(RequestContent::Upload(body)) => body.size_hint().exact().unwrap_or(0),
            Some(RequestContent::Form(_)) | None => 0,
        }
    }

    /// Sends it within this time, if there is a limit. Its content can be sent only once.
    pub(super) async fn send(
        &mut self,
        client: &Client,
        limit: Option<Duration>,
    ) -> Result<Response, Error> {
        let builder = client.request(self.method.clone(), self.url.as_str()).timeout(limit);
        let mut builder = builder.headers(self.headers.clone());
        for name in &self.omitted {
            builder = builder.without_header(name.clone());
        }
        match self.content.take() {
            Some(content) => content.add_to(builder).send().await,
            None => builder.send().await,
        }
    }
}

/// Adds the data of `-G`, as it is.
fn add_to_query(url: &mut Url, data: &[u8]) {
    let data = String::from_utf8_lossy(data);
    let query = url.query().filter(|query| !query.is_empty());
    if data.is_empty() && query.is_none() {
        return;
    }
    let query = query.map_or_else(|| data.to_string(), |query| format!("{query}&{data}"));
    url.set_query(Some(&query));
}

/// Returns the headers that the flags ask for. The lines of `-H` replace what other flags and the
/// defaults have set, and lines with the same name are all sent.
fn request_headers(
    request: &RequestFlags,
    lines: &[HeaderLine],
    url: &Url,
    has_data: bool,
) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    let user_agent = match request.user_agent.as_deref() {
        None => Some(HeaderValue::from_static(DEFAULT_USER_AGENT)),
        // As in curl, an empty name leaves the header out.
        Some("") => None,
        Some(name) => Some(header_value(name, "-A")?),
    };
    if let Some(user_agent) = user_agent {
        headers.insert(USER_AGENT, user_agent);
    }
    if has_data {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FORM));
    }
    if let Some(referer) = RefererFlag::parse(request).first {
        headers.insert(REFERER, header_value(referer, "-e")?);
    }
    if let Some(range) = &request.range {
        // As in curl, an offset alone is a range without an end.
        let end = if range.bytes().all(|digit| digit.is_ascii_digit()) { "-" } else { "" };
        headers.insert(RANGE, header_value(&format!("bytes={range}{end}"), "-r")?);
    }
    if let Some(token) = &request.oauth2_bearer {
        headers.insert(AUTHORIZATION, header_value(&format!("Bearer {token}"), "--oauth2-bearer")?);
    } else if let Some(credentials) = credentials(request, url) {
        let encoded = BASE64_STANDARD.encode(&credentials);
        headers.insert(AUTHORIZATION, header_value(&format!("Basic {encoded}"), "-u")?);
    }
    // First all are removed, so that a line does not remove another one of its name.
    for line in lines {
        headers.remove(&line.name);
    }
    for line in lines {
        if let Some(value) = &line.value {
            headers.append(line.name.clone(), value.clone());
        }
    }
    for (name, value) in &mut headers {
        value.set_sensitive(SECRETS.contains(name));
    }
    Ok(headers)
}

/// The parts of `-e`.
pub(super) struct RefererFlag<'a> {
    /// The `Referer` of the first request.
    pub(super) first: Option<&'a str>,
    /// Whether each request after a redirect names the page before it (`;auto`).
    pub(super) is_automatic: bool,
}

impl<'a> RefererFlag<'a> {
    pub(super) fn parse(request: &'a RequestFlags) -> Self {
        let text = request.referer.as_deref();
        match text.and_then(|text| text.strip_suffix(";auto")) {
            Some(first) => {
                Self { first: Some(first).filter(|first| !first.is_empty()), is_automatic: true }
            }
            None => Self { first: text, is_automatic: false },
        }
    }
}

/// Returns a value as a header can have it; the error names its flag.
fn header_value(value: &str, flag: &str) -> Result<HeaderValue, Failure> {
    let unsendable =
        |_| Failure::new(FailureKind::Usage, format!("the value of {flag} cannot be sent"));
    HeaderValue::from_str(value).map_err(unsendable)
}

/// Returns `user:password` (RFC 7617 §2), from `-u` or else from the URL, where they are
/// percent-encoded. The password is empty if there is none.
fn credentials(request: &RequestFlags, url: &Url) -> Option<Vec<u8>> {
    if let Some(user) = &request.user {
        let colon = if user.contains(':') { "" } else { ":" };
        return Some(format!("{user}{colon}").into_bytes());
    }
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut user: Vec<u8> = percent_encoding::percent_decode_str(url.username()).collect();
    user.push(b':');
    user.extend(percent_encoding::percent_decode_str(url.password().unwrap_or_default()));
    Some(user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Cli, Command};
    use clap::Parser;

    async fn request(line: &[&str]) -> Result<PreparedRequest, Failure> {
        let cli = Cli::try_parse_from(["eyas", "get"].iter().chain(line)).expect("parses");
        let Command::Get(flags) = cli.command else { panic!("the get command") };
        let url = super::super::target::url(&flags.urls.0[0]).expect("a URL");
        let inputs = RequestInputs::read(&flags.request).await?;
        PreparedRequest::read(&flags, &url, &inputs).await
    }

    fn data(request: &PreparedRequest) -> &[u8] {
        let Some(RequestContent::Data(data)) = &request.content else {
            panic!("{:?}", request.content)
        };
        data
    }

    #[tokio::test]
    async fn a_plain_request_has_a_user_agent() {
        let plain = request(&["https://a/b#c"]).await.expect("reads");
        assert_eq!(plain.method, Method::GET);
        assert_eq!(plain.url.as_str(), "https://a/b");
        assert_eq!(plain.headers[USER_AGENT], DEFAULT_USER_AGENT);
        assert_eq!(plain.headers[ACCEPT], "*/*");
    }

    #[tokio::test]
    async fn data_is_sent_as_a_form() {
        let form = request(&["-d", "a=1", "-d", "b=2", "https://a/"]).await.expect("reads");
        assert_eq!(form.method, Method::POST);
        assert_eq!(form.headers[CONTENT_TYPE], FORM);
        assert_eq!(data(&form), b"a=1&b=2");
    }

    #[tokio::test]
    async fn data_from_a_file_loses_its_line_ends_unless_binary() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), b"a\r\nb\n").expect("writes");
        let piece = format!("@{}", file.path().display());
        let text = request(&["-d", &piece, "https://a/"]).await.expect("reads");
        assert_eq!(data(&text), b"ab");
        let binary = request(&["--data-binary", &piece, "https://a/"]).await.expect("reads");
        assert_eq!(data(&binary), b"a\r\nb\n");
        let missing = request(&["-d", "@/no/such/file", "https://a/"]).await.err().expect("fails");
        assert_eq!(missing.kind, FailureKind::Read);
    }

    #[tokio::test]
    async fn data_can_be_encoded_and_sent_in_the_query() {
        for (piece, expected) in [
            ("a b&c", "a+b%26c"),
            ("=x=y", "x%3Dy"),
            ("n=\u{e9}~", "n=%C3%A9~"),
            ("plain", "plain"),
        ] {
            let form = request(&["--data-urlencode", piece, "https://a/"]).await.expect("reads");
            assert_eq!(data(&form), expected.as_bytes(), "{piece}");
        }
        let get = request(&["-G", "-d", "a=1", "--data-urlencode", "b=2 3", "https://a/?q"]);
        let get = get.await.expect("reads");
        assert_eq!((get.method, get.url.as_str()), (Method::GET, "https://a/?q&a=1&b=2+3"));
        assert!(get.content.is_none() && !get.headers.contains_key(CONTENT_TYPE));
    }

    #[tokio::test]
    async fn a_form_is_posted_and_a_file_is_put() {
        let form =
            request(&["-F", "a=1", "--form-string", "b=@2", "https://a/"]).await.expect("reads");
        assert_eq!(form.method, Method::POST);
        assert!(matches!(form.content, Some(RequestContent::Form(_))));
        assert!(
            !form.headers.contains_key(CONTENT_TYPE),
            "the form sets its own, with the boundary"
        );
        let file = tempfile::NamedTempFile::with_suffix(".bin").expect("a file");
        let path = file.path().to_str().expect("a name");
        let put = request(&["-T", path, "https://a/d/"]).await.expect("reads");
        assert_eq!(put.method, Method::PUT);
        assert!(put.url.path().starts_with("/d/") && put.url.path().ends_with(".bin"));
        for line in [["-F", "a=@/no/such/file"], ["-T", "/no/such/file"]] {
            let missing = request(&[line[0], line[1], "https://a/"]).await.err().expect("fails");
            assert_eq!(missing.kind, FailureKind::Read);
        }
    }

    #[tokio::test]
    async fn headers_replace_the_defaults() {
        let line = ["-H", "Accept: text/html", "-H", "User-Agent:", "-H", "X: 1", "-H", "X: 2"];
        let request = request(&[&line[..], &["https://a/"]].concat()).await.expect("reads");
        assert_eq!(request.headers[ACCEPT], "text/html");
        assert!(!request.headers.contains_key(USER_AGENT));
        assert_eq!(request.headers.get_all("x").iter().count(), 2);
    }

    #[tokio::test]
    async fn an_offset_is_a_range_without_an_end_and_replaces_that_of_the_flag() {
        for (range, expected) in [("5", "bytes=5-"), ("5-9", "bytes=5-9")] {
            let mut request = request(&["-r", range, "https://a/"]).await.expect("reads");
            request.set_offset(0);
            assert_eq!(request.headers[RANGE], expected);
            request.set_offset(7);
            assert_eq!(request.headers[RANGE], "bytes=7-");
        }
    }

    #[tokio::test]
    async fn credentials_come_from_the_flag_or_the_url_and_are_removed_from_it() {
        let flag = request(&["-u", "ada:secret", "https://a/"]).await.expect("reads");
        assert_eq!(flag.headers[AUTHORIZATION], "Basic YWRhOnNlY3JldA==");
        assert!(flag.headers[AUTHORIZATION].is_sensitive());
        let url = request(&["https://ada:s%65cret@a/"]).await.expect("reads");
        assert_eq!(url.headers[AUTHORIZATION], "Basic YWRhOnNlY3JldA==");
        assert_eq!(url.url.as_str(), "https://a/");
    }
}
