//! Going on with an incomplete body (`-C`): what is asked for, and what becomes of the response.

use http::header::{CONTENT_RANGE, ETAG, LAST_MODIFIED};
use http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};

use crate::output::{ExistingPart, RepresentationId};

/// What a response to a request for the rest of a body means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestOfBody {
    /// Its body is the rest.
    Follows,
    /// There is none: everything is there.
    Nothing,
    /// Its body is the whole, and takes the place of what is there.
    Whole,
    /// What is there is part of something else, so the whole has to be asked for.
    AskForWhole,
    /// The server does not continue bodies.
    Refused,
}

/// Returns what the response means for what is there already. `identity` is that of the response's representation.
///
/// A file of the user is never given up, as in curl; a part that eyas has kept is its own.
pub(super) fn rest(
    beginning: ExistingPart,
    offset: u64,
    (status, headers): (StatusCode, &HeaderMap),
    identity: Option<RepresentationId>,
) -> RestOfBody {
    let own = match beginning {
        ExistingPart::Part { identity, .. } => Some(identity),
        _ => None,
    };
    match (status, own) {
        (_, None) if offset == 0 => RestOfBody::Follows,
        (StatusCode::PARTIAL_CONTENT, own) if first_byte(headers) == Some(offset) => match own {
            Some(_) if own != identity => RestOfBody::AskForWhole,
            _ => RestOfBody::Follows,
        },
        (StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE, Some(_)) => {
            RestOfBody::AskForWhole
        }
        (StatusCode::RANGE_NOT_SATISFIABLE, None) => RestOfBody::Nothing,
        (status, Some(_)) if status.is_success() => RestOfBody::Whole,
        _ => RestOfBody::Refused,
    }
}

/// Returns the offset of the first byte in `Content-Range` (RFC 9110 §14.4).
fn first_byte(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    text.trim().strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}

/// Returns the length of the whole: of a body that is not a part, or in `Content-Range`.
fn whole_length(status: StatusCode, headers: &HeaderMap, length: Option<u64>) -> Option<u64> {
    match status {
        StatusCode::PARTIAL_CONTENT => {
            headers.get(CONTENT_RANGE)?.to_str().ok()?.rsplit('/').next()?.trim().parse().ok()
        }
        _ => length,
    }
}

/// Returns what identifies the representation of a response, if parts of it may be put together: a strong validator
/// (RFC 9110 §8.8.1), or the time of its last change with its length. Without either nothing tells a changed
/// representation of the same length from the one that was begun (RFC 9110 §15.3.7.3).
pub(super) fn identity(
    url: &str,
    (status, headers): (StatusCode, &HeaderMap),
    length: Option<u64>,
) -> Option<RepresentationId> {
    if !matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
        return None;
    }
    let whole = whole_length(status, headers, length)?;
    let etag = headers.get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/"));
    let validator = etag.or_else(|| headers.get(LAST_MODIFIED))?.as_bytes();
    let mut digest = Sha256::new();
    for part in [url.as_bytes(), validator, &whole.to_be_bytes()] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let first = digest.finalize();
    first.first_chunk().map(|bytes: &[u8; 8]| RepresentationId(u64::from_be_bytes(*bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (name.parse().expect("a name"), value.parse().expect("a value"))
        };
        fields.iter().map(field).collect()
    }

    const PART: ExistingPart = ExistingPart::Part { length: 4, identity: RepresentationId(1) };
    const FILE: ExistingPart = ExistingPart::File { length: 4 };

    #[test]
    fn what_follows_depends_on_what_is_there() {
        let from = |range| headers(&[("content-range", range)]);
        let (same, other) = (Some(RepresentationId(1)), Some(RepresentationId(2)));
        for (beginning, status, range, identity, expected) in [
            (ExistingPart::Nothing, 200, "", same, RestOfBody::Follows),
            (ExistingPart::Nothing, 404, "", None, RestOfBody::Follows),
            (PART, 206, "bytes 4-9/10", same, RestOfBody::Follows),
            (PART, 206, "bytes 4-9/10", other, RestOfBody::AskForWhole),
            (PART, 206, "bytes 4-9/10", None, RestOfBody::AskForWhole),
            (PART, 206, "bytes 3-9/10", same, RestOfBody::AskForWhole),
            (PART, 416, "bytes */4", None, RestOfBody::AskForWhole),
            (PART, 200, "", other, RestOfBody::Whole),
            (PART, 404, "", None, RestOfBody::Refused),
            (FILE, 206, "bytes 4-9/10", other, RestOfBody::Follows),
            (FILE, 206, "bytes 3-9/10", other, RestOfBody::Refused),
            (FILE, 416, "bytes */4", None, RestOfBody::Nothing),
            (FILE, 200, "", other, RestOfBody::Refused),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            let found = rest(beginning, beginning.length(), (status, &from(range)), identity);
            assert_eq!(found, expected, "{beginning:?} {status} {range}");
        }
    }

    #[test]
    fn a_representation_is_the_same_whole_or_in_part() {
        let identity = |status: u16, fields, length| {
            let status = StatusCode::from_u16(status).expect("a status");
            identity("https://a.test/b", (status, &headers(fields)), length)
        };
        let whole = identity(200, &[("etag", "\"x\"")], Some(10));
        let rest = &[("etag", "\"x\""), ("content-range", "bytes 4-9/10")];
        assert!(whole.is_some());
        assert_eq!(identity(206, rest, Some(6)), whole);
        assert_ne!(identity(200, &[("etag", "\"y\"")], Some(10)), whole);
        assert_eq!(identity(200, &[("etag", "W/\"x\"")], Some(10)), None);
        assert_eq!(identity(200, &[], Some(10)), None);
        let with_time = &[("etag", "W/\"x\""), ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")];
        assert!(identity(200, with_time, Some(10)).is_some());
        assert_ne!(identity(200, &[("etag", "\"x\"")], Some(11)), whole);
        assert_eq!(identity(200, &[("etag", "\"x\"")], None), None);
        assert_eq!(identity(404, &[("etag", "\"x\"")], Some(10)), None);
    }
}
