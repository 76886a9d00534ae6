//! SOCKS version 5 (RFC 1928), and its sub-negotiation of name and password (RFC 1929).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::{BufMut, Bytes, BytesMut};

use super::{
    AwaitingAuthentication, ClientCredentials, Destination, HandshakeProtocol, HandshakeRequest,
    MessageRead, RequestRefusal,
};

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NAME_AND_PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;
/// The version of the sub-negotiation (RFC 1929 §2).
const SUB_NEGOTIATION: u8 = 1;
const CONNECT: u8 = 1;
const UDP_ASSOCIATE: u8 = 3;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
/// The field REP of a success reply.
pub(super) const SUCCEEDED: u8 = 0;

/// The message that is expected next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Socks5Stage {
    Greeting,
    Password,
    Request,
}

pub(super) fn read(bytes: &[u8], stage: Socks5Stage, requires_user: bool) -> MessageRead {
    let read = match stage {
        Socks5Stage::Greeting => greeting(bytes, requires_user),
        Socks5Stage::Password => password(bytes),
        Socks5Stage::Request => request(bytes),
    };
    read.unwrap_or(MessageRead::Partial)
}

/// Returns `None` as long as the message is incomplete.
fn greeting(bytes: &[u8], with_users: bool) -> Option<MessageRead> {
    let count = usize::from(*bytes.get(1)?);
    let methods = bytes.get(2..2 + count)?;
    let (method, next) = match with_users {
        true => (NAME_AND_PASSWORD, Socks5Stage::Password),
        false => (NO_AUTHENTICATION, Socks5Stage::Request),
    };
    Some(match methods.contains(&method) {
        true => MessageRead::Next(
            2 + count,
            answer([VERSION, method]),
            super::HandshakeStage::Socks5(next),
        ),
        false if with_users => {
            MessageRead::Refused(answer([VERSION, NO_METHOD]), RequestRefusal::NoUser)
        }
        false => {
            let why = "it requires authentication, which this proxy does not have";
            MessageRead::Refused(
                answer([VERSION, NO_METHOD]),
                RequestRefusal::Malformed(why.to_owned()),
            )
        }
    })
}

fn password(bytes: &[u8]) -> Option<MessageRead> {
    if *bytes.first()? != SUB_NEGOTIATION {
        let why = "it does not speak RFC 1929".to_owned();
        return Some(MessageRead::Refused(authenticated(false), RequestRefusal::Malformed(why)));
    }
    let (name, after) = text(bytes, 1)?;
    let (password, after) = text(bytes, after)?;
    let credentials = ClientCredentials { name: name.to_vec(), password: password.to_vec() };
    Some(MessageRead::Authenticate(after, credentials, AwaitingAuthentication::Socks5))
}

/// Returns the answer to a name and a password.
pub(super) fn authenticated(is_user: bool) -> Bytes {
    answer([SUB_NEGOTIATION, u8::from(!is_user)])
}

fn request(bytes: &[u8]) -> Option<MessageRead> {
    let refused = |why: RequestRefusal| Some(MessageRead::Refused(reply(why.socks5(), None), why));
    if *bytes.first()? != VERSION {
        return refused(RequestRefusal::Malformed("its request is not SOCKS5".to_owned()));
    }
    let command = *bytes.get(1)?;
    let (destination, length) = match address(bytes, 3) {
        Ok(address) => address?,
        Err(kind) => return refused(RequestRefusal::AddressKind(kind)),
    };
    match command {
        CONNECT => {}
        UDP_ASSOCIATE => {
            // The address from which the client expects to send. The port comes last.
            let port = Some(port(bytes, length - 2)?).filter(|port| *port != 0);
            return Some(MessageRead::Request(
                length,
                HandshakeProtocol::Socks5,
                HandshakeRequest::Associate { port },
            ));
        }
        2 => return refused(RequestRefusal::Unsupported("BIND is not supported".to_owned())),
        other => {
            return refused(RequestRefusal::Unsupported(format!("SOCKS5 has no command {other}")));
        }
    }
    match destination {
        Ok(destination) => Some(MessageRead::Request(
            length,
            HandshakeProtocol::Socks5,
            HandshakeRequest::Connect(destination),
        )),
        Err(why) => refused(why),
    }
}

/// Reads the address and the port at `at`, beginning with the address type. Returns them with the offset of
/// their end, `None` if they are incomplete, and the type as an error if it is unknown.
pub fn address(bytes: &[u8], at: usize) -> Result<Option<ParsedAddress>, u8> {
    match bytes.get(at) {
        None => Ok(None),
        Some(&IPV4) => Ok(literal::<4>(bytes, at + 1)),
        Some(&IPV6) => Ok(literal::<16>(bytes, at + 1)),
        Some(&NAME) => Ok(named(bytes, at + 1)),
        Some(&other) => Err(other),
    }
}

type ParsedAddress = (Result<Destination, RequestRefusal>, usize);

fn literal<const N: usize>(bytes: &[u8], at: usize) -> Option<ParsedAddress>
where
    IpAddr: From<[u8; N]>,
{
    let octets: [u8; N] = bytes.get(at..at + N)?.try_into().ok()?;
    Some((Destination::literal(octets.into(), port(bytes, at + N)?), at + N + 2))
}

fn named(bytes: &[u8], at: usize) -> Option<ParsedAddress> {
    let (name, after) = text(bytes, at)?;
    let port = port(bytes, after)?;
    let destination = match std::str::from_utf8(name) {
        Ok(name) => Destination::parse(name, port),
        Err(_) => Err(RequestRefusal::Malformed("the host is not text".to_owned())),
    };
    Some((destination, after + 2))
}

/// Reads a length octet followed by that many octets. Returns these and the offset of their end.
fn text(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let end = at + 1 + usize::from(*bytes.get(at)?);
    Some((bytes.get(at + 1..end)?, end))
}

fn port(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn answer(octets: [u8; 2]) -> Bytes {
    Bytes::copy_from_slice(&octets)
}

/// Returns a reply (RFC 1928 §6) with the address that the proxy uses.
pub(super) fn reply(code: u8, bound: Option<SocketAddr>) -> Bytes {
    let mut reply = BytesMut::with_capacity(22);
    reply.put_slice(&[VERSION, code, 0]);
    write_address(&mut reply, bound.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into()));
    reply.freeze()
}

/// Writes an address and a port, beginning with the address type.
pub fn write_address(bytes: &mut BytesMut, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            bytes.put_u8(IPV4);
            bytes.put_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes.put_u8(IPV6);
            bytes.put_slice(&ip.octets());
        }
    }
    bytes.put_u16(address.port());
}

/// Writes a name and a port, beginning with the address type. A name has at most 253 octets.
pub fn write_name(bytes: &mut BytesMut, name: &str, port: u16) {
    let name = &name.as_bytes()[..name.len().min(usize::from(u8::MAX))];
    bytes.put_slice(&[NAME, name.len() as u8]);
    bytes.put_slice(name);
    bytes.put_u16(port);
}
