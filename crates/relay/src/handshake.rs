//! The handshake of a proxy's client: SOCKS5, SOCKS4, SOCKS4a and HTTP, distinguished by their first
//! byte.
//!
//! A [`Handshake`] is pure: bytes in, [`Step`]s out, no socket and no clock. The steps do not depend on how the
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

use crate::body::Body;
use crate::destination::{Destination, Refusal, Refused};

/// The limit on one message of a client before its destination is known, in bytes. SOCKS messages have at
/// most 515; an HTTP head that is longer is answered 431.
pub const MAX_HEAD: usize = 16 * 1024;

/// The name and password that a client gives. The password does not appear in debugging output.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name of a user.
    pub name: Vec<u8>,
    /// The password.
    pub password: Vec<u8>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({:?})", String::from_utf8_lossy(&self.name))
    }
}

/// The protocol between client and proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
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

impl Protocol {
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
pub enum Request {
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
        body: Body,
    },
    /// Datagrams to any destination, for as long as the connection lasts (UDP ASSOCIATE).
    Associate {
        /// Their source port, if the client announced it.
        port: Option<u16>,
    },
}

impl Request {
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

/// The next step of a [`Handshake`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read more bytes from the client.
    More,
    /// Send this to the client.
    Send(Bytes),
    /// Check these credentials, and call [`Handshake::authenticated`].
    Authenticate(Credentials),
    /// Handle the client's request, and reply with [`Handshake::granted`] or [`Handshake::refused`].
    Request(Request),
    /// Send this, which may be empty, to the client and disconnect it.
    Close(Bytes, Refusal),
}

/// The state of one client, up to its request.
#[derive(Debug)]
pub struct Handshake {
    requires_user: bool,
    stage: Stage,
    protocol: Option<Protocol>,
    user: Option<String>,
    /// The proxies that the request has passed, as its fields `Via` list them (RFC 9110 §7.6.3).
    hops: Option<HeaderValue>,
    /// What follows once the client is known to be a user.
    awaiting: Option<Awaiting>,
    unread: BytesMut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    First,
    Socks5(socks5::Stage),
    Socks4,
    Http,
    Authenticating,
    Requested,
    Over,
}

/// What the credentials of a client came with.
#[derive(Debug)]
enum Awaiting {
    /// Nothing: the request is the next message.
    Socks5,
    /// The request, or why it is refused to a user.
    Http(Box<Result<(Protocol, Request), Refusal>>),
}

/// The result of reading one message.
enum Read {
    /// It is incomplete.
    Partial,
    /// A message of this length; send this reply, and continue at that stage.
    Next(usize, Bytes, Stage),
    /// A message of this length with credentials.
    Authenticate(usize, Credentials, Awaiting),
    /// A message of this length that contains the request.
    Request(usize, Protocol, Request),
    /// Send this to the client and disconnect it.
    Refused(Bytes, Refusal),
}

impl Handshake {
    /// Starts the handshake of a client, which may have to authenticate as a user.
    pub fn new(requires_user: bool) -> Self {
        Self {
            requires_user,
            stage: Stage::First,
            protocol: None,
            user: None,
            hops: None,
            awaiting: None,
            unread: BytesMut::new(),
        }
    }

    /// Adds bytes that were received from the client, for [`Self::step`].
    pub fn put(&mut self, bytes: &[u8]) {
        if self.stage != Stage::Over {
            self.unread.extend_from_slice(bytes);
        }
    }

    /// Returns the next step. Call it until it returns [`Step::More`] or the handshake ends.
    pub fn step(&mut self) -> Step {
        let read = match self.stage {
            Stage::First => return self.detect_protocol(),
            Stage::Socks5(stage) => socks5::read(&self.unread, stage, self.requires_user),
            Stage::Socks4 => socks4::read(&self.unread, self.requires_user),
            Stage::Http => http::read(&self.unread, self.requires_user, &mut self.hops),
            Stage::Authenticating | Stage::Requested | Stage::Over => return Step::More,
        };
        match read {
            Read::Partial => Step::More,
            Read::Next(length, reply, stage) => {
                self.unread.advance(length);
                self.stage = stage;
                Step::Send(reply)
            }
            Read::Authenticate(length, credentials, awaiting) => {
                self.unread.advance(length);
                (self.stage, self.awaiting) = (Stage::Authenticating, Some(awaiting));
                Step::Authenticate(credentials)
            }
            Read::Request(length, protocol, request) => {
                self.unread.advance(length);
                self.requested(protocol, request)
            }
            Read::Refused(reply, refusal) => self.close(reply, refusal),
        }
    }

    /// Returns the next step after [`Step::Authenticate`]: the client is this user, or none.
    pub fn authenticated(&mut self, user: Result<Option<String>, Refusal>) -> Step {
        match (self.awaiting.take(), user) {
            (None, _) => Step::More,
            (Some(Awaiting::Socks5), Ok(user)) => {
                self.user = user;
                self.stage = Stage::Socks5(socks5::Stage::Request);
                Step::Send(socks5::authenticated(true))
            }
            (Some(Awaiting::Socks5), Err(why)) => self.close(socks5::authenticated(false), why),
            (Some(Awaiting::Http(request)), Ok(user)) => {
                self.user = user;
                match *request {
                    Ok((protocol, request)) => self.requested(protocol, request),
                    Err(why) => self.close(http::refusal(&Refused::from(why.clone())), why),
                }
            }
            (Some(Awaiting::Http(_)), Err(why)) => {
                self.close(http::refusal(&Refused::from(why.clone())), why)
            }
        }
    }

    fn requested(&mut self, protocol: Protocol, request: Request) -> Step {
        (self.stage, self.protocol) = (Stage::Requested, Some(protocol));
        Step::Request(request)
    }

    fn detect_protocol(&mut self) -> Step {
        // RFC 9112 §2.2: old clients send an empty line after a body, before the next request.
        while self.unread.starts_with(b"\r\n") {
            self.unread.advance(2);
        }
        let (stage, protocol) = match self.unread.first() {
            None => return Step::More,
            Some(b'\r') if self.unread.len() == 1 => return Step::More,
            Some(5) => (Stage::Socks5(socks5::Stage::Greeting), Protocol::Socks5),
            Some(4) => (Stage::Socks4, Protocol::Socks4),
            Some(b'A'..=b'Z') => (Stage::Http, Protocol::Http),
            Some(22) => {
                let why =
                    "it speaks TLS to the proxy: the proxy's URL begins with http:// or socks5://";
                return self.close(Bytes::new(), Refusal::Malformed(why.to_owned()));
            }
            Some(_) => {
                let why = "it speaks neither SOCKS nor HTTP/1";
                return self.close(Bytes::new(), Refusal::Malformed(why.to_owned()));
            }
        };
        (self.stage, self.protocol) = (stage, Some(protocol));
        self.step()
    }

    fn close(&mut self, reply: Bytes, refusal: Refusal) -> Step {
        self.stage = Stage::Over;
        self.unread = BytesMut::new();
        Step::Close(reply, refusal)
    }

    /// Returns the client's protocol, once it is known.
    pub fn protocol(&self) -> Option<Protocol> {
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
            Some(Protocol::Socks5) => socks5::reply(socks5::SUCCEEDED, bound),
            Some(Protocol::Socks4) => socks4::reply(socks4::GRANTED),
            Some(Protocol::Connect) => http::established(),
            Some(Protocol::ConnectUdp) => http::switching(),
            Some(Protocol::Http | Protocol::Intercepted) | None => Bytes::new(),
        }
    }

    /// Returns the reply to a request that is refused.
    pub fn refused(&self, why: &Refusal) -> Bytes {
        self.refusal(&Refused::from(why.clone()))
    }

    /// Returns the same with a precise cause.
    pub fn refusal(&self, refused: &Refused) -> Bytes {
        match self.protocol {
            Some(Protocol::Socks5) => socks5::reply(refused.why.socks5(), None),
            Some(Protocol::Socks4) => socks4::reply(socks4::REJECTED),
            Some(Protocol::Connect | Protocol::ConnectUdp | Protocol::Http) => {
                http::refusal(refused)
            }
            Some(Protocol::Intercepted) | None => Bytes::new(),
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
