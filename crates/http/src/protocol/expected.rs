//! Checks that a response matches its request.
//!
//! Some responses only make sense for certain requests. Accepting others could mistake a part for
//! the whole content, an empty response for content, or encoded octets for the body.

use http::{
    HeaderMap, Request, StatusCode,
    header::{IF_MODIFIED_SINCE, IF_NONE_MATCH, RANGE, TRANSFER_ENCODING, UPGRADE},
    response,
};

use crate::{Body, Error, Kind};

/// The properties of a request that decide which responses match it.
#[derive(Clone, Copy)]
pub(super) struct Expected {
    is_range: bool,
    is_conditional: bool,
}

impl Expected {
    pub(super) fn from_request(request: &Request<Body>) -> Self {
        let has = |name| request.headers().contains_key(name);
        Self { is_range: has(RANGE), is_conditional: has(IF_NONE_MATCH) || has(IF_MODIFIED_SINCE) }
    }

    /// Rejects the head of a response that does not match the request.
    pub(super) fn check(self, head: &response::Parts) -> Result<(), Error> {
        let reject = |why: String| Err(Error::new(Kind::Protocol, why).with_status(head.status));
        match head.status {
            StatusCode::PARTIAL_CONTENT if !self.is_range => reject(
                "it answered 206 (Partial Content), although no range was requested".to_owned(),
            ),
            StatusCode::NOT_MODIFIED if !self.is_conditional => reject(
                "it answered 304 (Not Modified), although the request was not conditional"
                    .to_owned(),
            ),
            // Whatever follows belongs to another protocol, whether or not that was requested.
            StatusCode::SWITCHING_PROTOCOLS => {
                let protocol = head.headers.get(UPGRADE).map(|name| format!(" to {name:?}"));
                let protocol = protocol.unwrap_or_default();
                reject(format!(
                    "it answered 101 (Switching Protocols){protocol}, although no upgrade was requested"
                ))
            }
            _ if !is_transfer_understood(&head.headers) => {
                let codings = head.headers.get_all(TRANSFER_ENCODING).iter();
                let codings: Vec<_> =
                    codings.map(|coding| String::from_utf8_lossy(coding.as_bytes())).collect();
                reject(format!(
                    "unsupported Transfer-Encoding {:?}: only chunked was offered",
                    codings.join(", ")
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether `chunked` is the only transfer coding (RFC 9112 §7) and the last one, from which
/// hyper sees where the body ends. A request without `TE` allows no other. RFC 2616 defined
/// `identity`, and old servers still send it.
fn is_transfer_understood(headers: &HeaderMap) -> bool {
    let mut codings = Vec::new();
    for value in headers.get_all(TRANSFER_ENCODING) {
        let Ok(value) = value.to_str() else { return false };
        codings.extend(value.split(',').map(str::trim));
    }
    let is_chunked = |coding: &&str| coding.eq_ignore_ascii_case("chunked");
    let chunked = codings.iter().filter(|coding| is_chunked(coding)).count();
    let others = codings.iter().filter(|coding| !is_chunked(coding));
    let are_nothing = others
        .into_iter()
        .all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case("identity"));
    are_nothing && (chunked == 0 || (chunked == 1 && codings.last().is_some_and(is_chunked)))
}
