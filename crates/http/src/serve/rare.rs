//! What a connection waits for beside its requests: the server's stop, timeouts and the like. They are seldom, so
//! they are not asked about each time that the connection is polled.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;

/// Polls for rare events, only after one of them has woken the task.
#[derive(Debug)]
pub(super) struct RareEvents {
    signal: Arc<Signal>,
    waker: Waker,
}

#[derive(Debug)]
struct Signal {
    is_woken: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, SeqCst);
        self.task.wake();
    }
}

impl RareEvents {
    /// Returns what polls for the first time at once.
    pub(super) fn new() -> Self {
        let signal = Arc::new(Signal { is_woken: AtomicBool::new(true), task: AtomicWaker::new() });
        let waker = Waker::from(Arc::clone(&signal));
        Self { signal, waker }
    }

    /// Polls for the next event with a function that registers for all of them, unless it is ready.
    pub(super) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.signal.task.register(cx.waker());
        if !self.signal.is_woken.load(SeqCst) {
            return Poll::Pending;
        }
        self.signal.is_woken.store(false, SeqCst);
        let polled = poll(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            // Those behind it have not been asked.
            self.signal.is_woken.store(true, SeqCst);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::poll_fn};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn events_are_asked_about_only_when_one_wakes() {
        let (notify, polls) = (Arc::new(Notify::new()), Cell::new(0));
        let mut event = Box::pin(notify.notified());
        let mut rare = RareEvents::new();
        let mut poll = |cx: &mut Context<'_>| {
            rare.poll(cx, |cx| {
                polls.set(polls.get() + 1);
                event.as_mut().poll(cx)
            })
        };
        let cx = &mut Context::from_waker(Waker::noop());
        assert!((0..10).all(|_| poll(cx).is_pending()) && polls.get() == 1);
        let notifying = Arc::clone(&notify);
        tokio::spawn(async move { notifying.notify_one() });
        poll_fn(&mut poll).await;
        assert_eq!(polls.get(), 2);
    }

    #[test]
    fn what_is_ready_behind_another_event_is_found() {
        let mut rare = RareEvents::new();
        let cx = &mut Context::from_waker(Waker::noop());
        assert_eq!(rare.poll(cx, |_| Poll::Ready(1)), Poll::Ready(1));
        assert_eq!(rare.poll(cx, |_| Poll::Ready(2)), Poll::Ready(2));
        assert_eq!(rare.poll(cx, |_| Poll::<u8>::Pending), Poll::Pending);
        assert_eq!(rare.poll(cx, |_| Poll::Ready(3)), Poll::Pending);
    }
}
