//! Single byte ranges (RFC 9110 §14).

use http::{HeaderMap, HeaderValue, header};

/// The requested part of a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it: there is no range, or one that this server does not support, which RFC 9110 §14.2
    /// allows it to ignore (several ranges, another unit, a malformed range).
    All,
    /// The bytes from `.0` up to, but excluding, `.1`.
    Part(u64, u64),
    /// The range cannot be satisfied: 416.
    Nothing,
}

/// Parses the `Range` field for a representation of `length` bytes.
pub(super) fn wanted(headers: &HeaderMap, length: u64) -> Wanted {
    let mut fields = headers.get_all(header::RANGE).iter();
    match (fields.next(), fields.next()) {
        (Some(field), None) => parse(field, length).unwrap_or(Wanted::All),
        _ => Wanted::All,
    }
}

fn parse(field: &HeaderValue, length: u64) -> Option<Wanted> {
    let (unit, set) = field.to_str().ok()?.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = set.trim().split_once('-')?;
    if first.is_empty() {
        let suffix = number(last)?;
        return Some(match suffix.min(length) {
            0 => Wanted::Nothing,
            suffix => Wanted::Part(length - suffix, length),
        });
    }
    let first = number(first)?;
    let end = if last.is_empty() { length } else { number(last)?.saturating_add(1) };
    if end <= first && !last.is_empty() {
        return None;
    }
    Some(if first >= length { Wanted::Nothing } else { Wanted::Part(first, end.min(length)) })
}

/// Parses a number that consists only of digits; one that exceeds 64 bits is beyond every
/// representation.
fn number(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(field: &str, length: u64) -> Wanted {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, field.parse().unwrap());
        wanted(&headers, length)
    }

    #[test]
    fn first_and_last_are_inclusive() {
        assert_eq!(of("bytes=0-0", 10), Wanted::Part(0, 1));
        assert_eq!(of("bytes=2-5", 10), Wanted::Part(2, 6));
        assert_eq!(of("bytes=2-", 10), Wanted::Part(2, 10));
        assert_eq!(of("bytes=2-99", 10), Wanted::Part(2, 10));
    }

    #[test]
    fn a_suffix_counts_from_the_end() {
        assert_eq!(of("bytes=-3", 10), Wanted::Part(7, 10));
        assert_eq!(of("bytes=-30", 10), Wanted::Part(0, 10));
        assert_eq!(of("bytes=-0", 10), Wanted::Nothing);
    }

    #[test]
    fn a_range_beyond_the_end_cannot_be_satisfied() {
        assert_eq!(of("bytes=10-", 10), Wanted::Nothing);
        assert_eq!(of("bytes=0-", 0), Wanted::Nothing);
        assert_eq!(of("bytes=99999999999999999999999-", 10), Wanted::Nothing);
    }

    #[test]
    fn anything_but_a_single_range_is_ignored() {
        for field in ["bytes=0-1,3-4", "lines=0-1", "bytes", "bytes=5-2", "bytes=a-", "bytes=+1-2"]
        {
            assert_eq!(of(field, 10), Wanted::All, "{field}");
        }
        assert_eq!(wanted(&HeaderMap::new(), 10), Wanted::All);
    }

    proptest::proptest! {
        #[test]
        fn a_part_is_never_empty_and_never_beyond(
            field in "bytes ?= ?[0-9]{0,22}-[0-9]{0,22}",
            length in 0_u64..100,
        ) {
            if let Wanted::Part(start, end) = of(&field, length) {
                proptest::prop_assert!(start < end && end <= length);
            }
        }
    }
}
