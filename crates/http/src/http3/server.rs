//! A server's side of a connection.

pub(super) mod message;

use std::sync::Arc;

use eyas_h3::{code::ErrorCode, message::Content, stream::Role};
use http::{Request, Response};

pub(crate) use self::message::response_content;
use self::message::{parse_request, response_fields};

use super::{
    Receiving, Sending,
    connection::{ConnectionOptions, Shared},
    error::{ConnectionEnd, StreamError},
    side_streams::SideStreams,
    transport::{QuicConnection, QuicRecvStream as _, QuicSendStream as _},
};

/// A server's side of a connection. When it is dropped, the connection is closed with H3_NO_ERROR.
pub(crate) struct ServerConnection<Q: QuicConnection>(Arc<Shared<Q>>);

/// The stream of a request that nothing has been read of.
pub(crate) struct RequestStream<Q: QuicConnection> {
    pub(crate) send: Sending<Q>,
    pub(crate) recv: Receiving<Q>,
}

impl<Q: QuicConnection> ServerConnection<Q> {
    /// Starts HTTP/3. Its unidirectional streams are to be run by the caller.
    pub(crate) fn start(quic: Q, options: ConnectionOptions) -> (Self, SideStreams<Q>) {
        let shared = Arc::new(Shared::new(quic, Role::Server, options));
        (Self(Arc::clone(&shared)), SideStreams::new(shared))
    }

    /// Waits for the next request. Those that the GOAWAY excludes are rejected.
    pub(crate) async fn accept(&self) -> Result<RequestStream<Q>, ConnectionEnd> {
        loop {
            let accepted = self.0.quic().accept_bidirectional().await;
            let (mut send, mut recv) = accepted.map_err(|end| self.0.explain_end(end))?;
            if self.0.accept_request(send.id()) {
                return Ok(RequestStream {
                    send: Sending::new(send, Arc::clone(&self.0)),
                    recv: Receiving::new(recv, Arc::clone(&self.0)),
                });
            }
            send.reset(ErrorCode::RequestRejected);
            recv.stop(ErrorCode::RequestRejected);
        }
    }

    /// Sends GOAWAY with the stream after the last accepted request (RFC 9114 §5.2), as soon as its stream allows.
    pub(crate) fn go_away(&self) {
        self.0.go_away();
    }
}

impl<Q: QuicConnection> RequestStream<Q> {
    /// Rejects the request (RFC 9114 §4.1.1: it may be retried).
    pub(crate) fn reject(mut self) {
        self.send.reset(ErrorCode::RequestRejected);
        self.recv.stop(ErrorCode::RequestRejected);
    }
}

impl<Q: QuicConnection> Drop for ServerConnection<Q> {
    fn drop(&mut self) {
        self.0.quic().close(ErrorCode::NoError, "");
    }
}

impl<Q: QuicConnection> Receiving<Q> {
    /// Waits for the head of the request.
    pub(crate) async fn request(&mut self) -> Result<Request<()>, StreamError> {
        let lines = self.head().await?;
        let options = self.shared().request_options();
        self.accept_head(parse_request(&lines, options))
    }
}

impl<Q: QuicConnection> Sending<Q> {
    /// Sends the head of a response, informational ones and then the final one, which `content` follows.
    pub(crate) async fn send_response(
        &mut self,
        head: &Response<()>,
        content: Content,
    ) -> Result<(), StreamError> {
        let status = head.status();
        self.send_head(&response_fields(&status, head.headers()), content).await
    }
}
