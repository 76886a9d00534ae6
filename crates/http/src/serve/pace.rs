//! Decides whether a peer reads or sends enough to count as progress.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep};

use super::Limits;

/// The shortest interval between two checks.
const MIN_STEP: Duration = Duration::from_millis(5);

/// The minimum rate that counts as progress, so that a byte now and then does not keep anything
/// open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    bytes: u64,
    within: Duration,
}

impl Rate {
    /// Returns the minimum rate that a server requires.
    pub(super) fn minimum(limits: &Limits) -> Self {
        Self { bytes: limits.progress_bytes.max(1), within: limits.idle_time }
    }

    /// Returns the interval of checks: a peer that fails two of them in a row has failed for the
    /// whole time, and for at most half as long again.
    pub(super) fn step(self) -> Duration {
        (self.within / 2).max(MIN_STEP)
    }
}

/// The result of the last checks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    mark: u64,
    failed_checks: u8,
}

impl Progress {
    /// Checks again, one [`Rate::step`] after the last time, and returns whether too little has
    /// been transferred for too long.
    pub(super) fn has_stalled(&mut self, rate: Rate, moved: u64) -> bool {
        if moved.saturating_sub(self.mark) >= rate.bytes {
            *self = Self { mark: moved, failed_checks: 0 };
        } else {
            self.failed_checks += 1;
        }
        self.failed_checks >= 2
    }

    /// Restarts at this count.
    pub(super) fn restart(&mut self, moved: u64) {
        *self = Self { mark: moved, failed_checks: 0 };
    }
}

/// Watches the progress of one response.
#[derive(Debug)]
pub(super) struct Pace {
    rate: Rate,
    progress: Progress,
    /// Set while the response waits for its peer.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, progress: Progress::default(), timer: None }
    }

    /// Stops the timer: nothing is expected from the peer.
    pub(super) fn pause(&mut self) {
        self.timer = None;
    }

    /// Ready when the peer has received too little for too long. `taken` returns what it has
    /// received so far, and is called only at each check.
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
        let checks: Vec<bool> = (1..=3).map(|check| progress.has_stalled(RATE, check)).collect();
        assert_eq!(checks, [false, true, true]);
    }

    #[test]
    fn enough_bytes_in_time_are_progress() {
        let mut progress = Progress::default();
        assert!((1..1000).all(|check| !progress.has_stalled(RATE, check * 50)));
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
