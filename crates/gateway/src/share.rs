//! A stream's share of a connection over HTTP/2 or HTTP/3.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use eyas::ConnectionFeedback;
use eyas_http::{Http3FailureKind, Http3Sender};
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header, uri,
};
use hyper::client::conn::http2;
use hyper::ext::Protocol;

use crate::attempt::{FailedAttempt, malformed, sent};
use crate::failure::UpstreamFailure;
use crate::interims::RequestInterims;
use crate::received::ReceivedBody;
use crate::request_body::UploadBody;
use crate::settings::ExtendedConnect;
use crate::upstream::UpstreamScheme;
use crate::validation::RequestRejection;
use crate::websocket;

/// The limit on requests at a time of one connection, which every server should support (RFC 9113 §6.5.2, RFC 9114
/// §6.1).
pub(crate) const MAX_STREAMS: usize = 100;

const NO_HOST: UpstreamFailure = UpstreamFailure::Refused(RequestRejection {
    status: StatusCode::BAD_REQUEST,
    text: "The host is invalid.",
});

/// The sending side of a connection that many requests share.
#[derive(Clone, Debug)]
pub(crate) enum SharedSender {
    Http2(http2::SendRequest<UploadBody>, ExtendedConnect),
    Http3(Http3Sender),
}

impl SharedSender {
    /// Returns whether it is of no use to a further request.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Http2(sender, _) => sender.is_closed(),
            Self::Http3(sender) => sender.is_closed() || sender.is_doubted(),
        }
    }

    pub(crate) const fn is_http3(&self) -> bool {
        matches!(self, Self::Http3(_))
    }
}

/// The streams of one connection. Clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionStreams(Arc<StreamCount>);

#[derive(Debug)]
struct StreamCount {
    in_use: AtomicUsize,
    limit: AtomicUsize,
}

/// Counts a stream until it is dropped.
#[derive(Debug)]
struct StreamGuard(ConnectionStreams);

impl ConnectionStreams {
    pub(crate) fn new() -> Self {
        let (in_use, limit) = (AtomicUsize::new(0), AtomicUsize::new(MAX_STREAMS));
        Self(Arc::new(StreamCount { in_use, limit }))
    }

    fn begin(&self) -> Option<StreamGuard> {
        let free = |in_use| (in_use < self.0.limit.load(Relaxed)).then_some(in_use + 1);
        let begun = self.0.in_use.fetch_update(Relaxed, Relaxed, free);
        begun.is_ok().then(|| StreamGuard(self.clone()))
    }

    /// Returns whether it carries a request.
    pub(crate) fn are_in_use(&self) -> bool {
        self.0.in_use.load(Relaxed) > 0
    }

    /// Returns whether there is to be no further one.
    pub(crate) fn are_over(&self) -> bool {
        self.0.limit.load(Relaxed) == 0
    }

    /// Lowers the limit to what the peer allows, which is as many as there are besides a new one.
    fn lower_limit(&self) {
        let others = self.0.in_use.load(Relaxed).saturating_sub(1);
        self.0.limit.fetch_min(others, Relaxed);
    }

    fn end(&self) {
        self.0.limit.store(0, Relaxed);
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.0.in_use.fetch_sub(1, Relaxed);
    }
}

/// A stream's share of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionShare {
    sender: SharedSender,
    scheme: UpstreamScheme,
    pub(crate) feedback: ConnectionFeedback,
    stream: StreamGuard,
}

impl ConnectionShare {
    /// Returns a share, unless as many as possible are in use.
    pub(crate) fn new(
        sender: &SharedSender,
        scheme: UpstreamScheme,
        feedback: &ConnectionFeedback,
        streams: &ConnectionStreams,
    ) -> Option<Self> {
        let (stream, sender, feedback) = (streams.begin()?, sender.clone(), feedback.clone());
        Some(Self { sender, scheme, feedback, stream })
    }

    pub(crate) const fn is_http3(&self) -> bool {
        self.sender.is_http3()
    }

    /// Waits until a request can be sent.
    pub(crate) async fn ready(&mut self) -> hyper::Result<()> {
        match &mut self.sender {
            SharedSender::Http2(sender, _) => sender.ready().await,
            SharedSender::Http3(_) => Ok(()),
        }
    }

    /// Gives the connection no further request.
    pub(crate) fn retire(&self) {
        self.stream.0.end();
    }

    /// Sends a request in the form of HTTP/1.1, and waits for the head of its response.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<UploadBody>,
        interims: &RequestInterims,
    ) -> Result<Response<ReceivedBody>, FailedAttempt> {
        match &mut self.sender {
            SharedSender::Http2(sender, extended_connect)
                if websocket::is_upgrade(request.headers()) =>
            {
                open_websocket(sender, self.scheme, extended_connect, request).await
            }
            SharedSender::Http2(sender, _) => {
                to_multiplexed(&mut request, self.scheme, Version::HTTP_2);
                let upload = Arc::clone(request.body().progress());
                let sent = sent(sender.try_send_request(request), &upload).await;
                sent.map_err(|failed| FailedAttempt {
                    unsent: failed.unsent.map(|request| Box::new(to_http1(*request))),
                    ..failed
                })
            }
            SharedSender::Http3(sender) => {
                send_over_http3(sender, self.scheme, (request, &self.stream.0), interims).await
            }
        }
    }
}

/// Requests a WebSocket by extended CONNECT (RFC 8441 §5), and returns its response in the form of HTTP/1.1.
async fn open_websocket(
    sender: &mut http2::SendRequest<UploadBody>,
    scheme: UpstreamScheme,
    extended_connect: &mut ExtendedConnect,
    mut request: Request<UploadBody>,
) -> Result<Response<ReceivedBody>, FailedAttempt> {
    let known = extended_connect.wait_for(Option::is_some).await.map(|is_enabled| *is_enabled);
    match known {
        Ok(Some(true)) => {}
        Ok(_) => return Err(FailedAttempt::new(UpstreamFailure::NoUpgrade)),
        Err(_) => {
            let why = "it closed the connection before it sent its settings";
            return Err(FailedAttempt::unsent(request, why.to_owned()));
        }
    }
    let fields = request.headers().clone();
    to_multiplexed(&mut request, scheme, Version::HTTP_2);
    *request.method_mut() = Method::CONNECT;
    websocket::to_extended_connect(request.headers_mut());
    request.extensions_mut().insert(Protocol::from_static("websocket"));
    let upload = Arc::clone(request.body().progress());
    let sent = sent(sender.try_send_request(request), &upload).await;
    let mut response = sent.map_err(|failed| FailedAttempt {
        unsent: failed.unsent.map(|request| {
            let mut request = to_http1(*request);
            request.extensions_mut().remove::<Protocol>();
            *request.method_mut() = Method::GET;
            *request.headers_mut() = fields.clone();
            Box::new(request)
        }),
        ..failed
    })?;
    if response.status().is_success() {
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        websocket::to_accepted(&fields, response.headers_mut());
    }
    Ok(response)
}

async fn send_over_http3(
    sender: &mut Http3Sender,
    scheme: UpstreamScheme,
    (mut request, streams): (Request<UploadBody>, &ConnectionStreams),
    interims: &RequestInterims,
) -> Result<Response<ReceivedBody>, FailedAttempt> {
    to_multiplexed(&mut request, scheme, Version::HTTP_3);
    let (parts, upload) = request.into_parts();
    let (method, progress) = (parts.method.clone(), Arc::clone(upload.progress()));
    let head = Request::from_parts(parts, ());
    if head.uri().authority().is_none() {
        // RFC 9114 §4.3.1: it could not be sent.
        return Err(FailedAttempt::new(NO_HOST));
    }
    let kept = head.clone();
    // Without other streams, the peer has not allowed the first one yet, or has not counted off the last one.
    let waits = streams.0.in_use.load(Relaxed) <= 1;
    let begun = match sender.begin(head, waits).await {
        Ok(begun) => begun,
        Err(failed) => {
            match failed.kind {
                Http3FailureKind::Full => streams.lower_limit(),
                Http3FailureKind::TooLarge => {}
                _ => streams.end(),
            }
            // Without the end of its head the upstream cannot have processed it.
            let is_unsent = failed.kind != Http3FailureKind::TooLarge;
            let unsent = is_unsent.then(|| to_http1(kept.map(|()| upload)));
            return Err(FailedAttempt::from_http3(&failed, unsent, &progress));
        }
    };
    let received = |interim: &Response<()>| interims.receive(interim.status(), interim.headers());
    let response = begun.exchange(upload, received).await;
    let response =
        response.map_err(|failed| FailedAttempt::from_http3(&failed, None, &progress))?;
    let checked = ReceivedBody::from_http3(response, &method);
    checked.map_err(|error| FailedAttempt::new(malformed(error.to_string())))
}

/// Turns the head of a request into that of HTTP/2 (RFC 9113 §8.3.1) or HTTP/3 (RFC 9114 §4.3.1): the host goes into
/// the target, and the end of the stream ends the body.
fn to_multiplexed(request: &mut Request<UploadBody>, scheme: UpstreamScheme, version: Version) {
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

/// Turns it back.
fn to_http1(mut request: Request<UploadBody>) -> Request<UploadBody> {
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

    #[test]
    fn the_limit_follows_what_the_peer_allows() {
        let streams = ConnectionStreams::new();
        let guards: Vec<_> = std::iter::from_fn(|| streams.begin()).collect();
        assert_eq!(guards.len(), MAX_STREAMS);
        drop(guards);
        let (first, second) = (streams.begin().expect("free"), streams.begin().expect("free"));
        // The peer did not allow the second one.
        streams.lower_limit();
        drop(second);
        assert!(streams.begin().is_none() && streams.are_in_use());
        drop(first);
        assert!(streams.begin().is_some() && !streams.are_in_use());
        streams.end();
        assert!(streams.begin().is_none() && streams.are_over());
    }
}
