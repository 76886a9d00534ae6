//! An attempt that runs; dropping it closes its socket.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use eyas_race::candidate::{Security, Transport};
use eyas_race::io::AttemptId;

use crate::abort_on_drop::AbortOnDrop;

/// An attempt that runs.
pub(crate) enum RunningAttempt {
    /// In a task of its own.
    Task { _owner: AbortOnDrop },
    /// In the task of its race.
    Inside(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// Over, which the race has not handled yet.
    Over,
}

impl RunningAttempt {
    /// Runs an attempt over these layers: TCP alone in the task of its race, because it only waits. Cryptography takes
    /// its time, and so may whoever verifies a certificate, while the timers of the race expire.
    pub(crate) fn start(
        layers: (Transport, Security),
        attempt: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        match layers {
            (Transport::Tcp | Transport::Mptcp, Security::None) => Self::Inside(Box::pin(attempt)),
            _ => Self::Task { _owner: AbortOnDrop::spawn(attempt) },
        }
    }
}

/// Lets those attempts proceed that run in the task of the race.
pub(crate) async fn proceed(attempts: &mut BTreeMap<AttemptId, RunningAttempt>) -> Infallible {
    poll_fn(|cx| {
        for attempt in attempts.values_mut() {
            if let RunningAttempt::Inside(inside) = attempt
                && inside.as_mut().poll(cx).is_ready()
            {
                *attempt = RunningAttempt::Over;
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_unencrypted_tcp_runs_in_the_task_of_its_race() {
        for (security, runs_alone) in [(Security::None, false), (Security::Tls, true)] {
            let is_done = Arc::<AtomicBool>::default();
            let done = Arc::clone(&is_done);
            let running = RunningAttempt::start((Transport::Tcp, security), async move {
                sleep(Duration::from_millis(1)).await;
                done.store(true, Relaxed);
            });
            let mut attempts = BTreeMap::from([(AttemptId(0), running)]);
            sleep(Duration::from_millis(9)).await;
            assert_eq!(is_done.load(Relaxed), runs_alone);
            for _ in 0..2 {
                assert!(timeout(Duration::from_millis(9), proceed(&mut attempts)).await.is_err());
            }
            assert!(is_done.load(Relaxed));
        }
    }
}
