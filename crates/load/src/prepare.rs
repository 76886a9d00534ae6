//! A prepared load: what every worker needs, computed once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use http::Uri;

use super::pool::WorkerPool;
use super::{ConnectionUse, Load, LoadError};

/// A load and the values derived from it.
#[derive(Debug)]
pub(super) struct PreparedLoad {
    pub(super) load: Load,
    /// The absolute URIs that requests can ask for; at least one.
    pub(super) objects: Vec<Uri>,
    /// The ways to connect, one for each outcome; at least one.
    pub(super) choices: Vec<OutcomeChoice>,
    /// Requests that the clients of a closed loop have begun, in all threads.
    pub(super) begun: AtomicU64,
}

/// The ways to connect with one outcome.
#[derive(Debug)]
pub(super) struct OutcomeChoice {
    /// The policy if the memory does not know the outcome.
    pub(super) race: Policy,
    /// The policy if it does; `None` if the outcome is that of the last race.
    pub(super) direct: Option<Policy>,
    /// The policy of the additional handshakes if only transports race.
    pub(super) background: Option<Policy>,
}

impl PreparedLoad {
    pub(super) fn new(load: &Load) -> Result<Self, LoadError> {
        load.check()?;
        let load = load.clone();
        let objects = objects(&load)?;
        let choices = match load.outcomes.is_empty() {
            true => vec![OutcomeChoice { race: load.race.clone(), direct: None, background: None }],
            false => load
                .outcomes
                .iter()
                .map(|outcome| OutcomeChoice::for_outcome(*outcome, &load))
                .collect(),
        };
        Ok(Self { load, objects, choices, begun: AtomicU64::new(0) })
    }

    /// Returns whether a client may begin another request, which counts as begun then.
    pub(super) fn begin(&self) -> bool {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        self.load.extent.requests.is_none_or(|most| number < most)
    }

    /// Returns this worker's share of the clients of a closed loop.
    pub(super) fn clients(&self, worker: usize) -> Option<usize> {
        self.load.clients.map(|clients| share(clients, worker, self.load.threads))
    }

    /// Returns the policy of requests whose outcome is known.
    pub(super) fn direct_policy(&self, transport: Transport) -> Policy {
        direct_policy(transport, &self.load.race)
    }

    /// Returns the maximum number of requests of one worker in flight.
    pub(super) fn most_in_flight(&self) -> usize {
        self.load.max_in_flight.div_ceil(self.load.threads.max(1)).max(1)
    }

    /// Returns the connections that a worker keeps, if any: its share of all.
    pub(super) fn pool(&self, worker: usize) -> Option<Arc<WorkerPool>> {
        let ConnectionUse::Persistent { max_connections, streams } = self.load.connections else {
            return None;
        };
        Some(Arc::new(WorkerPool::new(share(max_connections, worker, self.load.threads), streams)))
    }
}

/// Returns the share of one of several workers.
fn share(all: usize, worker: usize, workers: usize) -> usize {
    let workers = workers.max(1);
    all / workers + usize::from(worker < all % workers)
}

impl OutcomeChoice {
    /// Creates a choice whose outcome wins whenever it can: the others wait for it as long as a
    /// policy allows.
    fn for_outcome(outcome: Transport, load: &Load) -> Self {
        let direct = Some(direct_policy(outcome, &load.race));
        let mut race = load.race.clone();
        race.transports.retain(|transport| *transport != outcome);
        // All of them run to completion, so that each handshake is complete.
        let others = Policy { exhaustive: true, late_switch: false, ..race.clone() };
        let background =
            Some(others).filter(|others| load.races_below_tls && !others.transports.is_empty());
        race.transports.insert(0, outcome);
        race.grace = race.attempt_delay_max;
        Self { race, direct, background }
    }
}

fn direct_policy(transport: Transport, race: &Policy) -> Policy {
    Policy {
        transports: vec![transport],
        simultaneous: false,
        second_tries: 0,
        late_switch: false,
        ignore_memory: true,
        ..race.clone()
    }
}

fn objects(load: &Load) -> Result<Vec<Uri>, LoadError> {
    let absolute = |url: &url::Url| {
        let mut url = url.clone();
        url.set_fragment(None);
        url.as_str().parse::<Uri>().map_err(|cause| LoadError::Object(format!("{url}: {cause}")))
    };
    if load.objects.is_empty() {
        return Ok(vec![absolute(&load.url)?]);
    }
    let object = |path: &String| {
        let joined = load.url.join(path);
        let url = joined.map_err(|cause| LoadError::Object(format!("{path:?}: {cause}")))?;
        match url.origin() == load.url.origin() {
            true => absolute(&url),
            false => Err(LoadError::Object(format!("{path:?} is of another origin"))),
        }
    };
    load.objects.iter().map(object).collect()
}

#[cfg(test)]
mod tests;
