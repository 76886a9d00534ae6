//! HTTP/3, implemented with h3 over quinn.

mod broken;
mod keep_alive;
mod receive;
mod transmit;

use std::{
    borrow::Cow,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use h3::{
    ConnectionState as _,
    error::{Code, ConnectionError, StreamError},
};
use http::{Request, Response, Version};
use tokio::sync::watch;

use self::{keep_alive::InFlight, receive::ReceivedBody};
use super::{MAX_HEAD_BYTES, SendFailure, alert, fields};
use crate::{
    Body, Error, Kind,
    quic_streams::{ConnectionDatagrams, FrameError, Opener, Side, StreamDatagrams, Streams},
};

/// The client's side of a connection.
#[derive(Clone)]
struct ClientSide {
    tunnels: bool,
}

impl Side for ClientSide {
    const IS_CLIENT: bool = true;

    type RequestGuard = ();

    fn request_started(&self, _: &quinn::SendStream) {}

    fn opens_tunnels(&self) -> bool {
        self.tunnels
    }
}

/// One HTTP/3 connection; clones share it.
#[derive(Clone)]
pub(crate) struct Http3 {
    sender: h3::client::SendRequest<Opener<ClientSide>, Bytes>,
    quic: quinn::Connection,
    /// Whether the peer has stated that it accepts no further requests (GOAWAY).
    going_away: Arc<AtomicBool>,
    /// What the peer's settings offer, once they have arrived.
    offers: watch::Receiver<Option<Offers>>,
    datagrams: ConnectionDatagrams,
    in_flight: InFlight,
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
        let mut builder = h3::client::builder();
        builder
            .max_field_section_size(MAX_HEAD_BYTES as u64)
            .enable_datagram(tunnels)
            // A peer that grants few streams could delay a request with unnecessary ones.
            .send_grease(false);
        let streams = Streams::new(quic.clone(), ClientSide { tunnels }, MAX_HEAD_BYTES);
        // Boxed because it is large, so that futures waiting for a connection stay small.
        let (mut connection, sender) = Box::pin(builder.build(streams))
            .await
            .map_err(|error| connection_error(Kind::Protocol, &error))?;
        let datagrams = ConnectionDatagrams::new(quic.clone());
        if tunnels {
            tokio::spawn(datagrams.clone().run());
        }
        let (offers_tx, offers) = watch::channel(None);
        let in_flight = InFlight::default();
        let (alive, requests) = (quic.clone(), in_flight.clone());
        tokio::spawn(async move {
            let ended = poll_fn(|cx| {
                let ended = connection.poll_close(cx);
                if offers_tx.borrow().is_none()
                    && let Cow::Borrowed(settings) = connection.settings()
                {
                    let extended_connect = settings.enable_extended_connect();
                    let datagrams = tunnels && settings.enable_datagram();
                    offers_tx.send_replace(Some(Offers { extended_connect, datagrams }));
                }
                ended
            });
            let error = tokio::select! {
                error = ended => error,
                never = keep_alive::keep_alive(&alive, &requests) => match never {},
            };
            if !error.is_h3_no_error() {
                tracing::debug!(%error, "HTTP/3 connection ended");
            }
        });
        Ok(Self { sender, quic, going_away: Arc::default(), offers, datagrams, in_flight })
    }

    pub(crate) fn quic(&self) -> &quinn::Connection {
        &self.quic
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.going_away.load(Ordering::Relaxed) || self.quic.close_reason().is_some()
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
        let in_flight = self.in_flight.begin();
        fields::multiplex(&mut request).map_err(SendFailure::new)?;
        fields::set_content_length(&mut request);
        *request.version_mut() = Version::HTTP_3;
        let (parts, body) = request.into_parts();
        let stream = match self.sender.send_request(Request::from_parts(parts, ())).await {
            Ok(stream) => stream,
            Err(error @ StreamError::RemoteClosing) => {
                self.going_away.store(true, Ordering::Relaxed);
                return Err(SendFailure { unsent: Some(body), ..failure(&error) });
            }
            Err(error) => return Err(failure(&error)),
        };
        let supports_datagrams = self.offers.borrow().is_some_and(|offers| offers.datagrams);
        let datagrams = supports_datagrams.then(|| self.datagrams.of(stream.id().into_inner()));
        let (transmit, receive) = stream.split();
        let mut transmission = transmit::start(transmit, body).await.map_err(SendFailure::new)?;
        let mut receive = ReceivedBody::new(receive, self.clone(), in_flight);
        let head = tokio::select! {
            // The response comes first: a server may respond before it has read the whole body.
            biased;
            head = receive.head() => head?,
            error = transmission.failed() => return Err(SendFailure::new(error)),
        };
        let mut response = head.map(|()| Body::boxed(receive.with_transmission(transmission)));
        if let Some(datagrams) = datagrams {
            response.extensions_mut().insert::<StreamDatagrams>(datagrams);
        }
        Ok(response)
    }
}

fn failure(error: &StreamError) -> SendFailure {
    let rejected = match error {
        StreamError::RemoteTerminate { code, .. } | StreamError::StreamError { code, .. } => {
            *code == Code::H3_REQUEST_REJECTED
        }
        StreamError::RemoteClosing => true,
        _ => false,
    };
    SendFailure { error: stream_error(Kind::Protocol, error), unsent: None, unprocessed: rejected }
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
