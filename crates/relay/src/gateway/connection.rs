//! A connection to the upstream, and what a request needs of it.

use std::future::Future;
use std::net::SocketAddr;

use eyas::Feedback;
use eyas::race::evidence::{Cause, Failure, Level};
use eyas_http::InputEnd;
use http::{HeaderMap, HeaderValue, Request, Response, Uri, Version, header, uri};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::request_body::Upload;
use super::upstream::Scheme;

/// The client connection that a connection belongs to: with the PROXY protocol a single one, otherwise none.
pub(super) type Owner = Option<(SocketAddr, SocketAddr)>;

/// The connection that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) owner: Owner,
    /// Whether only HTTP/1.1 will do: to switch to another protocol, and behind a PROXY header, since such a
    /// connection serves one client.
    pub(super) http1_only: bool,
}

impl Wanted {
    /// Returns what a request needs that may switch to another protocol.
    pub(super) fn new(owner: Owner, switches: bool) -> Self {
        Self { owner, http1_only: switches || owner.is_some() }
    }
}

/// A connection, or a share of one.
#[derive(Debug)]
pub(super) enum Connection {
    /// One over HTTP/1.1, which serves one request at a time.
    Http1(Http1Connection),
    /// A stream's share of one over HTTP/2.
    Http2(Http2Share),
}

#[derive(Debug)]
pub(super) struct Http1Connection {
    pub(super) sender: http1::SendRequest<Upload>,
    /// Where informational responses without end are cut off.
    input_end: InputEnd,
    cut: CancellationToken,
    /// For the memory, if it was raced.
    feedback: Option<Feedback>,
}

#[derive(Debug)]
pub(super) struct Http2Share {
    sender: http2::SendRequest<Upload>,
    scheme: Scheme,
    feedback: Feedback,
    _stream: OwnedSemaphorePermit,
}

impl Http1Connection {
    /// Returns a connection, and the token on which its task must end.
    pub(super) fn new(
        sender: http1::SendRequest<Upload>,
        input_end: InputEnd,
        feedback: Option<Feedback>,
    ) -> (Self, CancellationToken) {
        let cut = CancellationToken::new();
        (Self { sender, input_end, cut: cut.clone(), feedback }, cut)
    }
}

impl Http2Share {
    pub(super) fn new(
        sender: http2::SendRequest<Upload>,
        scheme: Scheme,
        feedback: Feedback,
        stream: OwnedSemaphorePermit,
    ) -> Self {
        Self { sender, scheme, feedback, _stream: stream }
    }
}

impl Connection {
    /// Waits until a request can be sent. A reused connection is ready once its task has seen the end of the
    /// last response.
    pub(super) async fn ready(&mut self) -> hyper::Result<()> {
        match self {
            Self::Http1(connection) => connection.sender.ready().await,
            Self::Http2(share) => share.sender.ready().await,
        }
    }

    /// Sends a request, and waits for the head of its response. The request is in the form of HTTP/1.1, also
    /// where the error gives it back.
    pub(super) async fn send(
        &mut self,
        mut request: Request<Upload>,
    ) -> Result<Response<Incoming>, (hyper::Error, Option<Request<Upload>>)> {
        match self {
            Self::Http1(connection) => {
                given_back(connection.sender.try_send_request(request)).await
            }
            Self::Http2(share) => {
                to_http2(&mut request, share.scheme);
                let sent = given_back(share.sender.try_send_request(request)).await;
                sent.map_err(|(error, request)| (error, request.map(to_http1)))
            }
        }
    }

    /// Returns where informational responses without end are cut off. Of HTTP/2 hyper reports none.
    pub(super) fn input_end(&self) -> InputEnd {
        match self {
            Self::Http1(connection) => connection.input_end.clone(),
            Self::Http2(_) => InputEnd::default(),
        }
    }

    /// Tells the memory that the upstream accepted the connection, and closed it without a response: another
    /// address may be better.
    pub(super) fn broke(&self, detail: String) {
        let feedback = match self {
            Self::Http1(connection) => connection.feedback.as_ref(),
            Self::Http2(share) => Some(&share.feedback),
        };
        if let Some(feedback) = feedback {
            feedback.broke(Failure { cause: Cause::Reset, reached: Level::Transport, detail });
        }
    }

    /// Ends it though a request is being sent, which dropping it does not. Of a shared one only the stream ends.
    pub(super) fn cut(self) {
        if let Self::Http1(connection) = self {
            connection.cut.cancel();
        }
    }
}

async fn given_back(
    sending: impl Future<Output = Result<Response<Incoming>, TrySendError<Request<Upload>>>>,
) -> Result<Response<Incoming>, (hyper::Error, Option<Request<Upload>>)> {
    sending.await.map_err(|mut error| {
        let request = error.take_message();
        (error.into_error(), request)
    })
}

/// Turns the head of a request into that of HTTP/2 (RFC 9113 §8.3.1): the host goes into the target, and the
/// end of the stream ends the body.
fn to_http2(request: &mut Request<Upload>, scheme: Scheme) {
    let host = request.headers_mut().remove(header::HOST);
    request.headers_mut().remove(header::TRANSFER_ENCODING);
    // hyper does not report a 100 Continue of HTTP/2.
    if request.headers_mut().remove(header::EXPECT).is_some() {
        request.body().progress().gate.open();
    }
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(if scheme.is_secure() { uri::Scheme::HTTPS } else { uri::Scheme::HTTP });
    parts.authority = host.as_ref().and_then(|host| host.as_bytes().try_into().ok());
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    *request.version_mut() = Version::HTTP_2;
}

/// Turns it back.
fn to_http1(mut request: Request<Upload>) -> Request<Upload> {
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
    fn a_request_that_was_not_sent_over_http2_is_what_it_was() {
        for (framing, value) in [("content-length", "0"), ("x", "y")] {
            let request = || {
                let request = Request::put("/p?q").header("host", "a.example:81");
                request.header(framing, value).body(Upload::none()).expect("a request")
            };
            let mut sent = request();
            to_http2(&mut sent, Scheme::H2c);
            assert_eq!(sent.uri(), "http://a.example:81/p?q");
            assert!(!sent.headers().contains_key(header::HOST));
            let (back, expected) = (to_http1(sent), request());
            assert_eq!((back.uri(), back.version()), (expected.uri(), expected.version()));
            assert_eq!(back.headers(), expected.headers());
        }
    }
}
