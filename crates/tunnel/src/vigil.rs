//! The signs of life of a session, in real time. `liveness` has the rules, and `doubt` applies them.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;

use crate::liveness::SessionLiveness;

/// How much more time must have passed by the wall clock than by the monotonic one, which stands still while the machine
/// is suspended, to count as a suspension. Corrections of the wall clock are usually smaller.
const SUSPENSION: Duration = Duration::from_secs(10);

/// The signs of life of a session.
#[derive(Debug, Default)]
pub(crate) struct SessionVigil {
    /// Whether anybody asks for them.
    pub(crate) is_kept: AtomicBool,
    liveness: Mutex<SessionLiveness>,
    clocks: Mutex<SendClocks>,
    /// Notified when a sign of life is expected from now on, or the session is doubted.
    pub(crate) expecting: Notify,
}

/// The clocks when something was last sent after a pause.
#[derive(Debug)]
struct SendClocks {
    wall: SystemTime,
    monotonic: Instant,
}

impl Default for SendClocks {
    fn default() -> Self {
        Self { wall: SystemTime::now(), monotonic: Instant::now() }
    }
}

impl SendClocks {
    /// Reads them, and returns whether the machine was suspended since the last time.
    fn detect_suspension(&mut self) -> bool {
        let now = Self::default();
        let passed = now.wall.duration_since(self.wall).unwrap_or_default();
        let awake = now.monotonic.saturating_duration_since(self.monotonic);
        *self = now;
        passed.saturating_sub(awake) >= SUSPENSION
    }
}

impl SessionVigil {
    pub(crate) fn liveness(&self) -> MutexGuard<'_, SessionLiveness> {
        self.liveness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn detect_suspension(&self) -> bool {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner).detect_suspension()
    }
}
