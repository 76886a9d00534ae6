//! Closes connections that have been idle for too long.

use std::time::Duration;

use tokio::time::Instant;

use super::Pool;

/// The least time between two looks.
const MIN_INTERVAL: Duration = Duration::from_millis(50);

/// Starts the task unless it runs; it ends by itself when nothing is left to watch.
pub(super) fn ensure(pool: &Pool) {
    let timeout = pool.0.limits.idle_timeout;
    {
        let mut origins = pool.0.lock();
        if origins.reaper_runs {
            return;
        }
        origins.reaper_runs = true;
    }
    let weak = pool.downgrade();
    let interval = (timeout / 4).max(MIN_INTERVAL);
    pool.spawn(async move {
        loop {
            tokio::time::sleep(interval).await;
            let Some(pool) = weak.upgrade() else { return };
            let Some(deadline) = Instant::now().checked_sub(timeout) else { continue };
            let mut origins = pool.0.lock();
            let (taken, left) = origins.sweep(deadline);
            origins.reaper_runs = left;
            drop(origins);
            drop(taken);
            if !left {
                return;
            }
        }
    });
}
