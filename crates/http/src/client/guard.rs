//! Guards a response's body: its length, idle timeout and total timeout.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, Method, StatusCode,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::{
    task::coop::unconstrained,
    time::{Instant, Sleep},
};
use url::Url;

use crate::{Body, Error, Kind, connection_report::ConnectionReport, pool::UseGuard};

/// Limits on how a body may arrive.
pub(super) struct Limits {
    /// The longest time between two chunks.
    pub(super) idle: Option<Duration>,
    /// The deadline of the whole exchange.
    pub(super) deadline: Option<Instant>,
}

/// A body from the connection, with its invariants checked.
pub(super) struct Guarded {
    inner: Body,
    expected: Option<u64>,
    seen: u64,
    idle: Option<(Duration, Pin<Box<Sleep>>)>,
    deadline: Option<Pin<Box<Sleep>>>,
    url: Url,
    report: Arc<ConnectionReport>,
    /// Dropped at the end, so that the connection counts as idle from then on.
    use_guard: Option<UseGuard>,
    ended: bool,
}

impl Guarded {
    pub(super) fn new(
        inner: Body,
        expected: Option<u64>,
        limits: &Limits,
        (url, report): (Url, Arc<ConnectionReport>),
        use_guard: UseGuard,
    ) -> Self {
        let sleep = |duration| Box::pin(tokio::time::sleep(duration));
        Self {
            inner,
            expected,
            seen: 0,
            idle: limits.idle.map(|idle| (idle, sleep(idle))),
            deadline: limits.deadline.map(|at| Box::pin(tokio::time::sleep_until(at))),
            url,
            report,
            use_guard: Some(use_guard),
            ended: false,
        }
    }

    fn check(
        &mut self,
        frame: Option<Result<Frame<Bytes>, Error>>,
    ) -> Option<Result<Frame<Bytes>, Error>> {
        let verdict = match frame {
            Some(Ok(frame)) => {
                self.seen += frame.data_ref().map_or(0, |data| data.len() as u64);
                match self.expected {
                    Some(expected) if self.seen > expected => Err(self.wrong_length(expected)),
                    _ => return Some(Ok(frame)),
                }
            }
            Some(Err(error)) => {
                self.report.failed_in_body(&error);
                Err(error)
            }
            None => match self.expected {
                Some(expected) if self.seen < expected => Err(self.wrong_length(expected)),
                _ => Ok(()),
            },
        };
        self.end();
        verdict.err().map(|error| Err(self.located(error)))
    }

    fn wrong_length(&self, expected: u64) -> Error {
        let detail = format!("{} bytes were received, but {expected} were announced", self.seen);
        Error::new(Kind::BodyLength, detail)
    }

    /// Returns the error if one of the limits is reached.
    fn poll_limits(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        if let Some(deadline) = &mut self.deadline
            && poll_sleep(deadline, cx).is_ready()
        {
            let detail = format!("{} bytes of the body were received", self.seen);
            return Poll::Ready(Error::new(Kind::TotalTimeout, detail));
        }
        if let Some((idle, sleep)) = &mut self.idle {
            ready!(poll_sleep(sleep, cx));
            let detail = format!("nothing for {idle:?} after {} bytes of the body", self.seen);
            return Poll::Ready(Error::new(Kind::IdleTimeout, detail));
        }
        Poll::Pending
    }

    fn end(&mut self) {
        self.ended = true;
        self.use_guard = None;
        self.inner = Body::empty();
    }

    fn located(&self, error: Error) -> Error {
        error.with_url(&self.url).with_candidate(&*self.report)
    }
}

/// Polls a timer also when a peer that sends without end has used up the task's budget.
fn poll_sleep(sleep: &mut Pin<Box<Sleep>>, cx: &mut Context<'_>) -> Poll<()> {
    pin!(unconstrained(sleep.as_mut())).poll(cx)
}

impl HttpBody for Guarded {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) {
            if let Some((idle, sleep)) = &mut this.idle {
                let next = Instant::now() + *idle;
                sleep.as_mut().reset(next);
            }
            return Poll::Ready(this.check(frame));
        }
        let error = ready!(this.poll_limits(cx));
        this.end();
        Poll::Ready(Some(Err(this.located(error))))
    }

    fn is_end_stream(&self) -> bool {
        // Not before the length has been checked.
        self.ended
            || (self.expected.is_none_or(|length| length == self.seen)
                && self.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match self.expected {
            Some(expected) => SizeHint::with_exact(expected.saturating_sub(self.seen)),
            None => self.inner.size_hint(),
        }
    }
}

/// A body limited to the size that the caller allows, after decoding.
pub(super) struct Bounded {
    inner: Body,
    left: u64,
    limit: u64,
}

impl Bounded {
    pub(super) fn new(inner: Body, limit: u64) -> Self {
        Self { inner, left: limit, limit }
    }
}

impl HttpBody for Bounded {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            let size = frame.data_ref().map_or(0, |data| data.len() as u64);
            let Some(left) = self.left.checked_sub(size) else {
                self.inner = Body::empty();
                let detail = format!("more than {} bytes", self.limit);
                return Poll::Ready(Some(Err(Error::new(Kind::BodyTooLarge, detail))));
            };
            self.left = left;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Returns the expected length of the body, if its head states it and it has a body at all (RFC
/// 9110 §8.6, §6.4.1).
pub(super) fn expected_length(
    method: &Method,
    status: StatusCode,
    headers: &HeaderMap,
) -> Option<u64> {
    if method == Method::HEAD
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
        // RFC 9112 §6.3: it overrides Content-Length.
        || headers.contains_key(TRANSFER_ENCODING)
    {
        return None;
    }
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
