//! Decides whether what a peer reads or sends amounts to progress.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep};

use super::Limits;

/// The watch looks no more often than this.
const SHORTEST_STEP: Duration = Duration::from_millis(5);

/// What counts as going on: so many bytes in so much time. Less is no progress, so that a byte now
/// and then holds nothing open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    bytes: u64,
    within: Duration,
}

impl Rate {
    /// Returns the minimum pace that a server requires.
    pub(super) fn least(limits: &Limits) -> Self {
        Self { bytes: limits.progress_bytes.max(1), within: limits.idle_time }
    }

    /// Returns the interval of checks: a peer that fails two of them in a row has failed for the
    /// whole time, and for at most half as long again.
    pub(super) fn step(self) -> Duration {
        (self.within / 2).max(SHORTEST_STEP)
    }
}

/// What was seen at the last looks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    mark: u64,
    calm: u8,
}

impl Progress {
    /// Looks once more, a [`Rate::step`] after the last time: whether too little has moved for too long.
    pub(super) fn has_stalled(&mut self, rate: Rate, moved: u64) -> bool {
        if moved.saturating_sub(self.mark) >= rate.bytes {
            *self = Self { mark: moved, calm: 0 };
        } else {
            self.calm += 1;
        }
        self.calm >= 2
    }

    /// Restarts at this count.
    pub(super) fn restart(&mut self, moved: u64) {
        *self = Self { mark: moved, calm: 0 };
    }
}

/// The watch over one response.
#[derive(Debug)]
pub(super) struct Pace {
    rate: Rate,
    progress: Progress,
    /// Set once the response has had to wait for its peer.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, progress: Progress::default(), timer: None }
    }

    /// Restarts: the peer is no longer waited for.
    pub(super) fn rest(&mut self) {
        self.timer = None;
    }

    /// Ready when the peer has received too little for too long. What it has received so far is
    /// queried only now and then.
    pub(super) fn poll_stalled(
        &mut self,
        cx: &mut Context<'_>,
        taken: impl Fn() -> u64,
    ) -> Poll<()> {
        let step = self.rate.step();
        let timer = self.timer.get_or_insert_with(|| {
            self.progress.restart(taken());
            Box::pin(tokio::time::sleep(step))
        });
        loop {
            ready!(timer.as_mut().poll(cx));
            if self.progress.has_stalled(self.rate, taken()) {
                return Poll::Ready(());
            }
            timer.as_mut().reset(Instant::now() + step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { bytes: 100, within: Duration::from_secs(60) };

    #[test]
    fn a_trickle_of_bytes_is_not_progress() {
        let mut progress = Progress::default();
        let looks: Vec<bool> = (1..=3).map(|look| progress.has_stalled(RATE, look)).collect();
        assert_eq!(looks, [false, true, true]);
    }

    #[test]
    fn enough_bytes_in_time_are_progress() {
        let mut progress = Progress::default();
        assert!((1..1000).all(|look| !progress.has_stalled(RATE, look * 50)));
        assert!(progress.has_stalled(RATE, 999 * 50));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_response_is_reported_after_the_limit_and_half_of_it_at_most() {
        let mut pace = Pace::new(RATE);
        let begun = Instant::now();
        std::future::poll_fn(|cx| pace.poll_stalled(cx, || 7)).await;
        let took = begun.elapsed();
        assert!((RATE.within..=RATE.within * 3 / 2).contains(&took), "{took:?}");
    }
}
