//! CONNECT on a connection of whichever version.

use std::io;

use futures_util::TryStreamExt as _;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, join};
use tokio_util::io::StreamReader;

use super::{SendFailure, Sender, wire_body};
use crate::{Body, Error, Kind, pipe::pipe};

/// What bytes go through.
pub(crate) trait TunnelIo: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> TunnelIo for T {}

/// What a proxy says to a CONNECT.
pub(crate) enum Tunnelling {
    Open(Box<dyn TunnelIo>),
    Refused(Response<Body>),
}

impl Sender {
    /// Sends a CONNECT and waits for what is said to it.
    pub(crate) async fn tunnel(&mut self, request: Request<()>) -> Result<Tunnelling, SendFailure> {
        let empty = |request: Request<()>| request.map(|()| Body::empty());
        match self {
            Self::Http1(sender) => upgraded(sender.exchange(empty(request)).await?).await,
            Self::Http2(sender) => upgraded(sender.exchange(empty(request)).await?).await,
            Self::Http3(sender) => {
                let (says, body) = pipe();
                let response = sender.send(request.map(|()| Body::wrap(body))).await?;
                if !response.status().is_success() {
                    return Ok(Tunnelling::Refused(response));
                }
                let heard = Box::pin(response.into_body().into_stream().map_err(io::Error::other));
                Ok(Tunnelling::Open(Box::new(join(StreamReader::new(heard), says))))
            }
        }
    }
}

/// Returns what hyper provides for an accepted connection or stream.
async fn upgraded(mut response: Response<Incoming>) -> Result<Tunnelling, SendFailure> {
    if !response.status().is_success() {
        return Ok(Tunnelling::Refused(response.map(wire_body::from_hyper)));
    }
    let upgrade = hyper::upgrade::on(&mut response).await;
    let failed = |error| SendFailure::new(Error::from_source(Kind::Protocol, error));
    Ok(Tunnelling::Open(Box::new(TokioIo::new(upgrade.map_err(failed)?))))
}
