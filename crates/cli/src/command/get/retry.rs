//! When a transfer is tried again: curl's rules.

use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

use crate::failure::FailureKind;
use crate::flags::RetryFlags;

/// The first delay, which doubles each time.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest delay that is not the server's or the user's wish.
const MAX_DELAY: Duration = Duration::from_secs(600);

/// Why a transfer might be tried again.
#[derive(Clone, Copy, Debug)]
pub(super) enum RetryCause {
    /// The server answered this status, and perhaps when to come back.
    Status(StatusCode, Option<Duration>),
    /// There was no complete response.
    Failure(FailureKind),
}

/// The retries of one transfer that are left.
#[derive(Clone, Debug)]
pub(super) struct RetriesLeft {
    left: u32,
    delay: Duration,
    grows: bool,
    max_time: Option<Duration>,
    after_refusals: bool,
    after_all: bool,
}

impl RetriesLeft {
    pub(super) fn new(flags: &RetryFlags) -> Self {
        let fixed = flags.retry_delay.filter(|delay| !delay.is_zero());
        Self {
            left: flags.retry,
            delay: fixed.unwrap_or(FIRST_DELAY),
            grows: fixed.is_none(),
            max_time: flags.retry_max_time.filter(|limit| !limit.is_zero()),
            after_refusals: flags.retry_connrefused,
            after_all: flags.retry_all_errors,
        }
    }

    /// Returns how many are left.
    pub(super) const fn left(&self) -> u32 {
        self.left
    }

    /// Returns how long to wait before the next try, if there is to be one. `elapsed` is the time since the transfer
    /// began.
    pub(super) fn next(&mut self, cause: RetryCause, elapsed: Duration) -> Option<Duration> {
        let asked = match cause {
            RetryCause::Status(status, after) if is_transient(status) => after,
            RetryCause::Status(status, _) if self.after_all && status.as_u16() >= 400 => None,
            RetryCause::Failure(FailureKind::Timeout | FailureKind::Dns) => None,
            RetryCause::Failure(FailureKind::Connect) if self.after_refusals => None,
            RetryCause::Failure(kind) if self.after_all && may_pass(kind) => None,
            _ => return None,
        };
        let delay = asked.filter(|after| !after.is_zero()).unwrap_or(self.delay);
        if self.max_time.is_some_and(|limit| elapsed + delay > limit) {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        if self.grows {
            self.delay = (self.delay * 2).min(MAX_DELAY);
        }
        Some(delay)
    }
}

/// Returns whether a server that answers this is expected to answer otherwise later.
fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// Returns whether a failure can pass by itself, unlike that of a command line.
const fn may_pass(kind: FailureKind) -> bool {
    !matches!(
        kind,
        FailureKind::Usage | FailureKind::Url | FailureKind::BrokenPipe | FailureKind::Identity
    )
}

/// Returns what `Retry-After` says (RFC 9110 §10.2.3): seconds, or a date.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: RetryCause = RetryCause::Status(StatusCode::SERVICE_UNAVAILABLE, None);

    fn seconds(retries: &mut RetriesLeft, cause: RetryCause) -> Option<u64> {
        retries.next(cause, Duration::ZERO).map(|delay| delay.as_secs())
    }

    #[test]
    fn delays_double_until_the_retries_are_used_up() {
        let mut retries = RetriesLeft::new(&RetryFlags { retry: 3, ..RetryFlags::default() });
        let delays = [(); 4].map(|()| seconds(&mut retries, BUSY));
        assert_eq!(delays, [Some(1), Some(2), Some(4), None]);
    }

    #[test]
    fn the_user_and_the_server_choose_the_delay() {
        let delay = Some(Duration::from_secs(5));
        let flags = RetryFlags { retry: 9, retry_delay: delay, ..RetryFlags::default() };
        let mut retries = RetriesLeft::new(&flags);
        assert_eq!(seconds(&mut retries, BUSY), Some(5));
        let asked = RetryCause::Status(StatusCode::TOO_MANY_REQUESTS, Some(Duration::from_secs(7)));
        assert_eq!(seconds(&mut retries, asked), Some(7));
        assert_eq!(seconds(&mut retries, BUSY), Some(5));
        let max_time = Some(Duration::from_secs(6));
        let mut retries = RetriesLeft::new(&RetryFlags { retry_max_time: max_time, ..flags });
        assert_eq!(seconds(&mut retries, asked), None, "it would take too long");
        assert_eq!(seconds(&mut retries, BUSY), Some(5));
        assert_eq!(retries.next(BUSY, Duration::from_secs(5)), None);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let flags = RetryFlags { retry: 9, ..RetryFlags::default() };
        let all = RetryFlags { retry_all_errors: true, ..flags.clone() };
        let refused = RetryFlags { retry_connrefused: true, ..flags.clone() };
        for (cause, usual, with_refused, with_all) in [
            (RetryCause::Failure(FailureKind::Timeout), true, true, true),
            (RetryCause::Failure(FailureKind::Dns), true, true, true),
            (RetryCause::Failure(FailureKind::Connect), false, true, true),
            (RetryCause::Failure(FailureKind::Partial), false, false, true),
            (RetryCause::Failure(FailureKind::Usage), false, false, false),
            (RetryCause::Status(StatusCode::BAD_GATEWAY, None), true, true, true),
            (RetryCause::Status(StatusCode::NOT_FOUND, None), false, false, true),
            (RetryCause::Status(StatusCode::OK, None), false, false, false),
        ] {
            let is_retried =
                |flags: &RetryFlags| seconds(&mut RetriesLeft::new(flags), cause).is_some();
            let found = (is_retried(&flags), is_retried(&refused), is_retried(&all));
            assert_eq!(found, (usual, with_refused, with_all), "{cause:?}");
        }
    }

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (text, seconds) in [
            ("120", Some(120)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
            ("Sun, 06 Nov 1994 08:49:27 GMT", None),
            ("soon", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().expect("a value"))]);
            assert_eq!(retry_after(&headers, now).map(|after| after.as_secs()), seconds, "{text}");
        }
    }
}
