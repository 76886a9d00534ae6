//! Single byte ranges (RFC 9110 §14).

use http::{HeaderMap, HeaderValue, header};

/// The requested part of a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestedRange {
    /// All of it: there is no range, or one that this server does not support, which RFC 9110 §14.2
    /// allows it to ignore (several ranges, another unit, a malformed range).
    All,
    /// The bytes from `.0` up to, but excluding, `.1`.
    Part(u64, u64),
    /// The range cannot be satisfied: 416.
    Nothing,
}

/// Parses the `Range` field for a representation of `length` bytes.
pub(super) fn requested(headers: &HeaderMap, length: u64) -> RequestedRange {
    let mut fields = headers.get_all(header::RANGE).iter();
    match (fields.next(), fields.next()) {
        (Some(field), None) => parse(field, length).unwrap_or(RequestedRange::All),
        _ => RequestedRange::All,
    }
}

fn parse(field: &HeaderValue, length: u64) -> Option<RequestedRange> {
    let (unit, set) = field.to_str().ok()?.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = set.trim().split_once('-')?;
    if first.is_empty() {
        let suffix = number(last)?;
        return Some(match suffix.min(length) {
            0 => RequestedRange::Nothing,
            suffix => RequestedRange::Part(length - suffix, length),
        });
    }
    let first = number(first)?;
    let end = if last.is_empty() { length } else { number(last)?.saturating_add(1) };
    if end <= first && !last.is_empty() {
        return None;
    }
    Some(if first >= length {
        RequestedRange::Nothing
    } else {
        RequestedRange::Part(first, end.min(length))
    })
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

    fn requested_range(field: &str, length: u64) -> RequestedRange {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, field.parse().unwrap());
        requested(&headers, length)
    }

    #[test]
    fn first_and_last_are_inclusive() {
        assert_eq!(requested_range("bytes=0-0", 10), RequestedRange::Part(0, 1));
        assert_eq!(requested_range("bytes=2-5", 10), RequestedRange::Part(2, 6));
        assert_eq!(requested_range("bytes=2-", 10), RequestedRange::Part(2, 10));
        assert_eq!(requested_range("bytes=2-99", 10), RequestedRange::Part(2, 10));
    }

    #[test]
    fn a_suffix_counts_from_the_end() {
        assert_eq!(requested_range("bytes=-3", 10), RequestedRange::Part(7, 10));
        assert_eq!(requested_range("bytes=-30", 10), RequestedRange::Part(0, 10));
        assert_eq!(requested_range("bytes=-0", 10), RequestedRange::Nothing);
    }

    #[test]
    fn a_range_beyond_the_end_cannot_be_satisfied() {
        assert_eq!(requested_range("bytes=10-", 10), RequestedRange::Nothing);
        assert_eq!(requested_range("bytes=0-", 0), RequestedRange::Nothing);
        assert_eq!(requested_range("bytes=99999999999999999999999-", 10), RequestedRange::Nothing);
    }

    #[test]
    fn anything_but_a_single_range_is_ignored() {
        for field in ["bytes=0-1,3-4", "lines=0-1", "bytes", "bytes=5-2", "bytes=a-", "bytes=+1-2"]
        {
            assert_eq!(requested_range(field, 10), RequestedRange::All, "{field}");
        }
        assert_eq!(requested(&HeaderMap::new(), 10), RequestedRange::All);
    }

    proptest::proptest! {
        #[test]
        fn a_part_is_never_empty_and_never_beyond(
            field in "bytes ?= ?[0-9]{0,22}-[0-9]{0,22}",
            length in 0_u64..100,
        ) {
            if let RequestedRange::Part(start, end) = requested_range(&field, length) {
                proptest::prop_assert!(start < end && end <= length);
            }
        }
    }
}
