//! Closes connections that have been idle for too long.

use std::time::Duration;

use tokio::time::Instant;

use super::Pool;

/// The shortest interval between two checks.
const MIN_INTERVAL: Duration = Duration::from_millis(50);

/// Starts the task unless it is running; it ends when no connections are left to watch.
pub(super) fn ensure(pool: &Pool) {
    let timeout = pool.0.limits.idle_timeout;
    {
        let mut origins = pool.0.lock();
        if origins.is_reaper_running {
            return;
        }
        origins.is_reaper_running = true;
    }
    let weak = pool.downgrade();
    let interval = (timeout / 4).max(MIN_INTERVAL);
    pool.spawn(async move {
        loop {
            tokio::time::sleep(interval).await;
            let Some(pool) = weak.upgrade() else { return };
            let Some(deadline) = Instant::now().checked_sub(timeout) else { continue };
            let mut origins = pool.0.lock();
            let (removed, left) = origins.sweep(deadline);
            origins.is_reaper_running = left;
            drop(origins);
            drop(removed);
            if !left {
                return;
            }
        }
    });
}
