//! When a body may be sent: a client that waits for `100 Continue` gets it when the upstream sends it, and not
//! when this gateway starts to read (RFC 9110 §10.1.1).

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;

const WAITING: u8 = 0;
const OPEN: u8 = 1;
const CLOSED: u8 = 2;

/// A gate that a body waits for.
#[derive(Debug, Default)]
pub(crate) struct BodyGate {
    state: AtomicU8,
    waker: AtomicWaker,
}

impl BodyGate {
    /// Returns an open gate.
    pub(crate) fn opened() -> Self {
        Self { state: AtomicU8::new(OPEN), waker: AtomicWaker::new() }
    }

    /// Opens the gate, unless it is closed.
    pub(crate) fn open(&self) {
        let _ = self.state.compare_exchange(WAITING, OPEN, Relaxed, Relaxed);
        self.waker.wake();
    }

    /// Closes the gate for good, unless it is open.
    pub(crate) fn close(&self) {
        let _ = self.state.compare_exchange(WAITING, CLOSED, Relaxed, Relaxed);
        self.waker.wake();
    }

    /// Returns whether the body is waiting.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state.load(Relaxed) == WAITING
    }

    /// Waits until the gate is open or closed, and returns whether it is open.
    pub(crate) fn poll_open(&self, cx: &mut Context<'_>) -> Poll<bool> {
        match self.state.load(Relaxed) {
            OPEN => return Poll::Ready(true),
            CLOSED => return Poll::Ready(false),
            _ => self.waker.register(cx.waker()),
        }
        match self.state.load(Relaxed) {
            OPEN => Poll::Ready(true),
            CLOSED => Poll::Ready(false),
            _ => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn the_first_decision_is_final_and_wakes_waiters() {
        for opens in [true, false] {
            let gate = Arc::new(BodyGate::default());
            let waiting = Arc::clone(&gate);
            let waiting = tokio::spawn(async move { poll_fn(|cx| waiting.poll_open(cx)).await });
            tokio::task::yield_now().await;
            assert!(gate.is_waiting());
            if opens {
                gate.open()
            } else {
                gate.close()
            }
            assert_eq!(waiting.await.unwrap(), opens);
            gate.close();
            gate.open();
            assert_eq!(poll_fn(|cx| gate.poll_open(cx)).await, opens);
        }
    }
}
