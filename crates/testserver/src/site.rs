//! The site of `eyas serve`: routes for tests, and the files of a directory.
//!
//! | route | answer |
//! | --- | --- |
//! | `/` (without a directory), `/eyas` | a page that shows the protocol that it was loaded over |
//! | `/bytes/N` | N bytes, at most [`MAX_BYTES`], each of them the [`pattern_byte`] of its offset |
//! | `/echo` | GET: the request's head as JSON; QUERY, POST, PUT, PATCH, DELETE: the body, streamed back |
//! | `/slow?ms=N` | an answer after N milliseconds, at most [`MAX_SLOW`] |
//! | `/status/CODE` | a response with that status, 200 to 599 |
//! | `/redirect/N` | a chain of N redirections, at most [`MAX_REDIRECTS`] |
//! | anything else | the directory's files, or 404 |

mod bytes;
mod conditions;
mod echo;
mod files;
mod listing;
mod page;
mod range;
mod reply;

use std::{
    convert::Infallible,
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use eyas_http::serve::{
    PeerInfo, RequestBody,
    metered::{Allowance, MeteredBody, Share},
};
use http::{Method, Request, StatusCode};
use tower_service::Service;

pub use self::bytes::{MAX_BYTES, PATTERN_PERIOD, pattern_byte};
use self::{
    listing::RecentListings,
    reply::{SiteReply, error, redirect, refusal},
};

/// The longest wait of `/slow?ms=`: one minute.
pub const MAX_SLOW: Duration = Duration::from_secs(60);

/// The longest chain of `/redirect/N`.
pub const MAX_REDIRECTS: u32 = 100;

/// The site of `eyas serve`, a service only for a server of `eyas-http`, which determines what each
/// connection may hold. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// Canonical, so that a path can be compared with it.
    directory: Option<Arc<Path>>,
    listings: Arc<RecentListings>,
}

/// Why a directory cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// The directory cannot be read.
    #[error("cannot serve {}: {cause}; choose a directory that exists", path.display())]
    Directory {
        /// The path.
        path: PathBuf,
        /// The error from the system.
        cause: io::Error,
    },
    /// The path is not a directory.
    #[error("{} is a file, but a directory is needed; use the one that contains it", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
}

/// Any error.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The client of a request, and its connection's share of the budget.
struct SiteClient {
    peer: PeerInfo,
    allowance: Allowance,
}

impl SiteClient {
    fn share(&self) -> &Arc<Share> {
        &self.allowance.share
    }
}

impl Site {
    /// Creates a site without a directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves the files below this directory at `/`.
    ///
    /// # Errors
    /// If it cannot be read, or is not a directory.
    pub fn with_directory(path: impl AsRef<Path>) -> Result<Self, SiteError> {
        let path = path.as_ref();
        match std::fs::canonicalize(path) {
            Ok(canonical) if canonical.is_dir() => {
                Ok(Self { directory: Some(canonical.into()), listings: Arc::default() })
            }
            Ok(_) => Err(SiteError::NotADirectory { path: path.to_owned() }),
            Err(cause) => Err(SiteError::Directory { path: path.to_owned(), cause }),
        }
    }

    async fn route(&self, client: &SiteClient, request: Request<RequestBody>) -> SiteReply {
        let path = request.uri().path();
        let (first, rest) = match path.trim_start_matches('/').split_once('/') {
            Some((first, rest)) => (first, Some(rest)),
            None => (path.trim_start_matches('/'), None),
        };
        match (first, rest) {
            ("", None) if self.directory.is_none() => {
                get_or_head(&request, || page::respond(client, request.version()))
            }
            ("eyas", None) => get_or_head(&request, || page::respond(client, request.version())),
            ("bytes", Some(count)) => get_or_head(&request, || bytes(&request, count)),
            ("echo", None) => echo::respond(&client.peer, request),
            ("slow", None) => slow(&request).await,
            ("status", Some(code)) => get_or_head(&request, || status(code)),
            ("redirect", Some(count)) => get_or_head(&request, || redirects(count)),
            ("*", None) if request.method() == Method::OPTIONS => reply::options(&[Method::GET]),
            _ => match &self.directory {
                Some(root) => match refusal(&request, &READ_METHODS) {
                    None => files::respond(&self.listings, root, client, &request).await,
                    Some(refusal) => refusal,
                },
                None => error(StatusCode::NOT_FOUND, ROUTES),
            },
        }
    }

    async fn answer(self, mut request: Request<RequestBody>) -> SiteReply {
        let peer = request.extensions_mut().remove();
        let allowance = request.extensions_mut().remove();
        let reply = match peer.zip(allowance) {
            Some((peer, allowance)) => self.route(&SiteClient { peer, allowance }, request).await,
            None => {
                error(StatusCode::INTERNAL_SERVER_ERROR, "This site requires a server of eyas.")
            }
        };
        reply::with_server_fields(reply)
    }
}

impl Service<Request<RequestBody>> for Site {
    type Response = SiteReply;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<SiteReply, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { Ok(this.answer(request).await) })
    }
}

const READ_METHODS: [Method; 2] = [Method::GET, Method::HEAD];

const ROUTES: &str = "Not found. The routes are: / (or /eyas), /bytes/N, /echo, /slow?ms=N, \
                      /status/CODE, /redirect/N.";

/// Answers GET and HEAD, and refuses other methods.
fn get_or_head(request: &Request<RequestBody>, answer: impl FnOnce() -> SiteReply) -> SiteReply {
    refusal(request, &READ_METHODS).unwrap_or_else(answer)
}

fn bytes(request: &Request<RequestBody>, count: &str) -> SiteReply {
    let length = match count.parse::<u64>() {
        Ok(length) if length <= bytes::MAX_BYTES => length,
        _ => {
            return error(
                StatusCode::BAD_REQUEST,
                "/bytes/N requires a whole number of bytes, at most 1073741824 (1 GiB).",
            );
        }
    };
    let reply = reply::ranged(request.headers(), length, |start, end| {
        MeteredBody::from_source(bytes::PatternRange::new(start, end))
    });
    reply::with_type(reply, "application/octet-stream")
}

async fn slow(request: &Request<RequestBody>) -> SiteReply {
    if let Some(refusal) = refusal(request, &READ_METHODS) {
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
            "/slow?ms=N requires a whole number of milliseconds, at most 60000.",
        ),
    }
}

fn status(code: &str) -> SiteReply {
    let code = code.parse().ok().filter(|code| (200..600).contains(code));
    match code.and_then(|code| StatusCode::from_u16(code).ok()) {
        // RFC 9110 §6.4.1: these have no content.
        Some(code @ (StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)) => reply::empty(code),
        Some(code) => reply::text(code, format!("{code}\n")),
        None => error(StatusCode::BAD_REQUEST, "/status/CODE requires a code from 200 to 599."),
    }
}

fn redirects(count: &str) -> SiteReply {
    match count.parse::<u32>() {
        Ok(0) => reply::text(StatusCode::OK, "the end of the chain\n".into()),
        Ok(count) if count <= MAX_REDIRECTS => {
            redirect(StatusCode::FOUND, &format!("/redirect/{}", count - 1))
        }
        _ => error(StatusCode::BAD_REQUEST, "/redirect/N requires a number from 0 to 100."),
    }
}
