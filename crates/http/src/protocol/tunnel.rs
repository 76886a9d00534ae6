//! CONNECT and upgrades, over any version of HTTP.

use std::io;

use futures_util::TryStreamExt as _;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{CONNECTION, UPGRADE},
};
use hyper::{body::Incoming, ext::Protocol};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, join};
use tokio_util::io::StreamReader;

use super::{SendFailure, Sender, wire_body};
use crate::{Body, Error, Kind, http3::StreamDatagrams, pipe::pipe};

/// The byte stream of a tunnel.
pub(crate) trait TunnelIo: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> TunnelIo for T {}

/// A server's answer to a CONNECT or an upgrade.
pub(crate) enum TunnelReply {
    Open(Box<dyn TunnelIo>, HeaderMap, Option<StreamDatagrams>),
    Refused(Response<Body>),
}

impl Sender {
    /// Sends a CONNECT and waits for the answer.
    pub(crate) async fn tunnel(
        &mut self,
        request: Request<()>,
    ) -> Result<TunnelReply, SendFailure> {
        let empty = |request: Request<()>| request.map(|()| Body::empty());
        match self {
            Self::Http1(sender) => connected(sender.exchange(empty(request)).await?).await,
            Self::Http2(sender) => connected(sender.exchange(empty(request)).await?).await,
            Self::Http3(sender) => tunnel_over_bodies(sender, request).await,
        }
    }

    /// Asks the server to switch to another protocol, by Upgrade (RFC 9110 §7.8) or extended
    /// CONNECT (RFC 8441 §4, RFC 9220 §3), and waits for the answer.
    pub(crate) async fn upgrade(
        &mut self,
        protocol: &str,
        mut request: Request<()>,
    ) -> Result<TunnelReply, SendFailure> {
        let is_supported = match self {
            Self::Http1(_) => true,
            Self::Http2(sender) => sender.supports_extended_connect().await,
            Self::Http3(sender) => sender.supports_extended_connect().await,
        };
        if !is_supported {
            let version = crate::version_name(self.version());
            let why = format!("the server does not offer extended CONNECT over {version}");
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
                request.extensions_mut().insert(Protocol::from(protocol));
                connected(sender.exchange(request.map(|()| Body::empty())).await?).await
            }
            Self::Http3(sender) => {
                request.extensions_mut().insert(stream_protocol(protocol)?);
                tunnel_over_bodies(sender, request).await
            }
        }
    }
}

/// Returns the protocol with this name, which must be a token (RFC 9110 §7.8).
fn stream_protocol(name: &str) -> Result<Protocol, SendFailure> {
    match eyas_h3::message::is_token(name.as_bytes()) {
        true => Ok(Protocol::from(name)),
        false => Err(unknown(name)),
    }
}

fn unknown(protocol: &str) -> SendFailure {
    let why = format!("the protocol {protocol:?} cannot be requested over this version of HTTP");
    SendFailure::new(Error::new(Kind::Request, why))
}

/// Sends the request over HTTP/3 and, if it is accepted, returns the tunnel that consists of both
/// bodies.
async fn tunnel_over_bodies(
    sender: &mut super::Http3,
    request: Request<()>,
) -> Result<TunnelReply, SendFailure> {
    let (writer, body) = pipe();
    let response = sender.send(request.map(|()| Body::wrap(body))).await?;
    if !response.status().is_success() {
        return Ok(TunnelReply::Refused(response));
    }
    let (mut head, body) = response.into_parts();
    let reader = Box::pin(body.into_stream().map_err(io::Error::other));
    let io = Box::new(join(StreamReader::new(reader), writer));
    Ok(TunnelReply::Open(io, head.headers, head.extensions.remove()))
}

/// Returns the tunnel if the CONNECT was accepted.
async fn connected(response: Response<Incoming>) -> Result<TunnelReply, SendFailure> {
    match response.status().is_success() {
        true => upgraded(response).await,
        false => Ok(TunnelReply::Refused(response.map(wire_body::from_hyper))),
    }
}

/// Returns the tunnel if the HTTP/1.1 connection has switched to this protocol.
async fn switched(
    response: Response<Incoming>,
    protocol: &str,
) -> Result<TunnelReply, SendFailure> {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(TunnelReply::Refused(response.map(wire_body::from_hyper)));
    }
    let to = response.headers().get(UPGRADE).map_or(&b""[..], HeaderValue::as_bytes);
    if !to.eq_ignore_ascii_case(protocol.as_bytes()) {
        let to = String::from_utf8_lossy(to);
        let why = format!("the server switched to {to:?} instead of {protocol:?}");
        return Err(SendFailure::new(Error::new(Kind::Protocol, why)));
    }
    upgraded(response).await
}

/// Returns the upgraded connection or stream from hyper.
async fn upgraded(mut response: Response<Incoming>) -> Result<TunnelReply, SendFailure> {
    let upgrade = hyper::upgrade::on(&mut response).await;
    let failed = |error| SendFailure::new(Error::from_source(Kind::Protocol, error));
    let io = Box::new(TokioIo::new(upgrade.map_err(failed)?));
    Ok(TunnelReply::Open(io, response.into_parts().0.headers, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_a_token() {
        assert_eq!(
            stream_protocol("websocket").ok().as_ref().map(Protocol::as_str),
            Some("websocket")
        );
        assert!(stream_protocol("not a token").is_err());
    }
}
