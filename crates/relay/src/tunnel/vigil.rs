//! Watches for the signs of life of a session, in real time; `liveness` has the rules.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until};

use super::link::Link;
use super::liveness::{Liveness, Signs, Step};
use super::session::Session;

/// How often the signs of life of a session are read while it is doubted.
const READING: Duration = Duration::from_millis(50);
/// How much more time must have passed by the wall clock than by the monotonic one, which stands still while the machine
/// is suspended, to count as a suspension. Corrections of the wall clock are usually smaller.
const SUSPENSION: Duration = Duration::from_secs(10);

/// The signs of life of a session.
#[derive(Debug, Default)]
pub(super) struct Vigil {
    /// Whether anybody asks for them.
    is_kept: AtomicBool,
    liveness: Mutex<Liveness>,
    clocks: Mutex<Clocks>,
    /// Notified when a sign of life is expected from now on, or the session is doubted.
    expecting: Notify,
}

/// The clocks when something was last sent after a pause.
#[derive(Debug)]
struct Clocks {
    wall: SystemTime,
    monotonic: Instant,
}

impl Default for Clocks {
    fn default() -> Self {
        Self { wall: SystemTime::now(), monotonic: Instant::now() }
    }
}

impl Clocks {
    /// Reads them, and returns whether the machine was suspended since the last time.
    fn detect_suspension(&mut self) -> bool {
        let now = Self::default();
        let passed = now.wall.duration_since(self.wall).unwrap_or_default();
        let awake = now.monotonic.saturating_duration_since(self.monotonic);
        *self = now;
        passed.saturating_sub(awake) >= SUSPENSION
    }
}

impl Vigil {
    fn liveness(&self) -> MutexGuard<'_, Liveness> {
        self.liveness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn detect_suspension(&self) -> bool {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner).detect_suspension()
    }
}

impl Link {
    /// Records that something is about to be sent, which must have an effect at the other end.
    pub(super) fn expect_life(&self) {
        let vigil = &self.shared.vigil;
        if !vigil.is_kept.load(Relaxed) {
            return;
        }
        let mut liveness = vigil.liveness();
        let was_expecting = liveness.next_timeout().is_some();
        liveness.handle_sending(self.shared.began.elapsed(), || self.signs());
        if !was_expecting && liveness.next_timeout().is_some() {
            if vigil.detect_suspension() {
                liveness.handle_suspension(|| self.signs());
            }
            vigil.expecting.notify_one();
        }
    }

    /// Sends a PING, which the other end must answer soon.
    pub(super) fn ask(&self) {
        self.with(|session, _| session.ping());
        self.expect_answer();
    }

    /// Records that a PING is sent.
    pub(super) fn expect_answer(&self) {
        let vigil = &self.shared.vigil;
        if vigil.is_kept.load(Relaxed) {
            let signs = self.signs();
            vigil.liveness().handle_question(self.shared.began.elapsed(), signs);
            vigil.expecting.notify_one();
        }
    }

    /// Waits until the session shows no sign of life although it should. Only one task may wait.
    pub(super) async fn doubted(&self) {
        let vigil = &self.shared.vigil;
        vigil.is_kept.store(true, Relaxed);
        loop {
            let (is_doubted, due) = {
                let liveness = vigil.liveness();
                (liveness.is_doubted(), liveness.next_timeout())
            };
            match due {
                _ if is_doubted => return,
                None => vigil.expecting.notified().await,
                Some(due) => tokio::select! {
                    // The time may change.
                    () = vigil.expecting.notified() => {}
                    () = sleep_until(self.shared.began + due) => {
                        if self.read_signs() == Step::Ask {
                            self.ask();
                        }
                    }
                },
            }
        }
    }

    /// Waits until a doubted session shows a sign of life.
    pub(super) async fn trusted(&self) {
        while self.read_signs() != Step::Trust {
            sleep(READING).await;
        }
    }

    /// Returns whether the session should have shown a sign of life, and has not.
    pub(super) fn is_doubted(&self) -> bool {
        self.shared.vigil.liveness().is_doubted()
    }

    fn read_signs(&self) -> Step {
        let signs = self.signs();
        self.shared.vigil.liveness().handle_signs(self.shared.began.elapsed(), signs)
    }

    fn signs(&self) -> Signs {
        let paths = self.paths();
        let (acknowledged, rtt) = paths.map_or((None, None), |paths| paths.acknowledgements());
        Signs { received: self.peek(Session::received), acknowledged, rtt }
    }
}
