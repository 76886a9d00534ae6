//! What the server answers: the routes.

pub(super) mod bytes;
mod echo;
pub(super) mod files;
pub(super) mod listing;
mod page;
mod range;
pub(super) mod reply;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use http::{HeaderValue, Method, Request, StatusCode};

use self::{
    listing::Listings,
    reply::{Reply, error, redirect, refusal},
};
use super::{
    content::Content,
    error::ServeError,
    fields,
    link::Link,
    request_body::RequestBody,
    service::{Answering, Application},
};

/// The longest wait of `/slow?ms=`: one minute.
pub const MAX_SLOW: Duration = Duration::from_secs(60);

/// The longest chain of `/redirect/N`.
pub const MAX_REDIRECTS: u32 = 100;

/// What `eyas serve` serves: the routes, and the files of a directory.
#[derive(Debug)]
pub(super) struct Site {
    /// Canonical, so that a path can be held against it.
    directory: Option<Arc<Path>>,
    listings: Arc<Listings>,
    alt_svc: Option<HeaderValue>,
}

impl Site {
    /// The site with this directory, if it has one, of a server that announces this.
    pub(super) fn new(
        directory: Option<PathBuf>,
        alt_svc: Option<HeaderValue>,
    ) -> Result<Self, ServeError> {
        let directory = match directory {
            Some(path) => match std::fs::canonicalize(&path) {
                Ok(canonical) if canonical.is_dir() => Some(Arc::from(canonical)),
                Ok(_) => return Err(ServeError::NotADirectory { path }),
                Err(cause) => return Err(ServeError::Directory { path, cause }),
            },
            None => None,
        };
        Ok(Self { directory, listings: Arc::default(), alt_svc })
    }

    async fn route(&self, link: &Link, request: Request<RequestBody>) -> Reply {
        let path = request.uri().path();
        let (first, rest) = match path.trim_start_matches('/').split_once('/') {
            Some((first, rest)) => (first, Some(rest)),
            None => (path.trim_start_matches('/'), None),
        };
        match (first, rest) {
            ("", None) if self.directory.is_none() => self.page(link, &request),
            ("eyas", None) => self.page(link, &request),
            ("bytes", Some(count)) => fetch(&request, || bytes(&request, count)),
            ("echo", None) => echo::respond(link, request),
            ("slow", None) => slow(&request).await,
            ("status", Some(code)) => fetch(&request, || status(code)),
            ("redirect", Some(count)) => fetch(&request, || redirects(count)),
            ("*", None) if request.method() == Method::OPTIONS => reply::options(&[Method::GET]),
            _ => match &self.directory {
                Some(root) => match refusal(&request, &FETCHING) {
                    None => files::respond(&self.listings, root, link, &request).await,
                    Some(refusal) => refusal,
                },
                None => error(StatusCode::NOT_FOUND, ROUTES),
            },
        }
    }

    fn page(&self, link: &Link, request: &Request<RequestBody>) -> Reply {
        fetch(request, || page::respond(self.alt_svc.as_ref(), link, request.version()))
    }
}

impl Application for Site {
    fn answer<'a>(&'a self, link: &'a Link, request: Request<RequestBody>) -> Answering<'a> {
        Box::pin(async move { Ok(fields::signed(self.route(link, request).await)) })
    }
}

const FETCHING: [Method; 2] = [Method::GET, Method::HEAD];

const ROUTES: &str = "Nothing is here. There are: / (or /eyas), /bytes/N, /echo, /slow?ms=N, \
                      /status/CODE, /redirect/N.";

/// Answers GET and HEAD, and tells others so.
fn fetch(request: &Request<RequestBody>, answer: impl FnOnce() -> Reply) -> Reply {
    refusal(request, &FETCHING).unwrap_or_else(answer)
}

fn bytes(request: &Request<RequestBody>, count: &str) -> Reply {
    let length = match count.parse::<u64>() {
        Ok(length) if length <= bytes::MAX_BYTES => length,
        _ => {
            return error(
                StatusCode::BAD_REQUEST,
                "/bytes/N wants a whole number of bytes, at most 1073741824 (1 GiB).",
            );
        }
    };
    let reply = reply::ranged(request.headers(), length, |start, end| {
        Content::Pattern(bytes::Pattern::new(start, end))
    });
    reply::with_type(reply, "application/octet-stream")
}

async fn slow(request: &Request<RequestBody>) -> Reply {
    if let Some(refusal) = refusal(request, &FETCHING) {
        return refusal;
    }
    let query = request.uri().query().unwrap_or_default();
    let wait = query.split('&').find_map(|pair| pair.strip_prefix("ms="));
    let wait = wait.and_then(|wait| wait.parse().ok()).map(Duration::from_millis);
    match wait {
        Some(wait) if wait <= MAX_SLOW => {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            reply::text(StatusCode::OK, format!("waited {} ms\n", wait.as_millis()))
        }
        _ => error(
            StatusCode::BAD_REQUEST,
            "/slow?ms=N wants a whole number of milliseconds, at most 60000.",
        ),
    }
}

fn status(code: &str) -> Reply {
    let code = code.parse().ok().filter(|code| (200..600).contains(code));
    match code.and_then(|code| StatusCode::from_u16(code).ok()) {
        // RFC 9110 §6.4.1: these have no content.
        Some(code @ (StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)) => reply::empty(code),
        Some(code) => reply::text(code, format!("{code}\n")),
        None => error(StatusCode::BAD_REQUEST, "/status/CODE wants a code from 200 to 599."),
    }
}

fn redirects(count: &str) -> Reply {
    match count.parse::<u32>() {
        Ok(0) => reply::text(StatusCode::OK, "the end of the chain\n".into()),
        Ok(count) if count <= MAX_REDIRECTS => {
            redirect(StatusCode::FOUND, &format!("/redirect/{}", count - 1))
        }
        _ => error(StatusCode::BAD_REQUEST, "/redirect/N wants a number from 0 to 100."),
    }
}
