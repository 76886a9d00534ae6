//! Streams of bytes through a proxy that is asked for them: CONNECT (RFC 9110 §9.3.6, RFC 9113 §8.5,
//! RFC 9114 §4.4).

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use eyas::{ConnectionInfo, Recording};
use http::{Request, Response, Version};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::timeout,
};

use super::{Client, attempt, route::Route};
use crate::{
    Body, Error, Kind,
    connection_report::ConnectionReport,
    destination,
    pool::UseGuard,
    protocol::{TunnelIo, Tunnelling},
};

/// What a proxy says to a CONNECT.
#[derive(Debug)]
pub enum Connected {
    /// Bytes go both ways from here on.
    Tunnel(Tunnel),
    /// Why not.
    Refused(Response<Body>),
}

/// A stream of bytes through a proxy, on a connection that others may share. Reading gives an error if the
/// proxy breaks it off; a write side that is not shut down is broken off when this is dropped, as far as
/// its version of HTTP can say so.
pub struct Tunnel {
    io: Box<dyn TunnelIo>,
    version: Version,
    report: Arc<ConnectionReport>,
    is_new: bool,
    _hold: UseGuard,
}

impl Tunnel {
    /// What the connection to the proxy is.
    pub fn info(&self) -> Arc<ConnectionInfo> {
        Arc::new(self.report.info().clone())
    }

    /// The version of HTTP that carries it.
    pub fn version(&self) -> Version {
        self.version
    }

    /// How the race to the proxy ran, if it was run for this.
    pub fn race(&self) -> Option<Recording> {
        self.is_new.then(|| self.report.handles().0)
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Client {
    /// Asks the proxy at an `https` URL by this request, a CONNECT whose URI is `host:port`, over the best
    /// version of HTTP that works; later ones share the connection where the version lets them. `limit` is
    /// how long the answer may take once there is a connection: one that gives none serves no further
    /// request. A connection that turns out to have gone is replaced once, for nothing of the caller's has
    /// been sent with the request.
    ///
    /// Proxies of the environment are not asked, and limits on requests and bodies do not hold. See
    /// [`ClientBuilder::tunnels`](super::ClientBuilder::tunnels).
    ///
    /// # Errors
    /// As any request's, without what a response can bring; [`Kind::IdleTimeout`] after `limit`.
    pub async fn connect(
        &self,
        proxy: &str,
        request: Request<()>,
        limit: Duration,
    ) -> Result<Connected, Error> {
        let url = destination::parse(proxy)?;
        let route = Route::new(self.inner(), &url)?;
        let mut may_repeat = true;
        loop {
            match self.connect_once(&route, request.clone(), limit).await {
                Ok(connected) => return Ok(connected),
                Err(Missed { stale: true, .. }) if may_repeat => may_repeat = false,
                Err(missed) => return Err(missed.error.at(&url)),
            }
        }
    }

    async fn connect_once(
        &self,
        route: &Route,
        request: Request<()>,
        limit: Duration,
    ) -> Result<Connected, Missed> {
        let inner = self.inner();
        let leased = attempt::lease(inner, route, false).await;
        let mut leased = leased.map_err(|error| Missed { error, stale: false })?;
        let report = Arc::clone(leased.report());
        let failure = match timeout(limit, leased.sender.tunnel(request)).await {
            Ok(Ok(tunnelling)) => {
                report.first_byte_seen();
                let (version, is_new) = (leased.version(), !leased.reused);
                return Ok(match tunnelling {
                    Tunnelling::Refused(response) => {
                        let hold = leased.hold();
                        inner.pool.give_back(&route.key, leased);
                        drop(hold);
                        Connected::Refused(response)
                    }
                    Tunnelling::Open(io) => {
                        let _hold = leased.hold();
                        Connected::Tunnel(Tunnel { io, version, report, is_new, _hold })
                    }
                });
            }
            Ok(Err(failure)) => failure,
            Err(_) => {
                inner.pool.retire(&route.key, &leased);
                let error = Error::new(Kind::IdleTimeout, format!("no answer after {limit:?}"));
                return Err(Missed { error: error.on(&*report), stale: false });
            }
        };
        let closed = leased.sender.is_closed();
        let unsent = failure.unprocessed || failure.unsent.is_some();
        if closed || unsent {
            inner.pool.retire(&route.key, &leased);
        }
        if closed && !leased.reused {
            report.failed(&failure.error);
        }
        Err(Missed { error: failure.error.on(&*report), stale: leased.reused || unsent })
    }
}

/// Why there is no answer.
struct Missed {
    error: Error,
    /// Whether the connection may just have grown old.
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
