//! State shared by sender, receiver and the run itself.

use std::fmt::Display;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::meter::PayloadMeter;
use crate::live::trial;
use crate::situation::live::MultipathSetup;

/// How soon a run notices that it is over.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// State shared by sender, receiver and the run itself.
#[derive(Debug)]
pub(super) struct PairState {
    started: Instant,
    meter: Mutex<PayloadMeter>,
    finished: AtomicBool,
    /// Why one of them could not continue.
    failure: Mutex<Option<String>>,
}

impl PairState {
    pub(super) fn new(setup: &MultipathSetup) -> Self {
        Self {
            started: Instant::now(),
            meter: Mutex::new(PayloadMeter::new(setup.warm_up.0, setup.duration.0)),
            finished: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// Returns the time since it began.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Records that bytes have just arrived at the receiving application.
    pub(super) fn arrived(&self, bytes: usize) {
        self.meter().record(self.elapsed(), bytes);
    }

    /// Records that bytes have just arrived at the sender.
    pub(super) fn arrived_back(&self, bytes: usize) {
        self.meter().record_back(self.elapsed(), bytes);
    }

    /// Records that the keystroke that fell at this time has just arrived.
    pub(super) fn keystroke_arrived(&self, fell: Duration) {
        self.meter().record_keystroke(self.elapsed(), fell);
    }

    pub(super) fn meter(&self) -> MutexGuard<'_, PayloadMeter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the measurement is over.
    pub(super) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }

    /// Waits until the measurement is over.
    pub(super) async fn until_finished(&self) {
        while !self.is_finished() {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Records that one of them cannot continue. Ignored once the measurement is over.
    pub(super) fn fail(&self, role: &str, cause: &dyn Display) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_finished() {
            failure.get_or_insert_with(|| format!("{role}: {cause}"));
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Runs this on a runtime of the calling thread until it ends or the measurement is over.
pub(super) fn run_until_finished<E: Display>(
    shared: &PairState,
    role: &str,
    task: impl Future<Output = Result<(), E>>,
) {
    let runtime = match trial::runtime() {
        Ok(runtime) => runtime,
        Err(cause) => return shared.fail(role, &cause),
    };
    let done = runtime.block_on(async {
        tokio::select! {
            done = task => done,
            () = shared.until_finished() => Ok(()),
        }
    });
    if let Err(cause) = done {
        shared.fail(role, &cause);
    }
}

/// A running sender and receiver; both end when this is dropped.
pub(super) struct RunningPair {
    pub(super) shared: Arc<PairState>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) programs: Vec<HostProgram>,
}

impl Drop for RunningPair {
    fn drop(&mut self) {
        self.shared.finished.store(true, Ordering::Relaxed);
        // The programs first, because threads read their output until they end.
        self.programs.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A program on one of the hosts; killed when this is dropped.
#[derive(Debug)]
pub(super) struct HostProgram(pub(super) Child);

impl Drop for HostProgram {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
