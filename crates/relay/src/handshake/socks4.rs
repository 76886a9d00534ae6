//! SOCKS version 4, and 4A, in which the proxy resolves names. Neither has passwords.

use std::net::Ipv4Addr;

use bytes::Bytes;

use super::{Destination, HandshakeProtocol, HandshakeRequest, MessageRead, RequestRefusal};

const CONNECT: u8 = 1;
/// The field CD of a success reply.
pub(super) const GRANTED: u8 = 90;
/// The field CD of a failure reply.
pub(super) const REJECTED: u8 = 91;
/// The limit on the user's name and on the host's, in octets.
const MAX_TEXT: usize = 255;

pub(super) fn read(bytes: &[u8], with_users: bool) -> MessageRead {
    request(bytes, with_users).unwrap_or(MessageRead::Partial)
}

/// Returns `None` as long as the message is incomplete.
fn request(bytes: &[u8], with_users: bool) -> Option<MessageRead> {
    let refused = |why: RequestRefusal| Some(MessageRead::Refused(reply(REJECTED), why));
    let fixed = bytes.get(..8)?;
    let port = u16::from_be_bytes([fixed[2], fixed[3]]);
    let ip = Ipv4Addr::new(fixed[4], fixed[5], fixed[6], fixed[7]);
    let after_user = match text(bytes, 8)? {
        Ok((_, after)) => after,
        Err(why) => return refused(why),
    };
    let names_host = matches!(ip.octets(), [0, 0, 0, host] if host != 0);
    let (destination, length) = if names_host {
        match text(bytes, after_user)? {
            Ok((name, after)) => match std::str::from_utf8(name) {
                Ok(name) => (Destination::parse(name, port), after),
                Err(_) => {
                    (Err(RequestRefusal::Malformed("the host is not text".to_owned())), after)
                }
            },
            Err(why) => return refused(why),
        }
    } else {
        (Destination::literal(ip.into(), port), after_user)
    };
    if with_users {
        return refused(RequestRefusal::NoUser);
    }
    if fixed[1] != CONNECT {
        return refused(RequestRefusal::Unsupported(
            "the only supported SOCKS4 command is CONNECT".to_owned(),
        ));
    }
    match destination {
        Ok(destination) => Some(MessageRead::Request(
            length,
            HandshakeProtocol::Socks4,
            HandshakeRequest::Connect(destination),
        )),
        Err(why) => refused(why),
    }
}

/// Returns the octets before the next zero, and the offset after it.
fn text(bytes: &[u8], from: usize) -> Option<Result<(&[u8], usize), RequestRefusal>> {
    let rest = bytes.get(from..)?;
    let end = rest.iter().take(MAX_TEXT + 1).position(|byte| *byte == 0);
    match end {
        Some(end) => Some(Ok((&rest[..end], from + end + 1))),
        None if rest.len() > MAX_TEXT => Some(Err(RequestRefusal::TooLong)),
        None => None,
    }
}

pub(super) fn reply(code: u8) -> Bytes {
    Bytes::copy_from_slice(&[0, code, 0, 0, 0, 0, 0, 0])
}
