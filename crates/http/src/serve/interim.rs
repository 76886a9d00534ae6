//! Interim responses of a service (RFC 9110 §15.2).

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures_util::task::AtomicWaker;
use http::{Response, StatusCode};

/// The maximum number of interim responses that a service may send before a response.
const MAX_INTERIM: usize = 16;

/// Sends interim responses, such as 103 Early Hints (RFC 8297), before the response itself. It is
/// in the extensions of each request over HTTP/2 or HTTP/3, but not over HTTP/1.1, where many
/// clients mistake an interim response for the final one.
#[derive(Clone, Debug)]
pub struct InterimResponses(Arc<InterimQueue>);

/// The interim responses to one request. Few requests have any, so that nothing is allocated for them beforehand.
#[derive(Debug)]
struct InterimQueue {
    state: Mutex<QueueState>,
    writer: AtomicWaker,
}

#[derive(Debug)]
struct QueueState {
    responses: VecDeque<Response<()>>,
    /// How many more are accepted.
    left: usize,
}

impl InterimQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InterimResponses {
    pub(super) fn new() -> (Self, Interims) {
        let state = Mutex::new(QueueState { responses: VecDeque::new(), left: MAX_INTERIM });
        let queue = Arc::new(InterimQueue { state, writer: AtomicWaker::new() });
        (Self(Arc::clone(&queue)), Interims(queue))
    }

    /// Sends an interim response, unless the response has begun. Returns false if it is not sent:
    /// because its status is not an interim one that a service may send (100 is sent by the server
    /// itself, 101 is not allowed), or because 16 were sent before it.
    pub fn send(&self, interim: Response<()>) -> bool {
        let is_allowed = interim.status().is_informational()
            && interim.status() != StatusCode::CONTINUE
            && interim.status() != StatusCode::SWITCHING_PROTOCOLS;
        if !is_allowed {
            return false;
        }
        let mut state = self.0.lock();
        let Some(left) = state.left.checked_sub(1) else { return false };
        state.left = left;
        state.responses.push_back(interim);
        drop(state);
        self.0.writer.wake();
        true
    }
}

/// The responses from a service, for the protocol's writer.
pub(super) struct Interims(Arc<InterimQueue>);

impl Interims {
    /// Returns the next interim response; waits forever if there can be none.
    pub(super) async fn next(&mut self) -> Response<()> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Response<()>> {
        self.0.writer.register(cx.waker());
        self.try_next().map_or(Poll::Pending, Poll::Ready)
    }

    /// Returns the next interim response, if there is one: those sent before the final response
    /// must precede it.
    pub(super) fn try_next(&mut self) -> Option<Response<()>> {
        self.0.lock().responses.pop_front()
    }
}

impl Drop for Interims {
    /// The response has begun.
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.left = 0;
        state.responses.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        response
    }

    #[test]
    fn only_a_bounded_number_of_interim_responses_is_sent() {
        let (send, mut receiver) = InterimResponses::new();
        for code in [100, 101, 200, 404] {
            assert!(!send.send(status(code)), "{code}");
        }
        assert_eq!((0..100).filter(|_| send.clone().send(status(103))).count(), MAX_INTERIM);
        assert_eq!(std::iter::from_fn(|| receiver.try_next()).count(), MAX_INTERIM);
    }

    #[tokio::test]
    async fn an_interim_response_reaches_a_writer_that_waits_until_the_response_begins() {
        let (send, mut receiver) = InterimResponses::new();
        let (interim, sent) = tokio::join!(receiver.next(), async { send.send(status(103)) });
        assert!(sent && interim.status() == 103);
        drop(receiver);
        assert!(!send.send(status(103)));
    }
}
