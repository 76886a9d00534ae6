//! A run: hosts and paths, a sender and a receiver, and what comes in the middle.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::lines::{Lines, Passed};
use super::meter::Meter;
use super::{MultipathSetup, Stack, mptcp, sctp, simulated, usrsctp};
use crate::live::{LiveError, trial};
use crate::results::RunResult;

/// How long the first message may take: far longer than any handshake here.
const PATIENCE: Duration = Duration::from_secs(60);
/// How soon a run notices that it is over.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// What sender, receiver and the run itself share.
#[derive(Debug)]
pub(super) struct Course {
    started: Instant,
    meter: Mutex<Meter>,
    over: AtomicBool,
    /// Why one of them could not go on.
    failure: Mutex<Option<String>>,
}

impl Course {
    fn new(setup: &MultipathSetup) -> Self {
        Self {
            started: Instant::now(),
            meter: Mutex::new(Meter::new(setup.warm_up.0, setup.duration.0)),
            over: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// So many bytes have just arrived at the receiving application.
    pub(super) fn arrived(&self, bytes: usize) {
        let now = self.started.elapsed();
        self.meter().take(now, bytes);
    }

    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing more is wanted.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Ends once nothing more is wanted.
    pub(super) async fn until_over(&self) {
        while !self.is_over() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// One of them cannot go on. Once nothing more is wanted, nobody minds.
    pub(super) fn fail(&self, who: &str, cause: &dyn Display) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_over() {
            failure.get_or_insert_with(|| format!("{who}: {cause}"));
        }
    }

    fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Runs this on a runtime of the calling thread until it ends or nothing more is wanted.
pub(super) fn work<E: Display>(
    course: &Course,
    who: &str,
    doing: impl Future<Output = Result<(), E>>,
) {
    let runtime = match trial::runtime() {
        Ok(runtime) => runtime,
        Err(cause) => return course.fail(who, &cause),
    };
    let done = runtime.block_on(async {
        tokio::select! {
            done = doing => done,
            () = course.until_over() => Ok(()),
        }
    });
    if let Err(cause) = done {
        course.fail(who, &cause);
    }
}

/// Sender and receiver at work; both end when it is dropped.
pub(super) struct Pair {
    pub(super) course: Arc<Course>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) programs: Vec<usrsctp::Program>,
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.course.over.store(true, Ordering::Relaxed);
        // The programs first, for threads read what they say until they end.
        self.programs.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// One run.
pub(in crate::live) fn run(
    setup: &MultipathSetup,
    seed: u64,
    stop: &AtomicBool,
) -> Result<RunResult, LiveError> {
    if setup.stack == Stack::Simulator {
        return Ok(simulated::run(setup, seed));
    }
    let lines = Lines::start(setup, seed)?;
    let course = Arc::new(Course::new(setup));
    let mut pair = Pair { course: course.clone(), threads: Vec::new(), programs: Vec::new() };
    match setup.stack {
        Stack::Mptcp | Stack::Tcp => mptcp::start(&lines, setup, &mut pair)?,
        Stack::Usrsctp => {
            usrsctp::receive(&lines, setup, &mut pair)?;
            usrsctp::send(&lines, setup, &mut pair)?;
        }
        Stack::EyasToUsrsctp => {
            usrsctp::receive(&lines, setup, &mut pair)?;
            sctp::send(&lines, setup, &mut pair)?;
        }
        Stack::Eyas | Stack::EyasUdp | Stack::Simulator => {
            sctp::receive(&lines, setup, &mut pair)?;
            sctp::send(&lines, setup, &mut pair)?;
        }
    }
    let [before, after] = watch(setup, &lines, &course, stop)?;
    drop(pair);
    let mut meter = course.meter().clone();
    meter.end();
    Ok(sum_up(setup, &meter, lines.names(), &before, &after))
}

/// Waits until it is over; what went over the paths before and after what was measured.
fn watch(
    setup: &MultipathSetup,
    lines: &Lines,
    course: &Course,
    stop: &AtomicBool,
) -> Result<[Vec<Passed>; 2], LiveError> {
    let until = |moment: Duration| -> Result<(), LiveError> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(LiveError::Stopped);
            }
            if let Some(cause) = course.failure() {
                return Err(LiveError::Inside(cause));
            }
            match moment.checked_sub(course.started.elapsed()) {
                Some(left) if !left.is_zero() => thread::sleep(left.min(LOOK)),
                _ => return Ok(()),
            }
        }
    };
    let begins = loop {
        if let Some(begins) = course.meter().begins() {
            break begins;
        }
        let now = course.started.elapsed();
        if now > PATIENCE {
            let cause = format!("nothing has arrived within {} s", PATIENCE.as_secs());
            return Err(LiveError::Inside(cause));
        }
        until(now + LOOK)?;
    };
    until(begins)?;
    let before = lines.passed()?;
    until(begins + setup.duration.0 / 2)?;
    if let Some(name) = &setup.dies {
        lines.cut(name)?;
    }
    lines.come()?;
    until(begins + setup.duration.0)?;
    Ok([before, lines.passed()?])
}

fn sum_up(
    setup: &MultipathSetup,
    meter: &Meter,
    names: &[String],
    before: &[Passed],
    after: &[Passed],
) -> RunResult {
    let mut run = RunResult::default();
    let mut put = |column: &str, numbers: &[f64]| {
        run.columns.insert(column.to_owned(), numbers.to_vec());
    };
    let rates = meter.rates();
    let ceiling = setup.ceiling();
    put("goodput", &rates);
    put("ceiling", &[ceiling]);
    put("share", &rates.map(|rate| 100.0 * rate / ceiling));
    put("gap", &[meter.longest_gap().as_secs_f64() * 1e3]);
    if setup.dies.is_some() || setup.comes.is_some() {
        put("before", &rates[..rates.len() / 2]);
        put("after", &rates[rates.len() / 4 * 3..]);
    }
    let seconds = setup.duration.0.as_secs_f64();
    let (mut packets, mut dropped) = (0, 0);
    for ((name, before), after) in names.iter().zip(before).zip(after) {
        let megabits = (after.bytes - before.bytes) as f64 * 8.0 / 1e6 / seconds;
        put(&format!("on-{name}"), &[megabits]);
        dropped += after.dropped - before.dropped;
        packets += after.packets - before.packets;
    }
    put("dropped", &[100.0 * dropped as f64 / (packets + dropped).max(1) as f64]);
    run
}
