//! Tunnels over streams: CONNECT, and extended CONNECT (RFC 8441 §4, RFC 9220 §3).
//!
//! A service communicates through both bodies, or expects an upgrade of hyper, as axum does for WebSockets. The request's
//! body is therefore shared: if the service drops it and responds without content, the stream of the upgrade has it.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::{
    body::Incoming, ext::Protocol, server::conn::http1, service::service_fn, upgrade::OnUpgrade,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
};
use tokio_util::{io::StreamReader, sync::CancellationToken};

use super::{
    exchange::Exchange,
    request_body::{RequestBody, TunnelBody},
};
use crate::pipe::{PipeBody, PipeWriter, pipe};

/// hyper makes an [`OnUpgrade`] only for a request that it has read, so it reads this one.
const REQUEST: &[u8] = b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n";

/// The end of a head (RFC 9112 §2.1).
const HEAD_END: &[u8] = b"\r\n\r\n";

/// A request that a service may accept as a tunnel.
pub(super) struct TunnelOffer {
    body: Arc<TunnelBody>,
    upgrade: Option<UpgradeOffer>,
}

impl TunnelOffer {
    /// Shares the body of a CONNECT request, and offers an upgrade with an extended one.
    pub(super) fn split_request(
        request: Request<RequestBody>,
    ) -> (Option<Self>, Request<RequestBody>) {
        let (mut head, body) = request.into_parts();
        let body = Arc::new(TunnelBody::new(body));
        let mut upgrade = None;
        if head.extensions.get::<Protocol>().is_some()
            && let Some((offer, service_end)) = UpgradeOffer::new()
        {
            head.extensions.insert(service_end);
            upgrade = Some(offer);
        }
        let request = Request::from_parts(head, RequestBody::shared(Arc::clone(&body)));
        (Some(Self { body, upgrade }), request)
    }

    /// Opens the tunnel, since the service has accepted it. The exchange lasts until both directions have ended.
    pub(super) async fn accept(
        self,
        exchange: &Arc<Exchange>,
        has_content: bool,
    ) -> AcceptedTunnel {
        let abandoned = self.body.abandoned().clone();
        self.body.lock().hold_exchange(Arc::clone(exchange));
        // A service that still has the body of the request reads it itself.
        let is_body_free = Arc::strong_count(&self.body) == 1;
        let download = match self.upgrade {
            Some(upgrade) if is_body_free && !has_content => {
                upgrade.accept(RequestBody::shared(self.body)).await
            }
            _ => None,
        };
        AcceptedTunnel { abandoned, download }
    }
}

/// A tunnel that is open.
pub(super) struct AcceptedTunnel {
    /// To be cancelled when the client reads no more.
    pub(super) abandoned: CancellationToken,
    /// What the service sends, if the tunnel is an upgrade.
    pub(super) download: Option<PipeBody>,
}

/// The offer of an upgrade, whose other end the service has.
struct UpgradeOffer {
    stream: Arc<Mutex<Option<TunnelStream>>>,
    /// Lets hyper accept its request.
    accept: oneshot::Sender<()>,
    /// hyper's connection, which passes the stream on once the request is accepted.
    connection: Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>,
}

impl UpgradeOffer {
    fn new() -> Option<(Self, OnUpgrade)> {
        let stream = Arc::<Mutex<Option<TunnelStream>>>::default();
        let (accept, accepted) = oneshot::channel();
        let (give, mut given) = oneshot::channel();
        let once = Mutex::new(Some((give, accepted)));
        let service = service_fn(move |mut request: Request<Incoming>| {
            let once = once.lock().unwrap_or_else(PoisonError::into_inner).take();
            async move {
                let (give, accepted) = once.ok_or(io::ErrorKind::InvalidInput)?;
                let _ = give.send(hyper::upgrade::on(&mut request));
                accepted.await.map_err(io::Error::other)?;
                let mut response = Response::new(Empty::<Bytes>::new());
                *response.status_mut() = StatusCode::OK;
                Ok::<_, io::Error>(response)
            }
        });
        let prelude = Prelude::new(Arc::clone(&stream));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(prelude), service);
        let mut connection = Box::pin(connection.with_upgrades());
        // All of the request is there, so this suffices.
        let _ = connection.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let service_end = given.try_recv().ok()?;
        Some((Self { stream, accept, connection }, service_end))
    }

    /// Passes the stream on to the service, and returns what it sends.
    async fn accept(self, body: RequestBody) -> Option<PipeBody> {
        let (writer, download) = pipe();
        let body: BoxedStream = Box::pin(body.into_data_stream().map_err(io::Error::other));
        let opened = TunnelStream { reader: StreamReader::new(body), writer };
        *self.stream.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        self.accept.send(()).ok()?;
        if let Err(error) = self.connection.await {
            tracing::debug!(%error, "an upgrade was not passed on");
        }
        Some(download)
    }
}

type BoxedStream = Pin<Box<dyn futures_util::Stream<Item = io::Result<Bytes>> + Send>>;

/// Both directions of a tunnel. As of a TCP connection, what was written before it is dropped is sent, and then its end.
struct TunnelStream {
    reader: StreamReader<BoxedStream, Bytes>,
    writer: PipeWriter,
}

impl Drop for TunnelStream {
    fn drop(&mut self) {
        let _ = Pin::new(&mut self.writer).poll_shutdown(&mut Context::from_waker(Waker::noop()));
    }
}

/// The stream below hyper's connection: first hyper's own request and response, and then the tunnel.
struct Prelude {
    /// What is left of the request.
    request: &'static [u8],
    /// How much of the end of the response's head has been written.
    end: usize,
    stream: Arc<Mutex<Option<TunnelStream>>>,
    tunnel: Option<TunnelStream>,
}

impl Prelude {
    fn new(stream: Arc<Mutex<Option<TunnelStream>>>) -> Self {
        Self { request: REQUEST, end: 0, stream, tunnel: None }
    }

    /// Takes the next bytes of the head of hyper's response, which nobody gets. Returns their number.
    fn swallow_head(&mut self, bytes: &[u8]) -> usize {
        for (index, byte) in bytes.iter().enumerate() {
            self.end = match *byte {
                byte if byte == HEAD_END[self.end] => self.end + 1,
                b'\r' => 1,
                _ => 0,
            };
            if self.end == HEAD_END.len() {
                self.tunnel = self.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
                return index + 1;
            }
        }
        bytes.len()
    }
}

impl AsyncRead for Prelude {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.request.is_empty() {
            let (now, later) = self.request.split_at(self.request.len().min(buf.remaining()));
            buf.put_slice(now);
            self.request = later;
            return Poll::Ready(Ok(()));
        }
        match &mut self.tunnel {
            Some(tunnel) => Pin::new(&mut tunnel.reader).poll_read(cx, buf),
            // The connection is polled again once the request is accepted.
            None => Poll::Pending,
        }
    }
}

impl AsyncWrite for Prelude {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.tunnel {
            Some(tunnel) => Pin::new(&mut tunnel.writer).poll_write(cx, bytes),
            None => Poll::Ready(Ok(self.swallow_head(bytes))),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.tunnel {
            Some(tunnel) => Pin::new(&mut tunnel.writer).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.tunnel {
            Some(tunnel) => Pin::new(&mut tunnel.writer).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}
