//! Interim responses of a service (RFC 9110 §15.2).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use http::{Response, StatusCode};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The maximum number of interim responses that a service may send before a response.
const MAX_INTERIM: usize = 16;

/// Sends interim responses, such as 103 Early Hints (RFC 8297), before the response itself. It is
/// in the extensions of each request over HTTP/2 or HTTP/3, but not over HTTP/1.1, where many
/// clients mistake an interim response for the final one.
#[derive(Clone, Debug)]
pub struct InterimResponses {
    left: Arc<AtomicUsize>,
    send: UnboundedSender<Response<()>>,
}

impl InterimResponses {
    pub(super) fn new() -> (Self, Interims) {
        let (send, receiver) = unbounded_channel();
        (Self { left: Arc::new(AtomicUsize::new(MAX_INTERIM)), send }, Interims(receiver))
    }

    /// Sends an interim response, unless the response has begun. Returns false if it is not sent:
    /// because its status is not an interim one that a service may send (100 is sent by the server
    /// itself, 101 is not allowed), or because 16 were sent before it.
    pub fn send(&self, interim: Response<()>) -> bool {
        let is_allowed = interim.status().is_informational()
            && interim.status() != StatusCode::CONTINUE
            && interim.status() != StatusCode::SWITCHING_PROTOCOLS;
        let one_less = |left: usize| left.checked_sub(1);
        is_allowed
            && self.left.fetch_update(Relaxed, Relaxed, one_less).is_ok()
            && self.send.send(interim).is_ok()
    }
}

/// The responses from a service, for the protocol's writer.
pub(super) struct Interims(UnboundedReceiver<Response<()>>);

impl Interims {
    /// Returns the next interim response; waits forever if there can be none.
    pub(super) async fn next(&mut self) -> Response<()> {
        match self.0.recv().await {
            Some(interim) => interim,
            None => std::future::pending().await,
        }
    }

    /// Returns the next interim response, if there is one: those sent before the final response
    /// must precede it.
    pub(super) fn try_next(&mut self) -> Option<Response<()>> {
        self.0.try_recv().ok()
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
}
