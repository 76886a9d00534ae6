//! The inputs of a trace, from which its outputs can be reproduced.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::time::Duration;

use super::{Event, Header, MAX_STEPS, SCHEMA_VERSION, Step, Trace};
use crate::io::Input;
use crate::race::{Race, Setup};

/// The parameters and inputs of a race, with the times at which it was polled.
///
/// These determine a race completely, so the outputs are not stored: [`Journal::trace`] runs the
/// race again when they are needed. It returns what a [`Recorder`](super::Recorder) would have
/// recorded, in a fraction of the memory and at no cost if it is never called.
#[derive(Clone, Debug)]
pub struct Journal {
    setup: Arc<Setup>,
    started_at: Duration,
    calls: Vec<Call>,
    /// The steps of the trace so far.
    steps: usize,
}

/// The initial capacity, enough for the calls of a simple race.
const USUAL_CALLS: usize = 12;

/// A call of the race, or several in a row.
#[derive(Clone, Debug)]
struct Call {
    at: Duration,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// `handle_input`.
    Input(Input),
    /// `poll_output`, this many times in a row.
    Polls(u32),
}

impl Journal {
    /// Creates the journal of a race with these parameters, created at this time.
    pub fn new(setup: Arc<Setup>, now: Duration) -> Self {
        let calls = Vec::with_capacity(USUAL_CALLS);
        Self { setup, started_at: now, calls, steps: 0 }
    }

    /// Returns the parameters of the race.
    pub const fn setup(&self) -> &Arc<Setup> {
        &self.setup
    }

    /// Records a call to [`Race::handle_input`].
    pub fn note_input(&mut self, now: Duration, input: &Input) {
        if self.steps < MAX_STEPS {
            self.steps += 1;
            self.calls.push(Call { at: now, kind: Kind::Input(input.clone()) });
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
            Some(Call { at, kind: Kind::Polls(before) }) if *at == now => *before += count,
            _ => self.calls.push(Call { at: now, kind: Kind::Polls(count) }),
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
        let setup = Setup::clone(&self.setup);
        let header = Header { version: SCHEMA_VERSION, started_at: self.started_at, setup };
        let mut steps = Vec::with_capacity(self.steps);
        self.run(|step| steps.push(step));
        Trace { header, steps }
    }

    fn run(&self, mut emit: impl FnMut(Step)) -> Race {
        let mut race = Race::new(Arc::clone(&self.setup), self.started_at);
        for Call { at, kind } in &self.calls {
            match kind {
                Kind::Input(input) => {
                    race.handle_input(*at, input.clone());
                    emit(Step { at: *at, event: Event::Input(input.clone()) });
                }
                Kind::Polls(count) => {
                    for _ in 0..*count {
                        let output = Box::new(race.poll_output(*at));
                        emit(Step { at: *at, event: Event::Output(output) });
                    }
                }
            }
        }
        race
    }
}
