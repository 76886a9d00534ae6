//! The `Date` of responses (RFC 9110 §6.6.1), which is formatted once a second.

use std::{
    cell::RefCell,
    time::{SystemTime, UNIX_EPOCH},
};

use http::HeaderValue;

thread_local! {
    /// The last one of this thread, with its second.
    static LAST: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
}

/// Returns the date of a moment. There is none before 1970 and after 9999.
pub(super) fn field(now: SystemTime) -> Option<HeaderValue> {
    let second = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
    LAST.with_borrow_mut(|last| {
        if let Some((of, date)) = last
            && *of == second
        {
            return Some(date.clone());
        }
        // The year has four digits.
        const YEAR_10000: u64 = 253_402_300_800;
        let date = (second < YEAR_10000).then(|| httpdate::fmt_http_date(now))?;
        let date = HeaderValue::try_from(date).ok()?;
        *last = Some((second, date.clone()));
        Some(date)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_date_is_that_of_its_second() {
        let at = |millis| field(UNIX_EPOCH + Duration::from_millis(millis));
        for (millis, expected) in [
            (784_111_777_000, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_777_999, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_778_000, "Sun, 06 Nov 1994 08:49:38 GMT"),
            (784_111_777_000, "Sun, 06 Nov 1994 08:49:37 GMT"),
        ] {
            assert_eq!(at(millis).expect("a date"), expected, "{millis}");
        }
        assert_eq!(field(UNIX_EPOCH - Duration::from_secs(1)), None);
        assert_eq!(field(UNIX_EPOCH + Duration::from_secs(253_402_300_800)), None);
    }
}
