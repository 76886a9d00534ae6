//! A connection to the upstream, and what a request needs of it.

use std::net::SocketAddr;
use std::task::{Context, Poll};

use eyas::ConnectionFeedback;
use eyas::race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use eyas_http::InputEnd;
use http::{Request, Response};
use tokio::time::Instant;

use crate::attempt::FailedAttempt;
use crate::http1_connection::Http1Connection;
use crate::interims::RequestInterims;
use crate::received::ReceivedBody;
use crate::request_body::UploadBody;
use crate::share::ConnectionShare;
use crate::upstream::Upstream;

/// The client connection that a connection belongs to: with the PROXY protocol a single one, otherwise none.
pub(crate) type ConnectionOwner = Option<(SocketAddr, SocketAddr)>;

/// The connection that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WantedConnection {
    pub(crate) owner: ConnectionOwner,
    /// Whether only HTTP/1.1 will do: to switch to another protocol, and behind a PROXY header, since such a
    /// connection serves one client.
    pub(crate) http1_only: bool,
    /// If it is to be another connection than one that has failed: when that was last known to be open.
    pub(crate) opened_since: Option<Instant>,
}

impl WantedConnection {
    /// Returns what a WebSocket needs: HTTP/1.1, or HTTP/2 or HTTP/3 where the upstream has nothing else.
    pub(crate) fn for_websocket(owner: ConnectionOwner, upstream: &Upstream) -> Self {
        Self { http1_only: !upstream.has_no_http1(), ..Self::new(owner, true) }
    }

    /// Returns what a request needs that may switch to another protocol.
    pub(crate) fn new(owner: ConnectionOwner, switches: bool) -> Self {
        Self { owner, http1_only: switches || owner.is_some(), opened_since: None }
    }
}

/// A connection, or a share of one.
#[derive(Debug)]
pub(crate) enum UpstreamConnection {
    /// One over HTTP/1.1, which serves one request at a time.
    Http1(Http1Connection),
    /// A stream's share of one over HTTP/2 or HTTP/3.
    Shared(ConnectionShare),
}

impl UpstreamConnection {
    /// Waits until a request can be sent.
    pub(crate) async fn ready(&mut self) -> hyper::Result<()> {
        match self {
            Self::Http1(connection) => connection.ready().await,
            Self::Shared(share) => share.ready().await,
        }
    }

    /// Sends a request, and waits for the head of its response. The request is in the form of HTTP/1.1, also
    /// where the error gives it back.
    pub(crate) async fn send(
        &mut self,
        request: Request<UploadBody>,
        interims: &RequestInterims,
    ) -> Result<Response<ReceivedBody>, FailedAttempt> {
        match self {
            Self::Http1(connection) => connection.send(request, interims).await,
            // What the other versions need is larger.
            Self::Shared(share) => Box::pin(share.send(request, interims)).await,
        }
    }

    /// Returns where informational responses without end are cut off. Of HTTP/2 hyper reports none, and HTTP/3
    /// limits them itself.
    pub(crate) fn input_end(&self) -> InputEnd {
        match self {
            Self::Http1(connection) => connection.input_end(),
            Self::Shared(_) => InputEnd::default(),
        }
    }

    fn feedback(&self) -> Option<&ConnectionFeedback> {
        match self {
            Self::Http1(connection) => connection.feedback(),
            Self::Shared(share) => Some(&share.feedback),
        }
    }

    /// Tells the memory that the upstream has responded.
    pub(crate) fn answered(&self) {
        if let Some(feedback) = self.feedback() {
            feedback.first_byte_seen();
        }
    }

    /// Tells the memory that the upstream accepted the connection, which then ended without a response: another
    /// address or transport may be better.
    pub(crate) fn broke(&self, cause: Option<FailureCause>, detail: String) {
        // Over QUIC it was authenticated as well.
        let is_quic = matches!(self, Self::Shared(share) if share.is_http3());
        let reached = if is_quic { EvidenceLevel::Security } else { EvidenceLevel::Transport };
        if let Some(feedback) = self.feedback() {
            feedback.broke(AttemptFailure::new(
                cause.unwrap_or(FailureCause::Reset),
                reached,
                detail,
            ));
        }
    }

    /// Polls the body of the response, or something else that its arrival makes ready.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        match self {
            Self::Http1(connection) => connection.poll(cx, poll),
            Self::Shared(_) => poll(cx),
        }
    }

    /// Gives it no further request: the upstream wants none.
    pub(crate) fn retire(&self) {
        if let Self::Shared(share) = self {
            share.retire();
        }
    }

    /// Ends it though a request is being sent, which dropping it does not. Of a shared one only the stream ends.
    pub(crate) fn cut(self) {
        if let Self::Http1(connection) = self {
            connection.cut();
        }
    }
}
