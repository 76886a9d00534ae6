//! The handshake of a proxy's client: SOCKS5, SOCKS4, SOCKS4a and HTTP, distinguished by their first
//! byte.
//!
//! A [`ProxyHandshake`] is pure: bytes in, [`HandshakeStep`]s out, no socket and no clock. The steps do not depend on how the
//! bytes were split, and it buffers at most [`MAX_HEAD`] of them, and those of the last call.
//!
//! | first byte | protocol | source |
//! | --- | --- | --- |
//! | 5 | SOCKS5, with name and password if required | RFC 1928, RFC 1929 |
//! | 4 | SOCKS4, and SOCKS4a where the address is `0.0.0.x` | the notes of Y.-D. Lee |
//! | a capital letter, or an empty line before it | HTTP/1: CONNECT, CONNECT-UDP, or any method with a URL | RFC 9110 §9.3.6, RFC 9298 §3.2, RFC 9112 §3.2.2 |

mod http;
mod socks4;
mod socks5;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::SocketAddr;

use ::http::HeaderValue;
use bytes::{Buf, Bytes, BytesMut};

pub use http::{connect_target as http_destination, credentials as http_credentials};
pub use socks5::{
    address as socks5_address, write_address as write_socks5_address,
    write_name as write_socks5_name,
};

use crate::body::BodyDelimiter;
use crate::destination::{Destination, RefusedRequest, RequestRefusal};

/// The limit on one message of a client before its destination is known, in bytes. SOCKS messages have at
/// most 515; an HTTP head that is longer is answered 431.
pub const MAX_HEAD: usize = 16 * 1024;

/// The name and password that a client gives. The password does not appear in debugging output.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCredentials {
    /// The name of a user.
    pub name: Vec<u8>,
    /// The password.
    pub password: Vec<u8>,
}

impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientCredentials({:?})", String::from_utf8_lossy(&self.name))
    }
}

/// The protocol between client and proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandshakeProtocol {
    /// SOCKS version 5.
    Socks5,
    /// SOCKS version 4, with names or without.
    Socks4,
    /// HTTP CONNECT.
    Connect,
    /// HTTP CONNECT-UDP (RFC 9298).
    ConnectUdp,
    /// HTTP/1.1 with a URL in the request line.
    Http,
    /// None: the connection was intercepted (RFC 9110 §3.7).
    Intercepted,
}

impl HandshakeProtocol {
    /// All protocols.
    pub const ALL: [Self; 6] = [
        Self::Socks5,
        Self::Socks4,
        Self::Connect,
        Self::ConnectUdp,
        Self::Http,
        Self::Intercepted,
    ];

    /// Returns the name used in lines and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Socks5 => "socks5",
            Self::Socks4 => "socks4",
            Self::Connect => "connect",
            Self::ConnectUdp => "connect-udp",
            Self::Http => "http",
            Self::Intercepted => "intercepted",
        }
    }
}

/// A client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeRequest {
    /// A byte stream to this destination.
    Connect(Destination),
    /// Datagrams to this destination, as capsules on the connection.
    ConnectUdp(Destination),
    /// A request to forward: `head`, and then the body.
    Forward {
        /// The destination of the URL.
        destination: Destination,
        /// The head of the request for the destination.
        head: Bytes,
        /// The framing of the body.
        body: BodyDelimiter,
    },
    /// Datagrams to any destination, for as long as the connection lasts (UDP ASSOCIATE).
    Associate {
        /// Their source port, if the client announced it.
        port: Option<u16>,
    },
}

impl HandshakeRequest {
    /// Returns the destination, if there is a single one.
    pub fn destination(&self) -> Option<&Destination> {
        match self {
            Self::Connect(destination)
            | Self::ConnectUdp(destination)
            | Self::Forward { destination, .. } => Some(destination),
            Self::Associate { .. } => None,
        }
    }
}

/// The next step of a [`ProxyHandshake`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeStep {
    /// Read more bytes from the client.
    More,
    /// Send this to the client.
    Send(Bytes),
    /// Check these credentials, and call [`ProxyHandshake::authenticated`].
    Authenticate(ClientCredentials),
    /// Handle the client's request, and reply with [`ProxyHandshake::granted`] or [`ProxyHandshake::refused`].
    Request(HandshakeRequest),
    /// Send this, which may be empty, to the client and disconnect it.
    Close(Bytes, RequestRefusal),
}

/// The state of one client, up to its request.
#[derive(Debug)]
pub struct ProxyHandshake {
    requires_user: bool,
    stage: HandshakeStage,
    protocol: Option<HandshakeProtocol>,
    user: Option<String>,
    /// The proxies that the request has passed, as its fields `Via` list them (RFC 9110 §7.6.3).
    hops: Option<HeaderValue>,
    /// What follows once the client is known to be a user.
    awaiting: Option<AwaitingAuthentication>,
    unread: BytesMut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandshakeStage {
    First,
    Socks5(socks5::Socks5Stage),
    Socks4,
    Http,
    Authenticating,
    Requested,
    Over,
}

/// What the credentials of a client came with.
#[derive(Debug)]
enum AwaitingAuthentication {
    /// Nothing: the request is the next message.
    Socks5,
    /// The request, or why it is refused to a user.
    Http(Box<Result<(HandshakeProtocol, HandshakeRequest), RequestRefusal>>),
}

/// The result of reading one message.
enum MessageRead {
    /// It is incomplete.
    Partial,
    /// A message of this length; send this reply, and continue at that stage.
    Next(usize, Bytes, HandshakeStage),
    /// A message of this length with credentials.
    Authenticate(usize, ClientCredentials, AwaitingAuthentication),
    /// A message of this length that contains the request.
    Request(usize, HandshakeProtocol, HandshakeRequest),
    /// Send this to the client and disconnect it.
    Refused(Bytes, RequestRefusal),
}

impl ProxyHandshake {
    /// Starts the handshake of a client, which may have to authenticate as a user.
    pub fn new(requires_user: bool) -> Self {
        Self {
            requires_user,
            stage: HandshakeStage::First,
            protocol: None,
            user: None,
            hops: None,
            awaiting: None,
            unread: BytesMut::new(),
        }
    }

    /// Adds bytes that were received from the client, for [`Self::step`].
    pub fn receive(&mut self, bytes: &[u8]) {
        if self.stage != HandshakeStage::Over {
            self.unread.extend_from_slice(bytes);
        }
    }

    /// Returns the next step. Call it until it returns [`HandshakeStep::More`] or the handshake ends.
    pub fn step(&mut self) -> HandshakeStep {
        let read = match self.stage {
            HandshakeStage::First => return self.detect_protocol(),
            HandshakeStage::Socks5(stage) => socks5::read(&self.unread, stage, self.requires_user),
            HandshakeStage::Socks4 => socks4::read(&self.unread, self.requires_user),
            HandshakeStage::Http => http::read(&self.unread, self.requires_user, &mut self.hops),
            HandshakeStage::Authenticating | HandshakeStage::Requested | HandshakeStage::Over => {
                return HandshakeStep::More;
            }
        };
        match read {
            MessageRead::Partial => HandshakeStep::More,
            MessageRead::Next(length, reply, stage) => {
                self.unread.advance(length);
                self.stage = stage;
                HandshakeStep::Send(reply)
            }
            MessageRead::Authenticate(length, credentials, awaiting) => {
                self.unread.advance(length);
                (self.stage, self.awaiting) = (HandshakeStage::Authenticating, Some(awaiting));
                HandshakeStep::Authenticate(credentials)
            }
            MessageRead::Request(length, protocol, request) => {
                self.unread.advance(length);
                self.requested(protocol, request)
            }
            MessageRead::Refused(reply, refusal) => self.close(reply, refusal),
        }
    }

    /// Returns the next step after [`HandshakeStep::Authenticate`]: the client is this user, or none.
    pub fn authenticated(&mut self, user: Result<Option<String>, RequestRefusal>) -> HandshakeStep {
        match (self.awaiting.take(), user) {
            (None, _) => HandshakeStep::More,
            (Some(AwaitingAuthentication::Socks5), Ok(user)) => {
                self.user = user;
                self.stage = HandshakeStage::Socks5(socks5::Socks5Stage::Request);
                HandshakeStep::Send(socks5::authenticated(true))
            }
            (Some(AwaitingAuthentication::Socks5), Err(why)) => {
                self.close(socks5::authenticated(false), why)
            }
            (Some(AwaitingAuthentication::Http(request)), Ok(user)) => {
                self.user = user;
                match *request {
                    Ok((protocol, request)) => self.requested(protocol, request),
                    Err(why) => self.close(http::refusal(&RefusedRequest::from(why.clone())), why),
                }
            }
            (Some(AwaitingAuthentication::Http(_)), Err(why)) => {
                self.close(http::refusal(&RefusedRequest::from(why.clone())), why)
            }
        }
    }

    fn requested(
        &mut self,
        protocol: HandshakeProtocol,
        request: HandshakeRequest,
    ) -> HandshakeStep {
        (self.stage, self.protocol) = (HandshakeStage::Requested, Some(protocol));
        HandshakeStep::Request(request)
    }

    fn detect_protocol(&mut self) -> HandshakeStep {
        // RFC 9112 §2.2: old clients send an empty line after a body, before the next request.
        while self.unread.starts_with(b"\r\n") {
            self.unread.advance(2);
        }
        let (stage, protocol) = match self.unread.first() {
            None => return HandshakeStep::More,
            Some(b'\r') if self.unread.len() == 1 => return HandshakeStep::More,
            Some(5) => {
                (HandshakeStage::Socks5(socks5::Socks5Stage::Greeting), HandshakeProtocol::Socks5)
            }
            Some(4) => (HandshakeStage::Socks4, HandshakeProtocol::Socks4),
            Some(b'A'..=b'Z') => (HandshakeStage::Http, HandshakeProtocol::Http),
            Some(22) => {
                let why =
                    "it speaks TLS to the proxy: the proxy's URL begins with http:// or socks5://";
                return self.close(Bytes::new(), RequestRefusal::Malformed(why.to_owned()));
            }
            Some(_) => {
                let why = "it speaks neither SOCKS nor HTTP/1";
                return self.close(Bytes::new(), RequestRefusal::Malformed(why.to_owned()));
            }
        };
        (self.stage, self.protocol) = (stage, Some(protocol));
        self.step()
    }

    fn close(&mut self, reply: Bytes, refusal: RequestRefusal) -> HandshakeStep {
        self.stage = HandshakeStage::Over;
        self.unread = BytesMut::new();
        HandshakeStep::Close(reply, refusal)
    }

    /// Returns the client's protocol, once it is known.
    pub fn protocol(&self) -> Option<HandshakeProtocol> {
        self.protocol
    }

    /// Returns the proxies that the request has passed, as its fields `Via` list them (RFC 9110 §7.6.3).
    pub fn hops(&self) -> Option<&HeaderValue> {
        self.hops.as_ref()
    }

    /// Returns the name of the authenticated user.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the success reply. `bound` is the address that the proxy connects from, or where it accepts
    /// datagrams. It is empty for protocols in which the destination sends the reply.
    pub fn granted(&self, bound: Option<SocketAddr>) -> Bytes {
        match self.protocol {
            Some(HandshakeProtocol::Socks5) => socks5::reply(socks5::SUCCEEDED, bound),
            Some(HandshakeProtocol::Socks4) => socks4::reply(socks4::GRANTED),
            Some(HandshakeProtocol::Connect) => http::established(),
            Some(HandshakeProtocol::ConnectUdp) => http::switching(),
            Some(HandshakeProtocol::Http | HandshakeProtocol::Intercepted) | None => Bytes::new(),
        }
    }

    /// Returns the reply to a request that is refused.
    pub fn refused(&self, why: &RequestRefusal) -> Bytes {
        self.refusal(&RefusedRequest::from(why.clone()))
    }

    /// Returns the same with a precise cause.
    pub fn refusal(&self, refused: &RefusedRequest) -> Bytes {
        match self.protocol {
            Some(HandshakeProtocol::Socks5) => socks5::reply(refused.why.socks5(), None),
            Some(HandshakeProtocol::Socks4) => socks4::reply(socks4::REJECTED),
            Some(
                HandshakeProtocol::Connect
                | HandshakeProtocol::ConnectUdp
                | HandshakeProtocol::Http,
            ) => http::refusal(refused),
            Some(HandshakeProtocol::Intercepted) | None => Bytes::new(),
        }
    }

    /// Returns the data that the client has sent after its request so far.
    pub fn rest(&self) -> Bytes {
        Bytes::copy_from_slice(&self.unread)
    }

    /// Returns the same without copying it.
    pub fn into_rest(self) -> Bytes {
        self.unread.freeze()
    }
}
