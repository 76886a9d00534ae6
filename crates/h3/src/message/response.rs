//! The head of a response (RFC 9114 §4.3.2, §4.5).

use super::Content;
use super::fault::{MessageFault, PseudoField};
use super::fields::FieldRules;

/// What of the request decides about the content of its response (RFC 9110 §6.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RequestMethod {
    /// HEAD: no content.
    Head,
    /// CONNECT, also the extended one: a response with status 2xx opens a tunnel.
    Connect,
    /// Any other.
    #[default]
    Other,
}

impl RequestMethod {
    /// Returns the kind of a method by its name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Self {
        match name {
            b"HEAD" => Self::Head,
            b"CONNECT" => Self::Connect,
            _ => Self::Other,
        }
    }
}

/// The head of a well-formed response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// `:status`, from 100 to 999 without 101.
    pub status: u16,
    /// What follows the head.
    pub content: Content,
}

/// Checks the fields of a response's head: an interim or the final one.
///
/// # Errors
/// The first rule that they break.
pub fn check_response<'a>(
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    method: RequestMethod,
) -> Result<ResponseHead, MessageFault> {
    let mut status = None;
    let mut rules = FieldRules::default();
    let mut may_be_pseudo = true;
    for (name, value) in fields {
        if name.first() != Some(&b':') {
            may_be_pseudo = false;
            rules.check(name, value)?;
            continue;
        }
        if !may_be_pseudo {
            return Err(MessageFault::PseudoFieldAfterFields);
        }
        match PseudoField::from_name(name).ok_or(MessageFault::PseudoFieldUnknown)? {
            PseudoField::Status if status.is_some() => {
                return Err(MessageFault::PseudoFieldRepeated(PseudoField::Status));
            }
            PseudoField::Status => status = Some(parse_status(value)?),
            other => return Err(MessageFault::PseudoFieldOfOtherKind(other)),
        }
    }
    let status = status.ok_or(MessageFault::PseudoFieldMissing(PseudoField::Status))?;
    Ok(ResponseHead { status, content: content(status, method, rules.content_length) })
}

fn parse_status(value: &[u8]) -> Result<u16, MessageFault> {
    let &[b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] = value else {
        return Err(MessageFault::StatusInvalid);
    };
    match value.iter().fold(0, |status, &digit| status * 10 + u16::from(digit - b'0')) {
        101 => Err(MessageFault::SwitchingProtocols),
        status => Ok(status),
    }
}

fn content(status: u16, method: RequestMethod, length: Option<u64>) -> Content {
    match (status, method) {
        (100..=199, _) => Content::Interim,
        // Content-Length is ignored (RFC 9110 §9.3.6).
        (200..=299, RequestMethod::Connect) => Content::Tunnel,
        (204 | 304, _) | (_, RequestMethod::Head) => Content::Empty,
        _ => length.map_or(Content::Any, Content::Length),
    }
}
