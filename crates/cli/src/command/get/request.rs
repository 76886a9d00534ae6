//! From flags to the request.

use std::io::Read;

use base64::prelude::{BASE64_STANDARD, Engine};
use eyas_http::{Client, Error, Response};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use url::Url;

use crate::failure::{Failure, Kind};
use crate::flags::{GetFlags, RequestFlags};

/// What is sent as `User-Agent` unless told otherwise.
const OWN_NAME: &str = concat!("eyas/", env!("CARGO_PKG_VERSION"));
/// What curl says that the data of `-d` is.
const FORM: &str = "application/x-www-form-urlencoded";

/// A request before it is sent.
pub(super) struct Request {
    /// Its method.
    pub(super) method: Method,
    /// Where it goes, without user and password.
    pub(super) url: Url,
    /// Its headers.
    pub(super) headers: HeaderMap,
    body: Option<Vec<u8>>,
}

impl Request {
    /// Reads the flags, and the files that they name.
    pub(super) fn read(flags: &GetFlags, url: &Url) -> Result<Self, Failure> {
        let request = &flags.request;
        let body = data(request)?;
        let method = match (&request.method, request.head, body.is_some()) {
            (Some(method), _, _) => method.clone(),
            (None, true, _) => Method::HEAD,
            (None, false, true) => Method::POST,
            (None, false, false) => Method::GET,
        };
        let mut bare = url.clone();
        // A URL with a host, as this one is, can lose both.
        let _ = bare.set_username("");
        let _ = bare.set_password(None);
        bare.set_fragment(None);
        let headers = headers(request, url, body.is_some())?;
        Ok(Self { method, url: bare, headers, body })
    }

    /// Sends it.
    pub(super) async fn send(&self, client: &Client) -> Result<Response, Error> {
        let builder = client.request(self.method.clone(), self.url.as_str());
        let builder = builder.headers(self.headers.clone());
        match &self.body {
            Some(body) => builder.body(body.clone()).send().await,
            None => builder.send().await,
        }
    }
}

/// The pieces of `-d`, joined with `&`.
fn data(request: &RequestFlags) -> Result<Option<Vec<u8>>, Failure> {
    let text = request.data.iter().map(|piece| (piece, false));
    let binary = request.data_binary.iter().map(|piece| (piece, true));
    let mut body: Option<Vec<u8>> = None;
    for (piece, whole) in text.chain(binary) {
        let piece = read_piece(piece, whole)?;
        match &mut body {
            Some(body) => {
                body.push(b'&');
                body.extend(piece);
            }
            None => body = Some(piece),
        }
    }
    Ok(body)
}

/// `@FILE` and `@-` are read; line ends stay only if the piece is to be whole.
fn read_piece(piece: &str, whole: bool) -> Result<Vec<u8>, Failure> {
    let Some(file) = piece.strip_prefix('@') else { return Ok(piece.as_bytes().to_vec()) };
    let mut bytes = match file {
        "-" => {
            let mut bytes = Vec::new();
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|cause| Failure::read("standard input", &cause))?;
            bytes
        }
        path => std::fs::read(path).map_err(|cause| Failure::read(path, &cause))?,
    };
    if !whole {
        bytes.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
    }
    Ok(bytes)
}

fn headers(request: &RequestFlags, url: &Url, with_body: bool) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    match request.user_agent.as_deref() {
        None => drop(headers.insert(USER_AGENT, HeaderValue::from_static(OWN_NAME))),
        Some("") => {}
        Some(name) => drop(headers.insert(USER_AGENT, sendable(name, "-A")?)),
    }
    if with_body {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FORM));
    }
    if let Some(user) = user(request, url) {
        let mut value = sendable(&format!("Basic {}", BASE64_STANDARD.encode(&user)), "-u")?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    for line in &request.header {
        headers.remove(&line.name);
    }
    for line in &request.header {
        if let Some(value) = &line.value {
            headers.append(line.name.clone(), value.clone());
        }
    }
    Ok(headers)
}

fn sendable(value: &str, flag: &str) -> Result<HeaderValue, Failure> {
    let unsendable = |_| Failure::new(Kind::Usage, format!("the value of {flag} cannot be sent"));
    HeaderValue::from_str(value).map_err(unsendable)
}

/// `user:password`, from `-u` or else from the URL, where they are percent-encoded.
fn user(request: &RequestFlags, url: &Url) -> Option<Vec<u8>> {
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

    fn request(line: &[&str]) -> Result<Request, Failure> {
        let cli = Cli::try_parse_from(["eyas", "get"].iter().chain(line)).expect("parses");
        let Command::Get(flags) = cli.command else { panic!("get was asked for") };
        let url = super::super::target::url(&flags.url).expect("a URL");
        Request::read(&flags, &url)
    }

    #[test]
    fn a_plain_request_says_who_asks() {
        let plain = request(&["https://a/b#c"]).expect("reads");
        assert_eq!(plain.method, Method::GET);
        assert_eq!(plain.url.as_str(), "https://a/b");
        assert_eq!(plain.headers[USER_AGENT], OWN_NAME);
        assert_eq!(plain.headers[ACCEPT], "*/*");
    }

    #[test]
    fn data_makes_a_form() {
        let form = request(&["-d", "a=1", "-d", "b=2", "https://a/"]).expect("reads");
        assert_eq!(form.method, Method::POST);
        assert_eq!(form.headers[CONTENT_TYPE], FORM);
        assert_eq!(form.body.as_deref(), Some(&b"a=1&b=2"[..]));
    }

    #[test]
    fn data_from_a_file_loses_its_line_ends_unless_binary() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), b"a\r\nb\n").expect("writes");
        let piece = format!("@{}", file.path().display());
        let text = request(&["-d", &piece, "https://a/"]).expect("reads");
        assert_eq!(text.body.as_deref(), Some(&b"ab"[..]));
        let binary = request(&["--data-binary", &piece, "https://a/"]).expect("reads");
        assert_eq!(binary.body.as_deref(), Some(&b"a\r\nb\n"[..]));
        let missing = request(&["-d", "@/no/such/file", "https://a/"]).err().expect("fails");
        assert_eq!(missing.kind, Kind::Read);
    }

    #[test]
    fn headers_replace_what_would_be_sent() {
        let line = ["-H", "Accept: text/html", "-H", "User-Agent:", "-H", "X: 1", "-H", "X: 2"];
        let made = request(&[&line[..], &["https://a/"]].concat()).expect("reads");
        assert_eq!(made.headers[ACCEPT], "text/html");
        assert!(!made.headers.contains_key(USER_AGENT));
        assert_eq!(made.headers.get_all("x").iter().count(), 2);
    }

    #[test]
    fn users_come_from_the_flag_or_the_url_and_leave_it() {
        let flag = request(&["-u", "ada:secret", "https://a/"]).expect("reads");
        assert_eq!(flag.headers[AUTHORIZATION], "Basic YWRhOnNlY3JldA==");
        let url = request(&["https://ada:s%65cret@a/"]).expect("reads");
        assert_eq!(url.headers[AUTHORIZATION], "Basic YWRhOnNlY3JldA==");
        assert_eq!(url.url.as_str(), "https://a/");
    }
}
