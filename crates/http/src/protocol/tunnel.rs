//! CONNECT and upgrades on a connection of whichever version.

use std::io;

use futures_util::TryStreamExt as _;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{CONNECTION, UPGRADE},
};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, join};
use tokio_util::io::StreamReader;

use super::{SendFailure, Sender, wire_body};
use crate::{Body, Error, Kind, pipe::pipe, quic_streams::StreamDatagrams};

/// What bytes go through.
pub(crate) trait TunnelIo: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> TunnelIo for T {}

/// A server's answer to a CONNECT or an upgrade.
pub(crate) enum Tunnelling {
    Open(Box<dyn TunnelIo>, Option<StreamDatagrams>),
    Refused(Response<Body>),
}

impl Sender {
    /// Sends a CONNECT and waits for the answer.
    pub(crate) async fn tunnel(&mut self, request: Request<()>) -> Result<Tunnelling, SendFailure> {
        let empty = |request: Request<()>| request.map(|()| Body::empty());
        match self {
            Self::Http1(sender) => connected(sender.exchange(empty(request)).await?).await,
            Self::Http2(sender) => connected(sender.exchange(empty(request)).await?).await,
            Self::Http3(sender) => through_bodies(sender, request).await,
        }
    }

    /// Asks a server to go on with another protocol, and waits for what is said to it: by Upgrade (RFC
    /// 9110 §7.8) or extended CONNECT (RFC 8441 §4, RFC 9220 §3).
    pub(crate) async fn upgrade(
        &mut self,
        protocol: &str,
        mut request: Request<()>,
    ) -> Result<Tunnelling, SendFailure> {
        let takes_it = match self {
            Self::Http1(_) => true,
            Self::Http2(sender) => sender.takes_extended_connect().await,
            Self::Http3(sender) => sender.takes_extended_connect().await,
        };
        if !takes_it {
            let version = crate::version_name(self.version());
            let why = format!("the server offers no extended CONNECT over {version}");
            return Err(SendFailure::new(Error::new(Kind::Protocol, why)));
        }
        *request.method_mut() = Method::CONNECT;
        match self {
            Self::Http1(sender) => {
                *request.method_mut() = Method::GET;
                let name = HeaderValue::try_from(protocol).map_err(|_| unknown(protocol))?;
                request.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
                request.headers_mut().insert(UPGRADE, name);
                let response = sender.exchange(request.map(|()| Body::empty())).await?;
                switched(response, protocol).await
            }
            Self::Http2(sender) => {
                request.extensions_mut().insert(hyper::ext::Protocol::from(protocol));
                connected(sender.exchange(request.map(|()| Body::empty())).await?).await
            }
            Self::Http3(sender) => {
                let name = protocol.parse::<h3::ext::Protocol>().map_err(|_| unknown(protocol))?;
                request.extensions_mut().insert(name);
                through_bodies(sender, request).await
            }
        }
    }
}

fn unknown(protocol: &str) -> SendFailure {
    let why = format!("the protocol {protocol:?} cannot be requested over this version of HTTP");
    SendFailure::new(Error::new(Kind::Request, why))
}

/// Continues a stream of HTTP/3 that was accepted with both bodies.
async fn through_bodies(
    sender: &mut super::Http3,
    request: Request<()>,
) -> Result<Tunnelling, SendFailure> {
    let (says, body) = pipe();
    let response = sender.send(request.map(|()| Body::wrap(body))).await?;
    if !response.status().is_success() {
        return Ok(Tunnelling::Refused(response));
    }
    let (mut head, body) = response.into_parts();
    let heard = Box::pin(body.into_stream().map_err(io::Error::other));
    let io = Box::new(join(StreamReader::new(heard), says));
    Ok(Tunnelling::Open(io, head.extensions.remove()))
}

/// Returns a connection or stream on which a CONNECT was accepted.
async fn connected(response: Response<Incoming>) -> Result<Tunnelling, SendFailure> {
    match response.status().is_success() {
        true => upgraded(response).await,
        false => Ok(Tunnelling::Refused(response.map(wire_body::from_hyper))),
    }
}

/// Returns a connection of HTTP/1.1 that has switched to this protocol.
async fn switched(response: Response<Incoming>, protocol: &str) -> Result<Tunnelling, SendFailure> {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Tunnelling::Refused(response.map(wire_body::from_hyper)));
    }
    let to = response.headers().get(UPGRADE).map_or(&b""[..], HeaderValue::as_bytes);
    if !to.eq_ignore_ascii_case(protocol.as_bytes()) {
        let to = String::from_utf8_lossy(to);
        let why = format!("the server switched to {to:?} instead of {protocol:?}");
        return Err(SendFailure::new(Error::new(Kind::Protocol, why)));
    }
    upgraded(response).await
}

/// Returns what hyper provides for an accepted connection or stream.
async fn upgraded(mut response: Response<Incoming>) -> Result<Tunnelling, SendFailure> {
    let upgrade = hyper::upgrade::on(&mut response).await;
    let failed = |error| SendFailure::new(Error::from_source(Kind::Protocol, error));
    Ok(Tunnelling::Open(Box::new(TokioIo::new(upgrade.map_err(failed)?)), None))
}
