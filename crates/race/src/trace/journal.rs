//! The inputs of a trace, from which its outputs can be reproduced.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::time::Duration;

use super::{MAX_STEPS, SCHEMA_VERSION, Trace, TraceEvent, TraceHeader, TraceStep};
use crate::io::RaceInput;
use crate::race::{Race, RaceSetup};

/// The parameters and inputs of a race, with the times at which it was polled.
///
/// These determine a race completely, so the outputs are not stored: [`RaceJournal::trace`] runs the
/// race again when they are needed. It returns what a [`TraceRecorder`](super::TraceRecorder) would have
/// recorded, in a fraction of the memory and at no cost if it is never called.
#[derive(Clone, Debug)]
pub struct RaceJournal {
    setup: Arc<RaceSetup>,
    started_at: Duration,
    calls: Vec<JournalCall>,
    /// The steps of the trace so far.
    steps: usize,
}

/// The initial capacity, enough for the calls of a simple race.
const USUAL_CALLS: usize = 12;

/// A call of the race, or several in a row.
#[derive(Clone, Debug)]
struct JournalCall {
    at: Duration,
    kind: JournalCallKind,
}

#[derive(Clone, Debug)]
enum JournalCallKind {
    /// `handle_input`.
    Input(RaceInput),
    /// `poll_output`, this many times in a row.
    Polls(u32),
}

impl RaceJournal {
    /// Creates the journal of a race with these parameters, created at this time.
    pub fn new(setup: Arc<RaceSetup>, now: Duration) -> Self {
        let calls = Vec::with_capacity(USUAL_CALLS);
        Self { setup, started_at: now, calls, steps: 0 }
    }

    /// Returns the parameters of the race.
    pub const fn setup(&self) -> &Arc<RaceSetup> {
        &self.setup
    }

    /// Records a call to [`Race::handle_input`].
    pub fn note_input(&mut self, now: Duration, input: &RaceInput) {
        if self.steps < MAX_STEPS {
            self.steps += 1;
            self.calls.push(JournalCall { at: now, kind: JournalCallKind::Input(input.clone()) });
        }
    }

    /// Records that [`Race::poll_output`] was called this many times in a row.
    pub fn note_polls(&mut self, now: Duration, count: u32) {
        let left = u32::try_from(MAX_STEPS - self.steps).unwrap_or(u32::MAX);
        let count = count.min(left);
        if count == 0 {
            return;
        }
        self.steps += count as usize;
        match self.calls.last_mut() {
            Some(JournalCall { at, kind: JournalCallKind::Polls(before) }) if *at == now => {
                *before += count
            }
            _ => self.calls.push(JournalCall { at: now, kind: JournalCallKind::Polls(count) }),
        }
    }

    /// Frees the memory reserved for further calls: the race is over.
    pub fn close(&mut self) {
        self.calls.shrink_to_fit();
    }

    /// Returns the current state of the race.
    pub fn race(&self) -> Race {
        self.run(|_| {})
    }

    /// Returns the trace so far.
    pub fn trace(&self) -> Trace {
        let setup = RaceSetup::clone(&self.setup);
        let header = TraceHeader { version: SCHEMA_VERSION, started_at: self.started_at, setup };
        let mut steps = Vec::with_capacity(self.steps);
        self.run(|step| steps.push(step));
        Trace { header, steps }
    }

    fn run(&self, mut emit: impl FnMut(TraceStep)) -> Race {
        let mut race = Race::new(Arc::clone(&self.setup), self.started_at);
        for JournalCall { at, kind } in &self.calls {
            match kind {
                JournalCallKind::Input(input) => {
                    race.handle_input(*at, input.clone());
                    emit(TraceStep { at: *at, event: TraceEvent::Input(input.clone()) });
                }
                JournalCallKind::Polls(count) => {
                    for _ in 0..*count {
                        let output = Box::new(race.poll_output(*at));
                        emit(TraceStep { at: *at, event: TraceEvent::Output(output) });
                    }
                }
            }
        }
        race
    }
}
