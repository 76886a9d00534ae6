//! Which fields are worth an entry.
//!
//! <https://www.rfc-editor.org/rfc/rfc9204#section-7.1>

use alloc::vec;
use alloc::vec::Vec;

/// The fewest octets of a cookie that is inserted: a shorter one could be guessed.
const MIN_COOKIE: usize = 20;

/// How many fields are remembered.
const RECENT: usize = 64;

/// How the values of a field behave from one message to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    /// They are usually the same.
    Repeats,
    /// They are usually different, or secret.
    Differs,
    /// Nothing is known.
    Unknown,
}

impl Habit {
    pub(super) fn of_field(name: &[u8], value: &[u8]) -> Self {
        if usually_differs(name) || name == b"cookie" && value.len() < MIN_COOKIE {
            Self::Differs
        } else if usually_repeats(name) {
            Self::Repeats
        } else {
            Self::Unknown
        }
    }
}

fn usually_differs(name: &[u8]) -> bool {
    matches!(
        name,
        b"age"
            | b"authorization"
            | b"cf-ray"
            | b"content-digest"
            | b"content-length"
            | b"content-range"
            | b"date"
            | b"etag"
            | b"expires"
            | b"grpc-timeout"
            | b"idempotency-key"
            | b"if-match"
            | b"if-modified-since"
            | b"if-none-match"
            | b"if-range"
            | b"if-unmodified-since"
            | b"last-modified"
            | b"location"
            | b"proxy-authorization"
            | b"range"
            | b"repr-digest"
            | b"request-id"
            | b"retry-after"
            | b"sec-websocket-key"
            | b"server-timing"
            | b"set-cookie"
            | b"traceparent"
            | b"tracestate"
            | b"x-amz-cf-id"
            | b"x-amz-request-id"
            | b"x-amzn-trace-id"
            | b"x-correlation-id"
            | b"x-request-id"
    )
}

fn usually_repeats(name: &[u8]) -> bool {
    let begins = |beginning: &[u8]| name.starts_with(beginning);
    begins(b"sec-ch-")
        || begins(b"sec-fetch-")
        || begins(b"access-control-")
        || begins(b"cross-origin-")
        || matches!(
            name,
            b":authority"
                | b":method"
                | b":protocol"
                | b":scheme"
                | b":status"
                | b"accept"
                | b"accept-encoding"
                | b"accept-language"
                | b"accept-ranges"
                | b"allow"
                | b"alt-svc"
                | b"cache-control"
                | b"content-encoding"
                | b"content-language"
                | b"content-security-policy"
                | b"content-type"
                | b"cookie"
                | b"dnt"
                | b"origin"
                | b"permissions-policy"
                | b"pragma"
                | b"priority"
                | b"referrer-policy"
                | b"server"
                | b"strict-transport-security"
                | b"te"
                | b"timing-allow-origin"
                | b"upgrade-insecure-requests"
                | b"user-agent"
                | b"vary"
                | b"via"
                | b"x-content-type-options"
                | b"x-frame-options"
                | b"x-powered-by"
                | b"x-xss-protection"
        )
}

/// The fields that were seen last and are not in the table, by a hash of each. Empty until the first.
#[derive(Debug, Default)]
pub(super) struct RecentFields(Vec<u32>);

impl RecentFields {
    /// Returns whether a field was seen recently, and remembers it.
    pub(super) fn has_seen(&mut self, name: &[u8], value: &[u8]) -> bool {
        if self.0.is_empty() {
            self.0 = vec![0; RECENT];
        }
        let hash = hash(value, hash(name, 0));
        let seen = (hash >> 32) as u32 | 1;
        match self.0.get_mut(hash as usize % RECENT) {
            Some(place) => core::mem::replace(place, seen) == seen,
            None => false,
        }
    }
}

fn hash(text: &[u8], seed: u64) -> u64 {
    let (words, rest) = text.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|word| u64::from_le_bytes(*word));
    words.fold(seed ^ text.len() as u64, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_seen_the_second_time() {
        let mut recent = RecentFields::default();
        assert!(!recent.has_seen(b"x-a", b"1"));
        assert!(recent.has_seen(b"x-a", b"1"));
        assert!(!recent.has_seen(b"x-a", b"2"));
        assert!(!recent.has_seen(b"x-a1", b""));
        assert!(recent.has_seen(b"x-a", b"1") || recent.has_seen(b"x-a", b"1"));
    }

    #[test]
    fn habits_are_known() {
        let habit = |name: &str, value: &str| Habit::of_field(name.as_bytes(), value.as_bytes());
        assert_eq!(habit("user-agent", "x"), Habit::Repeats);
        assert_eq!(habit("sec-ch-ua-platform", "\"Linux\""), Habit::Repeats);
        assert_eq!(habit("date", "Mon, 21 Oct 2013 20:13:21 GMT"), Habit::Differs);
        assert_eq!(habit(":path", "/a"), Habit::Unknown);
        assert_eq!(habit("cookie", "pin=1234"), Habit::Differs);
        assert_eq!(habit("cookie", "session=0123456789abcdef"), Habit::Repeats);
        assert_eq!(habit("x-anything", "x"), Habit::Unknown);
    }
}
