//! A stream's share of a connection over HTTP/2 or HTTP/3.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use eyas::ConnectionFeedback;
use eyas_http::pipe::pipe;
use eyas_http::{Http3FailureKind, Http3Sender};
use http::{Request, Response, StatusCode, Version};
use hyper::client::conn::http2;

use crate::attempt::{FailedAttempt, malformed, sent};
use crate::failure::UpstreamFailure;
use crate::interims::RequestInterims;
use crate::multiplexed::{to_http1, to_multiplexed};
use crate::received::ReceivedBody;
use crate::request_body::{UploadBody, UploadProgress};
use crate::settings::ExtendedConnect;
use crate::upstream::UpstreamScheme;
use crate::validation::RequestRejection;
use crate::websocket;
use crate::websocket_stream::StreamWebSocket;

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
        let is_websocket = websocket::is_upgrade(request.headers());
        match &mut self.sender {
            SharedSender::Http2(sender, extended_connect) if is_websocket => {
                let offered = extended_connect.wait_for(Option::is_some).await;
                let offered = offered.ok().and_then(|offered| *offered);
                let websocket = StreamWebSocket::request(&mut request, offered)?;
                websocket.answered(send_over_http2(sender, self.scheme, request).await)
            }
            SharedSender::Http2(sender, _) => send_over_http2(sender, self.scheme, request).await,
            SharedSender::Http3(sender) if is_websocket => {
                let offered = sender.offers_extended_connect().await;
                let websocket = StreamWebSocket::request(&mut request, offered)?;
                let (upload, body) = pipe();
                *request.body_mut() = UploadBody::new(body, None, UploadProgress::new(false));
                let streams = &self.stream.0;
                let sent = send_over_http3(sender, self.scheme, (request, streams), interims).await;
                websocket.answered(sent.map(|response| match response.status().is_success() {
                    true => response.map(|received| received.with_websocket_upload(upload)),
                    false => response,
                }))
            }
            SharedSender::Http3(sender) => {
                send_over_http3(sender, self.scheme, (request, &self.stream.0), interims).await
            }
        }
    }
}

async fn send_over_http2(
    sender: &mut http2::SendRequest<UploadBody>,
    scheme: UpstreamScheme,
    mut request: Request<UploadBody>,
) -> Result<Response<ReceivedBody>, FailedAttempt> {
    to_multiplexed(&mut request, scheme, Version::HTTP_2);
    let upload = Arc::clone(request.body().progress());
    let sent = sent(sender.try_send_request(request), &upload).await;
    sent.map_err(|failed| FailedAttempt {
        unsent: failed.unsent.map(|request| Box::new(to_http1(*request))),
        ..failed
    })
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

#[cfg(test)]
mod tests {
    use super::*;

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
