//! HTTP/3 of the client.

mod broken;
mod keep_alive;
mod receive;
mod sender;
mod transmit;

use std::{
    future::{Future as _, poll_fn},
    pin::pin,
    task::Poll,
};

use bytes::Bytes;
use eyas::race::evidence::FailureCause;
use eyas_h3::{
    fault::{ConnectionFault, StreamFault},
    message::{MessageFault, RequestMethod},
    settings::Settings,
};
use http::{Request, Response, Version};

pub use self::{
    keep_alive::Patience,
    receive::ReceivedBody as Http3Body,
    sender::{Http3Failure, Http3FailureKind, Http3Sender, Http3Stream},
};
use self::{
    keep_alive::{InFlightGuard, KeepAlive},
    receive::ReceivedBody,
};
use super::{MAX_HEAD_BYTES, SendFailure, alert, fields};
use crate::{
    Body, Error, Kind,
    http3::{
        ClientConnection, ConnectionDatagrams, ConnectionOptions, Receiving, Sending,
        ServerSettings, StreamDatagrams, StreamError,
    },
};

/// One HTTP/3 connection; clones share it.
#[derive(Clone)]
pub(crate) struct Http3 {
    client: ClientConnection<quinn::Connection>,
    quic: quinn::Connection,
    datagrams: ConnectionDatagrams,
    keep_alive: KeepAlive,
}

/// A request's stream whose head has been sent.
struct Begun {
    send: Sending<quinn::Connection>,
    recv: Receiving<quinn::Connection>,
    method: RequestMethod,
    connection: Http3,
    in_flight: InFlightGuard,
}

/// Why a request's stream was not opened.
enum NotBegun {
    /// The peer allows no further stream at present.
    Full,
    Failed(StreamError),
}

/// The code with which a connection is closed whose peer is silent; nothing reads it.
const GIVEN_UP: quinn::VarInt = quinn::VarInt::from_u32(0x100);

/// Why a request that has begun got no response.
enum NoResponse {
    /// The stream failed, perhaps with its connection, and what that says of the path.
    Stream(StreamError, Option<FailureCause>),
    /// The peer sent what is no valid response.
    Violation(Error),
    /// The body could not be sent.
    Body(Error),
}

impl Http3 {
    /// Starts HTTP/3 on a QUIC connection. The HTTP/3 connection runs in its own task, which ends
    /// when the last handle is dropped. CONNECT requests can only be sent with `tunnels`.
    pub(crate) fn start(quic: quinn::Connection, tunnels: bool) -> Result<Self, Error> {
        Self::with_limits(quic, (tunnels, None), MAX_HEAD_BYTES, Patience::CLIENT)
    }

    /// Starts it on a connection that sends 0-RTT data, with what is remembered of the server.
    pub(crate) fn resume(
        quic: quinn::Connection,
        remembered: Option<Settings>,
    ) -> Result<Self, Error> {
        Self::with_limits(quic, (false, remembered), MAX_HEAD_BYTES, Patience::CLIENT)
    }

    /// Starts it with limits on the head of a response, and on the silence of a peer that responses
    /// are expected from.
    fn with_limits(
        quic: quinn::Connection,
        (tunnels, remembered): (bool, Option<Settings>),
        head_bytes: usize,
        patience: Patience,
    ) -> Result<Self, Error> {
        if let Some(end) = quic.close_reason() {
            return Err(Error::new(Kind::Protocol, end.to_string()));
        }
        let head_bytes = head_bytes as u64;
        let options = ConnectionOptions {
            head_bytes,
            extended_connect: false,
            datagrams: tunnels,
            remembered,
        };
        let (client, streams) = ClientConnection::start(quic.clone(), options);
        let datagrams = ConnectionDatagrams::new(quic.clone());
        if tunnels {
            tokio::spawn(datagrams.clone().run());
        }
        let keep_alive = KeepAlive::default();
        let (alive, requests) = (quic.clone(), keep_alive.clone());
        tokio::spawn(async move {
            let mut ended = pin!(streams.run());
            let end = tokio::select! {
                end = &mut ended => end,
                () = requests.run(&alive, patience) => {
                    alive.close(GIVEN_UP, b"the peer is silent");
                    ended.await
                }
            };
            tracing::debug!(%end, "HTTP/3 connection ended");
        });
        Ok(Self { client, quic, datagrams, keep_alive })
    }

    pub(crate) fn quic(&self) -> &quinn::Connection {
        &self.quic
    }

    /// Returns the server's settings, once they have arrived.
    pub(crate) fn server_settings(&self) -> ServerSettings {
        self.client.shared().received_settings()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.client.shared().is_going_away() || self.quic.close_reason().is_some()
    }

    /// Returns whether the server supports extended CONNECT, once that is known.
    pub(crate) async fn supports_extended_connect(&mut self) -> bool {
        // A connection that has ended supports nothing.
        let settings = self.client.shared().peer_settings().await;
        settings.is_some_and(|settings| settings.extended_connect)
    }

    pub(crate) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        self.exchange(request).await.map_err(|failure| match alert::over_quic(&self.quic) {
            Some(rejected) => SendFailure::new(rejected),
            None => failure,
        })
    }

    async fn exchange(
        &mut self,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        if self.is_closed() {
            let error = Error::new(Kind::Protocol, "the connection was closed");
            return Err(SendFailure {
                error,
                unsent: Some(request.into_body()),
                unprocessed: true,
            });
        }
        fields::multiplex(&mut request).map_err(SendFailure::new)?;
        fields::set_content_length(&mut request);
        let (parts, body) = request.into_parts();
        let begun = match self.begin(Request::from_parts(parts, ()), true).await {
            Ok(begun) => begun,
            Err(NotBegun::Failed(error @ StreamError::GoingAway)) => {
                return Err(SendFailure { unsent: Some(body), ..failure(&error) });
            }
            Err(NotBegun::Failed(error)) => return Err(failure(&error)),
            Err(NotBegun::Full) => {
                return Err(SendFailure::new(Error::new(Kind::Protocol, "no stream is free")));
            }
        };
        let datagrams = self.client.shared().has_datagrams();
        let datagrams = datagrams.then(|| self.datagrams.for_stream(begun.recv.id()));
        let response = begun.exchange(body, |_| {}).await.map_err(SendFailure::from)?;
        let mut response = response.map(Body::boxed);
        if let Some(datagrams) = datagrams {
            response.extensions_mut().insert::<StreamDatagrams>(datagrams);
        }
        Ok(response)
    }

    /// Opens the stream of a request, and sends its head. If the peer allows no further stream yet, this either
    /// waits, or fails without having sent anything.
    async fn begin(&mut self, mut head: Request<()>, waits: bool) -> Result<Begun, NotBegun> {
        let in_flight = self.keep_alive.begin();
        *head.version_mut() = Version::HTTP_3;
        let opened = {
            let mut opening = pin!(self.client.open());
            match waits {
                true => opening.await,
                false => match poll_fn(|cx| Poll::Ready(opening.as_mut().poll(cx))).await {
                    Poll::Ready(opened) => opened,
                    Poll::Pending => return Err(NotBegun::Full),
                },
            }
        };
        let (mut send, recv) = opened.map_err(NotBegun::Failed)?;
        let sent = tokio::select! {
            biased;
            sent = send.send_request(&head) => sent,
            // The server may never grant what the head needs.
            () = self.client.shared().excluded(recv.id()) => Err(StreamError::GoingAway),
        };
        sent.map_err(NotBegun::Failed)?;
        let method = RequestMethod::from_name(head.method().as_str().as_bytes());
        Ok(Begun { send, recv, method, connection: self.clone(), in_flight })
    }
}

impl Begun {
    /// Sends the body, and waits for the head of the response. Calls `interim` with each informational one before it.
    async fn exchange<B>(
        self,
        body: B,
        interim: impl FnMut(&Response<()>),
    ) -> Result<Response<ReceivedBody>, NoResponse>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Self { send, recv, method, connection, in_flight } = self;
        let mut transmission = transmit::start(send, body).await.map_err(NoResponse::Body)?;
        let mut receive = ReceivedBody::new(recv, method, connection, in_flight);
        let head = tokio::select! {
            // The response comes first: a server may respond before it has read the whole body.
            biased;
            head = receive.head(interim) => head?,
            error = transmission.failed() => return Err(NoResponse::Body(error)),
        };
        Ok(head.map(|()| receive.with_transmission(transmission)))
    }
}

impl From<NoResponse> for SendFailure {
    fn from(failed: NoResponse) -> Self {
        match failed {
            NoResponse::Stream(error, cause) => {
                let failure = failure(&error);
                Self { error: failure.error.with_path_failure(cause), ..failure }
            }
            NoResponse::Violation(error) | NoResponse::Body(error) => Self::new(error),
        }
    }
}

fn failure(error: &StreamError) -> SendFailure {
    let unprocessed = error.is_unprocessed();
    SendFailure { error: stream_error(Kind::Protocol, error), unsent: None, unprocessed }
}

fn stream_error(kind: Kind, error: &StreamError) -> Error {
    Error::new(kind, error.to_string())
}

/// Returns the kind of the error that ended a body.
fn body_kind(error: &StreamError) -> Kind {
    match error {
        StreamError::Violation(ConnectionFault::FrameTruncated) => Kind::BodyTruncated,
        StreamError::Malformed(StreamFault::Message(
            MessageFault::ContentLengthDiffers { .. } | MessageFault::ContentForbidden,
        )) => Kind::BodyLength,
        error if error.is_violation() => Kind::Protocol,
        _ => Kind::BodyReset,
    }
}

#[cfg(test)]
mod tests;
