//! The limit on informational responses: a peer may send any number of them before the final one
//! (RFC 9110 §15.2), and none of them ends the wait for it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::HeaderMap;
use tokio::sync::Notify;

use super::MAX_HEAD_BYTES;
use crate::{Error, Kind};

/// The maximum number of informational responses read before the final one, over any version.
pub(super) const MAX_INFORMATIONAL: usize = 16;

/// What a header field takes in addition to its name and its value: a colon, a space and a line end.
const FIELD_OVERHEAD: usize = 4;

/// The peer keeps sending informational responses without a final one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooManyInformational {
    /// There were more of them than are allowed.
    #[error("more than {MAX_INFORMATIONAL} informational responses arrived without a final one")]
    Count,
    /// Together they are larger than the head of a response may be.
    #[error(
        "more than {} KiB of informational responses arrived without a final one",
        MAX_HEAD_BYTES / 1024
    )]
    Bytes,
}

impl TooManyInformational {
    /// Checks how many there were, and their size in bytes.
    pub(super) fn check(count: usize, bytes: usize) -> Result<(), Self> {
        match (count > MAX_INFORMATIONAL, bytes > MAX_HEAD_BYTES) {
            (true, _) => Err(Self::Count),
            (false, true) => Err(Self::Bytes),
            (false, false) => Ok(()),
        }
    }
}

impl From<TooManyInformational> for Error {
    fn from(error: TooManyInformational) -> Self {
        Self::new(Kind::Protocol, error.to_string())
    }
}

/// Why no more is read from a peer, once there have been too many. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct InputEnd(Arc<OnceLock<TooManyInformational>>);

impl InputEnd {
    /// Returns why no more is read.
    pub fn get(&self) -> Option<TooManyInformational> {
        self.0.get().copied()
    }
}

/// Counts the informational responses to one request.
#[derive(Debug, Default)]
pub struct InformationalLimit {
    seen: Mutex<Seen>,
    end: InputEnd,
    exceeded: Notify,
}

#[derive(Debug, Default)]
struct Seen {
    count: usize,
    bytes: usize,
}

impl InformationalLimit {
    /// Returns a limit at which the input of a connection ends: its task, which has much to read, notices at once.
    pub fn ending(end: &InputEnd) -> Self {
        Self { end: end.clone(), ..Self::default() }
    }

    /// Counts one with these header fields.
    ///
    /// # Errors
    /// It is one too many.
    pub fn count(&self, headers: &HeaderMap) -> Result<(), TooManyInformational> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            name.as_str().len() + value.len() + FIELD_OVERHEAD
        };
        seen.count = seen.count.saturating_add(1);
        seen.bytes = seen.bytes.saturating_add(headers.iter().map(field).sum());
        TooManyInformational::check(seen.count, seen.bytes).inspect_err(|why| {
            if self.end.0.set(*why).is_ok() {
                self.exceeded.notify_one();
            }
        })
    }

    /// Waits for the response, or until there are too many, however the connection ends then.
    ///
    /// # Errors
    /// There are too many.
    pub async fn apply<T>(
        &self,
        response: impl Future<Output = T>,
    ) -> Result<T, TooManyInformational> {
        let outcome = tokio::select! {
            biased;
            () = self.exceeded.notified() => None,
            outcome = response => Some(outcome),
        };
        // The connection may have ended of it just before this task noticed.
        match (self.end.get(), outcome) {
            (None, Some(outcome)) => Ok(outcome),
            (why, _) => Err(why.unwrap_or(TooManyInformational::Count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt;
    use http::HeaderValue;

    use super::*;

    #[test]
    fn responses_are_limited_in_number_and_in_bytes() {
        let (few, none) = (InformationalLimit::default(), HeaderMap::new());
        for _ in 0..MAX_INFORMATIONAL {
            assert_eq!(few.count(&none), Ok(()));
        }
        assert_eq!(few.apply(pending::<()>()).now_or_never(), None);
        assert_eq!(few.apply(ready(())).now_or_never(), Some(Ok(())));
        assert_eq!(few.count(&none), Err(TooManyInformational::Count));
        let outcome = few.apply(pending::<()>()).now_or_never();
        assert_eq!(outcome, Some(Err(TooManyInformational::Count)));
        // The connection has ended of it.
        assert_eq!(few.apply(ready(())).now_or_never(), outcome);

        let large = InformationalLimit::default();
        let link = HeaderValue::try_from("x".repeat(MAX_HEAD_BYTES / 3)).expect("text");
        let headers = HeaderMap::from_iter([(http::header::LINK, link)]);
        assert_eq!((large.count(&headers), large.count(&headers)), (Ok(()), Ok(())));
        assert_eq!(large.count(&headers), Err(TooManyInformational::Bytes));
        let outcome = large.apply(pending::<()>()).now_or_never();
        assert_eq!(outcome, Some(Err(TooManyInformational::Bytes)));
    }
}
