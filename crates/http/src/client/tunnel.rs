//! Tunnels through a proxy by CONNECT (RFC 9110 §9.3.6, RFC 9113 §8.5, RFC 9114 §4.4), and streams of
//! another protocol (RFC 9110 §7.8, RFC 8441, RFC 9220).

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use eyas::{ConnectionInfo, RaceRecording};
use http::{HeaderMap, Request, Response, Version};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    Client, Inner, lease,
    limits::Limits,
    reused::{self, Missed},
    route::Route,
};
use crate::{
    Body, Error,
    connection_report::ConnectionReport,
    destination,
    http3::{HttpDatagrams, StreamDatagrams},
    pool::{Leased, UseGuard},
    protocol::{TunnelIo, TunnelReply},
};

/// The answer to a CONNECT or an upgrade.
#[derive(Debug)]
pub enum Connected {
    /// The tunnel is open.
    Tunnel(Tunnel),
    /// The server refused; its response states why.
    Refused(Response<Body>),
}

/// A byte stream through a proxy, on a connection that may be shared. Reads fail if the proxy
/// aborts the stream. If this is dropped before its write side has been shut down, the write side
/// is aborted as far as its version of HTTP allows.
pub struct Tunnel {
    io: Box<dyn TunnelIo>,
    version: Version,
    headers: HeaderMap,
    report: Arc<ConnectionReport>,
    is_new: bool,
    datagrams: Option<StreamDatagrams>,
    _use_guard: UseGuard,
}

impl Tunnel {
    /// Returns the details of the connection to the proxy.
    pub fn info(&self) -> Arc<ConnectionInfo> {
        Arc::new(self.report.info().clone())
    }

    /// Returns the version of HTTP that carries the tunnel.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the fields of the response that opened the tunnel, such as the `Sec-WebSocket-Protocol` of a
    /// WebSocket.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the HTTP Datagrams of the tunnel, if its connection carries them in QUIC DATAGRAM frames
    /// (RFC 9297 §2.1), as HTTP/3 does where the server offers it.
    pub fn datagrams(&self) -> Option<HttpDatagrams> {
        self.datagrams.as_ref().map(StreamDatagrams::open)
    }

    /// Returns the record of the race to the proxy, if there was one for this tunnel.
    pub fn race(&self) -> Option<RaceRecording> {
        self.is_new.then(|| self.report.handles().0)
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Client {
    /// Asks the proxy at an `https` URL to open a tunnel, by a CONNECT request whose URI is
    /// `host:port`, over the best version of HTTP that works. Later tunnels share the connection if
    /// its version allows it. `limit` is how long the answer may take once there is a connection; a
    /// connection on which it takes longer is not used for further requests. A connection that
    /// turns out to be closed is replaced once, since none of the caller's data was sent with the
    /// request.
    ///
    /// The proxies of the environment and the limits on requests and bodies do not apply. See
    /// [`ClientBuilder::tunnels`](super::ClientBuilder::tunnels).
    ///
    /// # Errors
    /// The same as for any request, except those of a response; [`Kind::IdleTimeout`] after
    /// `limit`.
    ///
    /// [`Kind::IdleTimeout`]: crate::Kind::IdleTimeout
    pub async fn connect(
        &self,
        proxy: &str,
        request: Request<()>,
        limit: Duration,
    ) -> Result<Connected, Error> {
        self.request_tunnel(proxy, None, request, limit).await
    }

    /// Asks the server at an `https` URL to switch the stream of this request to another protocol,
    /// such as `websocket` or `connect-udp`: by `Upgrade` over HTTP/1.1 (RFC 9110 §7.8), by extended CONNECT over
    /// HTTP/2 (RFC 8441) and HTTP/3 (RFC 9220), once the server's settings have arrived. The
    /// request's URI is absolute; its method is ignored. A `websocket` over HTTP/1.1 needs a
    /// `Sec-WebSocket-Key` of the caller (RFC 6455 §4.1), and over the others it must have none.
    /// Otherwise this works like [`connect`](Self::connect).
    ///
    /// # Errors
    /// The same as for [`connect`](Self::connect); [`Kind::Protocol`] if the server does not offer
    /// extended CONNECT.
    ///
    /// [`Kind::Protocol`]: crate::Kind::Protocol
    pub async fn upgrade(
        &self,
        server: &str,
        protocol: &str,
        request: Request<()>,
        limit: Duration,
    ) -> Result<Connected, Error> {
        self.request_tunnel(server, Some(protocol), request, limit).await
    }

    async fn request_tunnel(
        &self,
        server: &str,
        protocol: Option<&str>,
        request: Request<()>,
        limit: Duration,
    ) -> Result<Connected, Error> {
        let url = destination::parse(server)?;
        let route = Route::new(self.inner(), &url)?;
        let mut may_repeat = true;
        loop {
            match self.try_tunnel(&route, protocol, request.clone(), limit).await {
                Ok(connected) => return Ok(connected),
                Err(AskError { stale: true, .. }) if may_repeat => may_repeat = false,
                Err(missed) => return Err(missed.error.with_url(&url)),
            }
        }
    }

    async fn try_tunnel(
        &self,
        route: &Route,
        protocol: Option<&str>,
        request: Request<()>,
        limit: Duration,
    ) -> Result<Connected, AskError> {
        let inner = self.inner();
        let missed = |error| AskError { error, stale: false };
        let leased = lease::lease(inner, route, false, None).await.map_err(missed)?;
        let limits = Limits { idle: Some(limit), ..Limits::default() };
        // None of the caller's data is sent before the answer.
        let conditions = reused::Conditions { inner, route, limits: &limits, may_repeat: true };
        let ask = |mut leased: Leased| {
            let (request, protocol) = (request.clone(), protocol.map(str::to_owned));
            async move {
                let reply = match protocol {
                    Some(protocol) => leased.sender.upgrade(&protocol, request).await,
                    None => leased.sender.tunnel(request).await,
                };
                (leased, reply)
            }
        };
        match reused::send(conditions, leased, ask).await.outcome {
            Ok((leased, reply)) => Ok(answered(inner, route, leased, reply)),
            Err(Missed::NoConnection(error)) => Err(missed(error)),
            Err(Missed::NoResponse(report, failure)) => {
                inner.pool.retire_where(&route.key, |other| std::ptr::eq(other, &*report));
                Err(missed(failure.error.with_candidate(&*report)))
            }
            Err(Missed::Failed(leased, failure)) => {
                let (report, reused) = (Arc::clone(leased.report()), leased.reused);
                let closed = leased.sender.is_closed();
                let unsent = failure.unprocessed || failure.unsent.is_some();
                if closed || unsent {
                    inner.pool.retire(&route.key, &leased);
                }
                if closed && !reused {
                    report.failed(&failure.error);
                }
                Err(AskError {
                    error: failure.error.with_candidate(&*report),
                    stale: reused || unsent,
                })
            }
        }
    }
}

fn answered(inner: &Inner, route: &Route, leased: Leased, reply: TunnelReply) -> Connected {
    let report = Arc::clone(leased.report());
    report.first_byte_seen();
    let (version, is_new) = (leased.version(), !leased.reused);
    let use_guard = leased.use_guard();
    match reply {
        TunnelReply::Refused(response) => {
            inner.pool.put_back(&route.key, leased);
            drop(use_guard);
            Connected::Refused(response)
        }
        TunnelReply::Open(io, headers, datagrams) => Connected::Tunnel(Tunnel {
            io,
            version,
            headers,
            report,
            is_new,
            datagrams,
            _use_guard: use_guard,
        }),
    }
}

/// The reason why no answer arrived.
struct AskError {
    error: Error,
    /// Whether the connection may merely have been stale.
    stale: bool,
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
