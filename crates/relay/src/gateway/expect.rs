//! Who may send a body: a client that waits for `100 Continue` sends once the upstream has said so, and
//! not when this gateway would like to read (RFC 9110 §10.1.1).

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;

const SHUT: u8 = 0;
const OPEN: u8 = 1;
const BARRED: u8 = 2;

/// What a body waits behind.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: AtomicU8,
    waker: AtomicWaker,
}

impl Gate {
    /// A gate that lets everything through.
    pub(super) fn opened() -> Self {
        Self { state: AtomicU8::new(OPEN), waker: AtomicWaker::new() }
    }

    /// Lets the body through.
    pub(super) fn open(&self) {
        let _ = self.state.compare_exchange(SHUT, OPEN, Relaxed, Relaxed);
        self.waker.wake();
    }

    /// Never lets it through, if it has not been so far.
    pub(super) fn bar(&self) {
        let _ = self.state.compare_exchange(SHUT, BARRED, Relaxed, Relaxed);
        self.waker.wake();
    }

    /// Whether the body waits.
    pub(super) fn is_shut(&self) -> bool {
        self.state.load(Relaxed) == SHUT
    }

    /// Ready when it is known whether the body may go through: true if so.
    pub(super) fn poll_open(&self, cx: &mut Context<'_>) -> Poll<bool> {
        match self.state.load(Relaxed) {
            OPEN => return Poll::Ready(true),
            BARRED => return Poll::Ready(false),
            _ => self.waker.register(cx.waker()),
        }
        match self.state.load(Relaxed) {
            OPEN => Poll::Ready(true),
            BARRED => Poll::Ready(false),
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
    async fn waiters_are_notified_once_and_for_all() {
        for lets in [true, false] {
            let gate = Arc::new(Gate::default());
            let waiting = Arc::clone(&gate);
            let waiting = tokio::spawn(async move { poll_fn(|cx| waiting.poll_open(cx)).await });
            tokio::task::yield_now().await;
            assert!(gate.is_shut());
            if lets {
                gate.open()
            } else {
                gate.bar()
            }
            assert_eq!(waiting.await.unwrap(), lets);
            gate.bar();
            gate.open();
            assert_eq!(poll_fn(|cx| gate.poll_open(cx)).await, lets);
        }
    }
}
