//! HTTP/3, implemented with h3 over quinn.

mod broken;
mod keep_alive;
mod receive;
mod sender;
mod transmit;

use std::{
    borrow::Cow,
    future::{Future as _, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use bytes::Bytes;
use eyas::race::evidence::FailureCause;
use h3::{
    ConnectionState as _,
    error::{Code, ConnectionError, StreamError},
    quic::StreamId,
};
use http::{Request, Response, Version};
use tokio::sync::watch;

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
    quic_streams::{
        ConnectionDatagrams, FrameError, Opener, RequestStream, Side, StreamDatagrams, Streams,
    },
};

/// The client's side of a connection.
#[derive(Clone)]
struct ClientSide {
    tunnels: bool,
    goaway: GoAway,
}

/// The identifier in the peer's last GOAWAY (RFC 9114 §5.2). Clones share it.
#[derive(Clone)]
struct GoAway(Arc<AtomicU64>);

impl GoAway {
    const NONE: u64 = u64::MAX;

    fn none() -> Self {
        Self(Arc::new(AtomicU64::new(Self::NONE)))
    }

    /// Returns whether the peer accepts no further requests.
    fn is_received(&self) -> bool {
        self.0.load(Ordering::Relaxed) != Self::NONE
    }

    /// Returns whether the peer does not process the request on this stream.
    fn excludes(&self, stream: StreamId) -> bool {
        stream.into_inner() >= self.0.load(Ordering::Relaxed)
    }
}

impl Side for ClientSide {
    const IS_CLIENT: bool = true;

    type RequestGuard = ();

    fn request_started(&self, _: &quinn::SendStream) {}

    fn opens_tunnels(&self) -> bool {
        self.tunnels
    }

    fn going_away(&self, id: u64) {
        // A later one has a lower identifier.
        self.goaway.0.fetch_min(id, Ordering::Relaxed);
    }
}

/// One HTTP/3 connection; clones share it.
#[derive(Clone)]
pub(crate) struct Http3 {
    sender: h3::client::SendRequest<Opener<ClientSide>, Bytes>,
    quic: quinn::Connection,
    goaway: GoAway,
    /// What the peer's settings offer, once they have arrived.
    offers: watch::Receiver<Option<Offers>>,
    datagrams: ConnectionDatagrams,
    keep_alive: KeepAlive,
}

/// A request's stream whose head has been sent.
struct Begun {
    stream: h3::client::RequestStream<RequestStream<ClientSide>, Bytes>,
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

/// What a peer's settings offer.
#[derive(Clone, Copy)]
struct Offers {
    /// Whether extended CONNECT is offered (RFC 9220 §3).
    extended_connect: bool,
    /// Whether QUIC DATAGRAM frames are offered (RFC 9297 §2.1.1).
    datagrams: bool,
}

impl Http3 {
    /// Starts HTTP/3 on a QUIC connection. The HTTP/3 connection runs in its own task, which ends
    /// when the last handle is dropped. CONNECT requests can only be sent with `tunnels`.
    pub(crate) async fn start(quic: quinn::Connection, tunnels: bool) -> Result<Self, Error> {
        Self::with_limits(quic, tunnels, MAX_HEAD_BYTES, Patience::CLIENT).await
    }

    /// Starts it with limits on the head of a response, and on the silence of a peer that responses
    /// are expected from.
    async fn with_limits(
        quic: quinn::Connection,
        tunnels: bool,
        head_bytes: usize,
        patience: Patience,
    ) -> Result<Self, Error> {
        let mut builder = h3::client::builder();
        builder
            .max_field_section_size(head_bytes as u64)
            .enable_datagram(tunnels)
            // A peer that grants few streams could delay a request with unnecessary ones.
            .send_grease(false);
        let goaway = GoAway::none();
        let side = ClientSide { tunnels, goaway: goaway.clone() };
        let streams = Streams::new(quic.clone(), side, head_bytes);
        // Boxed because it is large, so that futures waiting for a connection stay small.
        let (mut connection, sender) = Box::pin(builder.build(streams))
            .await
            .map_err(|error| connection_error(Kind::Protocol, &error))?;
        let datagrams = ConnectionDatagrams::new(quic.clone());
        if tunnels {
            tokio::spawn(datagrams.clone().run());
        }
        let (offers_tx, offers) = watch::channel(None);
        let keep_alive = KeepAlive::default();
        let (alive, requests) = (quic.clone(), keep_alive.clone());
        tokio::spawn(async move {
            let mut ended = pin!(poll_fn(|cx| {
                let ended = connection.poll_close(cx);
                if offers_tx.borrow().is_none()
                    && let Cow::Borrowed(settings) = connection.settings()
                {
                    let extended_connect = settings.enable_extended_connect();
                    let datagrams = tunnels && settings.enable_datagram();
                    offers_tx.send_replace(Some(Offers { extended_connect, datagrams }));
                }
                ended
            }));
            let error = tokio::select! {
                error = &mut ended => error,
                () = requests.run(&alive, patience) => {
                    alive.close(GIVEN_UP, b"the peer is silent");
                    ended.await
                }
            };
            if !error.is_h3_no_error() {
                tracing::debug!(%error, "HTTP/3 connection ended");
            }
        });
        Ok(Self { sender, quic, goaway, offers, datagrams, keep_alive })
    }

    pub(crate) fn quic(&self) -> &quinn::Connection {
        &self.quic
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.goaway.is_received() || self.quic.close_reason().is_some()
    }

    /// Returns whether the server supports extended CONNECT, once that is known.
    pub(crate) async fn supports_extended_connect(&mut self) -> bool {
        let known = self.offers.wait_for(Option::is_some).await;
        // A connection that has ended supports nothing.
        known.is_ok_and(|offers| offers.is_some_and(|offers| offers.extended_connect))
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
            Err(NotBegun::Failed(error @ StreamError::RemoteClosing)) => {
                return Err(SendFailure { unsent: Some(body), ..failure(&error) });
            }
            Err(NotBegun::Failed(error)) => return Err(failure(&error)),
            Err(NotBegun::Full) => {
                return Err(SendFailure::new(Error::new(Kind::Protocol, "no stream is free")));
            }
        };
        let supports_datagrams = self.offers.borrow().is_some_and(|offers| offers.datagrams);
        let id = begun.stream.id().into_inner();
        let datagrams = supports_datagrams.then(|| self.datagrams.of(id));
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
        let sent = {
            let mut sending = pin!(self.sender.send_request(head));
            match waits {
                true => sending.await,
                false => match poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx))).await {
                    Poll::Ready(sent) => sent,
                    Poll::Pending => return Err(NotBegun::Full),
                },
            }
        };
        match sent {
            Ok(stream) => Ok(Begun { stream, connection: self.clone(), in_flight }),
            Err(error) => Err(NotBegun::Failed(error)),
        }
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
        let Self { stream, connection, in_flight } = self;
        let (transmit, receive) = stream.split();
        let mut transmission = transmit::start(transmit, body).await.map_err(NoResponse::Body)?;
        let mut receive = ReceivedBody::new(receive, connection, in_flight);
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
    let unprocessed = is_unprocessed(error);
    SendFailure { error: stream_error(Kind::Protocol, error), unsent: None, unprocessed }
}

/// Returns whether the peer has stated that it did not process the request (RFC 9114 §4.1.1, §5.2).
fn is_unprocessed(error: &StreamError) -> bool {
    match error {
        StreamError::RemoteTerminate { code, .. } | StreamError::StreamError { code, .. } => {
            *code == Code::H3_REQUEST_REJECTED
        }
        StreamError::RemoteClosing => true,
        _ => false,
    }
}

fn stream_error(kind: Kind, error: &StreamError) -> Error {
    match error {
        StreamError::ConnectionError { 0: error, .. } => connection_error(kind, error),
        StreamError::RemoteTerminate { code, .. } => {
            Error::new(kind, format!("the peer reset the stream: {code}"))
        }
        StreamError::RemoteClosing => Error::new(kind, "the peer is closing the connection"),
        StreamError::Undefined { 0: error, .. } => Error::new(kind, error.to_string()),
        error => Error::new(kind, error.to_string()),
    }
}

fn connection_error(kind: Kind, error: &ConnectionError) -> Error {
    match error {
        ConnectionError::Timeout => Error::new(kind, "the QUIC connection timed out"),
        error => Error::new(kind, error.to_string()),
    }
}

/// Returns the peer's violation of framing, if that is the error.
fn frame_error(error: &StreamError) -> Option<FrameError> {
    match error {
        StreamError::Undefined { 0: error, .. } => error.downcast_ref().copied(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
