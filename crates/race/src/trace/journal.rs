//! What a trace follows from, without what follows from it.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::time::Duration;

use super::{Event, Header, MAX_STEPS, SCHEMA_VERSION, Step, Trace};
use crate::io::Input;
use crate::race::{Race, Setup};

/// The setup and the inputs of a race, with the times at which it was asked for outputs.
///
/// A race is determined by these, so the outputs are not kept: [`Journal::trace`] runs the race
/// again when somebody wants to see them. It gives what a [`Recorder`](super::Recorder) beside the
/// race would have written, in a fraction of the memory and at no cost for who never looks.
#[derive(Clone, Debug)]
pub struct Journal {
    setup: Arc<Setup>,
    started_at: Duration,
    calls: Vec<Call>,
    /// The steps of the trace so far.
    steps: usize,
}

/// Room for the calls of a race in which little happens.
const USUAL_CALLS: usize = 12;

/// Calls of the race at one time.
#[derive(Clone, Debug)]
struct Call {
    at: Duration,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// `handle_input`.
    Input(Input),
    /// `poll_output`, so often in a row.
    Polls(u32),
}

impl Journal {
    /// The journal of a race that is made with this setup at this time.
    pub fn new(setup: Arc<Setup>, now: Duration) -> Self {
        let calls = Vec::with_capacity(USUAL_CALLS);
        Self { setup, started_at: now, calls, steps: 0 }
    }

    /// What the race was made with.
    pub const fn setup(&self) -> &Arc<Setup> {
        &self.setup
    }

    /// Notes a call of [`Race::handle_input`].
    pub fn note_input(&mut self, now: Duration, input: &Input) {
        if self.steps < MAX_STEPS {
            self.steps += 1;
            self.calls.push(Call { at: now, kind: Kind::Input(input.clone()) });
        }
    }

    /// Notes that [`Race::poll_output`] was called so often in a row.
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

    /// Lets go of what was reserved for calls to come: the race is over.
    pub fn close(&mut self) {
        self.calls.shrink_to_fit();
    }

    /// The race as it stands now.
    pub fn race(&self) -> Race {
        self.run(|_| {})
    }

    /// The whole race so far.
    pub fn trace(&self) -> Trace {
        let setup = Setup::clone(&self.setup);
        let header = Header { version: SCHEMA_VERSION, started_at: self.started_at, setup };
        let mut steps = Vec::with_capacity(self.steps);
        self.run(|step| steps.push(step));
        Trace { header, steps }
    }

    fn run(&self, mut see: impl FnMut(Step)) -> Race {
        let mut race = Race::new(Arc::clone(&self.setup), self.started_at);
        for Call { at, kind } in &self.calls {
            match kind {
                Kind::Input(input) => {
                    race.handle_input(*at, input.clone());
                    see(Step { at: *at, event: Event::Input(input.clone()) });
                }
                Kind::Polls(count) => {
                    for _ in 0..*count {
                        let output = Box::new(race.poll_output(*at));
                        see(Step { at: *at, event: Event::Output(output) });
                    }
                }
            }
        }
        race
    }
}
