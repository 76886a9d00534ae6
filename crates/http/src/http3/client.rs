//! A client's side of a connection.

pub(super) mod message;

use std::sync::Arc;

use eyas_h3::{
    code::ErrorCode,
    message::{MessageFault, RequestMethod},
    misuse::Misuse,
    stream::Role,
};
use http::{Request, Response};

use self::message::{parse_response, request_content, request_fields};

use super::{
    Receiving, Sending, StreamError,
    connection::{ConnectionOptions, Shared},
    side_streams::SideStreams,
    transport::QuicConnection,
};

/// A client's side of a connection. Clones share it; when the last one is dropped, it is closed with H3_NO_ERROR.
#[derive(Clone)]
pub(crate) struct ClientConnection<Q: QuicConnection>(Arc<Handle<Q>>);

struct Handle<Q: QuicConnection>(Arc<Shared<Q>>);

impl<Q: QuicConnection> ClientConnection<Q> {
    /// Starts HTTP/3. Its unidirectional streams are to be run by the caller, in a task of their own.
    pub(crate) fn start(quic: Q, options: ConnectionOptions) -> (Self, SideStreams<Q>) {
        let shared = Arc::new(Shared::new(quic, Role::Client, options));
        (Self(Arc::new(Handle(Arc::clone(&shared)))), SideStreams::new(shared))
    }

    /// What the streams share.
    pub(crate) fn shared(&self) -> &Shared<Q> {
        &self.0.0
    }

    /// Opens the stream of a request, as soon as the peer allows one.
    ///
    /// # Errors
    /// The peer is going away, or the connection has ended; nothing was sent.
    pub(crate) async fn open(&self) -> Result<(Sending<Q>, Receiving<Q>), StreamError> {
        let shared = &self.0.0;
        if shared.is_going_away() {
            return Err(StreamError::GoingAway);
        }
        let opened = shared.quic().open_bidirectional().await;
        let (send, recv) = opened.map_err(|end| StreamError::Ended(shared.explain_end(end)))?;
        let opened =
            (Sending::new(send, Arc::clone(shared)), Receiving::new(recv, Arc::clone(shared)));
        // The wait may have been long: RFC 9114 §5.2, "new requests MUST NOT be sent" after GOAWAY.
        match shared.is_going_away() {
            true => Err(StreamError::GoingAway),
            false => Ok(opened),
        }
    }
}

impl<Q: QuicConnection> Drop for Handle<Q> {
    fn drop(&mut self) {
        self.0.quic().close(ErrorCode::NoError, "");
    }
}

impl<Q: QuicConnection> Sending<Q> {
    /// Sends the head of a request.
    pub(crate) async fn send_request(&mut self, head: &Request<()>) -> Result<(), StreamError> {
        if head.uri().authority().is_none() {
            // RFC 9114 §4.3.1.
            return Err(Misuse::Malformed(MessageFault::AuthorityMissing).into());
        }
        self.send_head(&request_fields(head), request_content(head)).await
    }
}

impl<Q: QuicConnection> Receiving<Q> {
    /// Waits for the next head of a response to a request with this method. Another one follows each that is
    /// informational.
    pub(crate) async fn response(
        &mut self,
        method: RequestMethod,
    ) -> Result<Response<()>, StreamError> {
        let lines = self.head().await?;
        self.accept_head(parse_response(&lines, method))
    }
}
