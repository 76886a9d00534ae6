//! Checks that a response matches its request.
//!
//! Some responses only make sense for certain requests. Another client would take a part for the
//! whole, nothing for something, or encoded octets for the body.

use http::{
    HeaderMap, Request, StatusCode,
    header::{IF_MODIFIED_SINCE, IF_NONE_MATCH, RANGE, TRANSFER_ENCODING, UPGRADE},
    response,
};

use crate::{Body, Error, Kind};

/// What of a request decides which responses answer it.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    part: bool,
    news: bool,
}

impl Asked {
    pub(super) fn of(request: &Request<Body>) -> Self {
        let has = |name| request.headers().contains_key(name);
        Self { part: has(RANGE), news: has(IF_NONE_MATCH) || has(IF_MODIFIED_SINCE) }
    }

    /// Refuses the head of a response to something else.
    pub(super) fn check(self, head: &response::Parts) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::new(Kind::Protocol, why));
        match head.status {
            StatusCode::PARTIAL_CONTENT if !self.part => {
                refuse("206, a part of the content, though no part was asked for".to_owned())
            }
            StatusCode::NOT_MODIFIED if !self.news => {
                refuse("304, nothing new, though nothing is known here".to_owned())
            }
            // What follows is another protocol's, whether it was wished for or not.
            StatusCode::SWITCHING_PROTOCOLS => {
                let other = head.headers.get(UPGRADE).map(|name| format!(" to {name:?}"));
                let other = other.unwrap_or_default();
                refuse(format!("101, it switches protocols{other}, and HTTP alone is spoken here"))
            }
            _ if !is_transfer_understood(&head.headers) => {
                let codings: Vec<_> = head.headers.get_all(TRANSFER_ENCODING).iter().collect();
                refuse(format!("Transfer-Encoding {codings:?}, and chunked alone was on offer"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns whether `chunked` is the only transfer coding (RFC 9112 §7). A request without `TE`
/// allows no other.
fn is_transfer_understood(headers: &HeaderMap) -> bool {
    let mut codings = Vec::new();
    for value in headers.get_all(TRANSFER_ENCODING) {
        let Ok(value) = value.to_str() else { return false };
        codings.extend(value.split(',').map(str::trim).filter(|coding| !coding.is_empty()));
    }
    match codings[..] {
        [] => true,
        // RFC 2616 knew `identity`, and old servers still say it.
        [coding] => ["chunked", "identity"].iter().any(|one| coding.eq_ignore_ascii_case(one)),
        _ => false,
    }
}
