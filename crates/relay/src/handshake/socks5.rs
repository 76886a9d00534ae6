//! SOCKS version 5 (RFC 1928), and its sub-negotiation of name and password (RFC 1929).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{BufMut, Bytes, BytesMut};

use super::{Destination, Protocol, Read, Refusal, Request};
use crate::users::Users;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NAME_AND_PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
/// The field REP of a reply that grants.
pub(super) const SUCCEEDED: u8 = 0;

/// Which message comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Greeting,
    Password,
    Request,
}

pub(super) fn read(
    bytes: &[u8],
    stage: Stage,
    users: Option<&Users>,
    user: &mut Option<String>,
) -> Read {
    let read = match stage {
        Stage::Greeting => greeting(bytes, users.is_some()),
        Stage::Password => password(bytes, users, user),
        Stage::Request => request(bytes),
    };
    read.unwrap_or(Read::Partial)
}

/// `None` as long as the message is not whole.
fn greeting(bytes: &[u8], with_users: bool) -> Option<Read> {
    let count = usize::from(*bytes.get(1)?);
    let methods = bytes.get(2..2 + count)?;
    let (wanted, next) = match with_users {
        true => (NAME_AND_PASSWORD, Stage::Password),
        false => (NO_AUTHENTICATION, Stage::Request),
    };
    Some(match methods.contains(&wanted) {
        true => Read::Next(2 + count, answer([VERSION, wanted]), super::Stage::Socks5(next)),
        false if with_users => Read::Refused(answer([VERSION, NO_METHOD]), Refusal::NoUser),
        false => {
            let why = "it offers no method without authentication, and this proxy asks for none";
            Read::Refused(answer([VERSION, NO_METHOD]), Refusal::Malformed(why.to_owned()))
        }
    })
}

fn password(bytes: &[u8], users: Option<&Users>, user: &mut Option<String>) -> Option<Read> {
    const SUB_NEGOTIATION: u8 = 1;
    if *bytes.first()? != SUB_NEGOTIATION {
        let why = "it does not speak RFC 1929".to_owned();
        return Some(Read::Refused(answer([SUB_NEGOTIATION, 1]), Refusal::Malformed(why)));
    }
    let (name, after) = text(bytes, 1)?;
    let (password, after) = text(bytes, after)?;
    let is_known = users.is_some_and(|users| users.know(name, password));
    if !is_known {
        return Some(Read::Refused(answer([SUB_NEGOTIATION, 1]), Refusal::NoUser));
    }
    *user = Some(String::from_utf8_lossy(name).into_owned());
    let next = super::Stage::Socks5(Stage::Request);
    Some(Read::Next(after, answer([SUB_NEGOTIATION, 0]), next))
}

fn request(bytes: &[u8]) -> Option<Read> {
    let refused = |why: Refusal| Some(Read::Refused(reply(why.socks5(), None), why));
    if *bytes.first()? != VERSION {
        return refused(Refusal::Malformed("its request is not of SOCKS5".to_owned()));
    }
    let command = *bytes.get(1)?;
    let kind = *bytes.get(3)?;
    let (length, destination) = match kind {
        IPV4 => {
            let octets: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            (10, Destination::literal(Ipv4Addr::from(octets).into(), port(bytes, 8)?))
        }
        IPV6 => {
            let octets: [u8; 16] = bytes.get(4..20)?.try_into().ok()?;
            (22, Destination::literal(Ipv6Addr::from(octets).into(), port(bytes, 20)?))
        }
        NAME => {
            let (name, after) = text(bytes, 4)?;
            let port = port(bytes, after)?;
            let destination = match std::str::from_utf8(name) {
                Ok(name) => Destination::parse(name, port),
                Err(_) => Err(Refusal::Malformed("the host is no text".to_owned())),
            };
            (after + 2, destination)
        }
        other => return refused(Refusal::AddressKind(other)),
    };
    if command != CONNECT {
        let why = match command {
            2 => "BIND is not done here".to_owned(),
            3 => "UDP ASSOCIATE is not done here".to_owned(),
            other => format!("SOCKS5 has no command {other}"),
        };
        return refused(Refusal::Unsupported(why));
    }
    match destination {
        Ok(destination) => {
            Some(Read::Request(length, Protocol::Socks5, Request::Connect(destination)))
        }
        Err(why) => refused(why),
    }
}

/// A length in one octet and so many octets, and where they end.
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

/// A reply (RFC 1928 §6), with the address that the proxy uses.
pub(super) fn reply(code: u8, bound: Option<SocketAddr>) -> Bytes {
    let bound = bound.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into());
    let mut reply = BytesMut::with_capacity(22);
    reply.put_slice(&[VERSION, code, 0]);
    match bound.ip() {
        IpAddr::V4(ip) => {
            reply.put_u8(IPV4);
            reply.put_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            reply.put_u8(IPV6);
            reply.put_slice(&ip.octets());
        }
    }
    reply.put_u16(bound.port());
    reply.freeze()
}
