//! Carries out what the race decides: one loop, one exhaustive match.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eyas_race::candidate::{Candidate, Transport};
use eyas_race::dns::{Answer, Query, Records};
use eyas_race::evidence::{Evidence, Level};
use eyas_race::io::{AttemptId, Input, NetworkChange, NetworkView, Output, RaceFailure};
use eyas_race::target::{Host, Target};
use eyas_race::trace::Recorder;
use tokio::sync::{mpsc, oneshot, watch};

use crate::attempt::{Attempt, Established, Event, Reporter, server_name};
use crate::clock::Clock;
use crate::initiation::{AbortOnDrop, Record};
use crate::preconnection::setup;
use crate::{Connection, Endpoint, Feedback};

/// Events of attempts and answers of DNS that wait for the driver; who is faster waits.
const MAX_HAPPENINGS: usize = 64;
/// Inputs taken in before the race is asked again what to do.
const MAX_BURST: usize = 32;

/// Where the driver hands its results.
pub(crate) struct Outlets {
    pub(crate) usable: Option<oneshot::Sender<Result<Connection, RaceFailure>>>,
    pub(crate) better: mpsc::Sender<Connection>,
    pub(crate) finished: watch::Sender<bool>,
    pub(crate) record: Record,
}

/// What happens to a race from outside.
pub(crate) enum Happening {
    Attempt(AttemptId, Event),
    Answer(Answer),
    Network(Arc<NetworkView>),
    SlotFreed,
    TimeCame,
}

struct Driver {
    endpoint: Endpoint,
    target: Target,
    certificate_host: Host,
    clock: Clock,
    outlets: Outlets,
    /// Attempts under way; dropping one ends it.
    attempts: BTreeMap<AttemptId, AbortOnDrop>,
    queries: Vec<AbortOnDrop>,
    /// What was started, for the memory's sake also after the end.
    candidates: BTreeMap<AttemptId, Candidate>,
    /// Complete, and not handed out.
    complete: BTreeMap<AttemptId, Box<Established>>,
    sender: mpsc::Sender<Happening>,
    max_in_flight: usize,
    slots_told: Option<usize>,
    first_address: Option<Duration>,
}

pub(crate) async fn run(
    endpoint: Endpoint,
    certificate_host: Host,
    clock: Clock,
    outlets: Outlets,
) {
    let mut network = endpoint.network().changes();
    let mut slots = endpoint.limit().freed();
    let (sender, mut happenings) = mpsc::channel(MAX_HAPPENINGS);
    let (target, max_in_flight) = outlets.record.with(|recorder| {
        let setup = recorder.race().setup();
        (setup.target.clone(), setup.policy.max_in_flight)
    });
    let mut driver = Driver {
        target,
        max_in_flight,
        endpoint,
        certificate_host,
        clock,
        outlets,
        attempts: BTreeMap::new(),
        queries: Vec::new(),
        candidates: BTreeMap::new(),
        complete: BTreeMap::new(),
        sender,
        slots_told: None,
        first_address: None,
    };
    driver.complete_setup().await;
    driver.tell_slots();
    while let Some(wait_until) = driver.drain() {
        let is_tight = driver.slots_told.is_some();
        let mut happening = tokio::select! {
            Some(happening) = happenings.recv() => happening,
            Ok(()) = network.changed() => match network.borrow_and_update().clone() {
                Some(view) => Happening::Network(view),
                None => Happening::TimeCame,
            },
            Ok(()) = slots.changed(), if is_tight => Happening::SlotFreed,
            () = until(driver.wake_at(wait_until)) => Happening::TimeCame,
        };
        for _ in 0..MAX_BURST {
            driver.take_in(happening);
            match happenings.try_recv() {
                Ok(next) => happening = next,
                Err(_) => break,
            }
        }
        driver.tell_slots();
    }
    driver.endpoint.memory().settle().await;
    driver.outlets.finished.send_replace(true);
}

/// Waits for that time; for ever without one.
async fn until(time: Option<Instant>) {
    match time {
        // A timer rounds up to the next millisecond: what is due is not slept for.
        Some(time) if time <= Instant::now() => {}
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

impl Driver {
    /// The race was set up with what could be told at a glance.
    async fn complete_setup(&mut self) {
        let network = self.endpoint.network().view().await;
        let (endpoint, now) = (&self.endpoint, self.clock.now());
        self.outlets.record.with(|recorder| {
            let known = recorder.race().setup();
            if known.network != *network {
                let setup = setup(endpoint, &known.target, &known.policy, known.seed, &network);
                *recorder = Recorder::new(setup, now);
            }
        });
    }

    fn wake_at(&self, time: Option<Duration>) -> Option<Instant> {
        time.map(|time| self.clock.instant(time))
    }

    /// Carries out every output. Gives the time to wait for, or `None` once the race is over.
    fn drain(&mut self) -> Option<Option<Duration>> {
        loop {
            let now = self.clock.now();
            match self.outlets.record.with(|recorder| recorder.poll_output(now)) {
                Output::Timeout(time) => return Some(time),
                Output::Finished => return None,
                Output::Query(query) => self.ask(query),
                Output::Start { id, candidate, initial_rtt, background: _ } => {
                    self.start(id, candidate, initial_rtt);
                }
                Output::Close { id, why: _ } => {
                    self.attempts.remove(&id);
                    self.complete.remove(&id);
                }
                Output::Usable(id) => self.hand_out_usable(id),
                Output::Better(id) => self.hand_out_better(id),
                Output::Learn(evidence) => self.learn(evidence),
                Output::Failed(failure) => self.fail(failure),
                other => tracing::error!(?other, "the race wants what this driver cannot do"),
            }
        }
    }

    fn take_in(&mut self, happening: Happening) {
        let input = match happening {
            Happening::TimeCame => Input::Tick,
            // What is free is told before the race is asked.
            Happening::SlotFreed => return,
            Happening::Answer(answer) => {
                self.note_address(&answer);
                Input::Answer(answer)
            }
            Happening::Network(network) => {
                let view = self.endpoint.memory().view(&network.id, &self.target.host);
                let network = (*network).clone();
                Input::NetworkChanged(Box::new(NetworkChange { network, view }))
            }
            // What a closed attempt still had to say is of no interest any more.
            Happening::Attempt(id, _) if !self.attempts.contains_key(&id) => return,
            Happening::Attempt(id, Event::Progress { level, rtt }) => {
                Input::Progress { id, level, rtt }
            }
            Happening::Attempt(id, Event::Failed(failure)) => {
                self.attempts.remove(&id);
                Input::Failed { id, failure }
            }
            Happening::Attempt(id, Event::Ready(established)) => {
                self.attempts.remove(&id);
                let info = &established.info;
                let (alpn, rtt, fell_back) = (info.alpn.clone(), info.rtt, info.fell_back);
                self.complete.insert(id, established);
                Input::Ready { id, alpn, rtt, fell_back }
            }
        };
        self.put_in(input);
    }

    fn put_in(&mut self, input: Input) {
        let now = self.clock.now();
        self.outlets.record.with(|recorder| recorder.handle_input(now, input));
    }

    fn ask(&mut self, query: Query) {
        self.queries.retain(|query| !query.is_finished());
        let (resolver, port) = (self.endpoint.resolver().clone(), self.target.port);
        let sender = self.sender.clone();
        self.queries.push(AbortOnDrop::spawn(async move {
            let answer = resolver.query(&query, port).await;
            // A driver that is gone needs no answer.
            let _ = sender.send(Happening::Answer(answer)).await;
        }));
    }

    fn start(&mut self, id: AttemptId, candidate: Candidate, initial_rtt: Option<Duration>) {
        self.candidates.insert(id, candidate.clone());
        let attempt = Attempt {
            candidate,
            server_name: server_name(&self.certificate_host),
            initial_rtt,
            origin: self.clock.origin(),
            alone: false,
            until_first_byte: self.wins_at() >= Level::FirstByte,
        };
        let reporter = Reporter::new(id, self.sender.clone());
        let endpoint = self.endpoint.clone();
        let task = AbortOnDrop::spawn(async move {
            let slot = endpoint.limit().take().await;
            let event = match attempt.run(endpoint.connector(), &reporter).await {
                Ok(established) => Event::Ready(Box::new(established)),
                Err(failure) => Event::Failed(failure),
            };
            drop(slot);
            reporter.report(event).await;
        });
        self.attempts.insert(id, task);
    }

    fn wins_at(&self) -> Level {
        self.outlets.record.with(|recorder| recorder.race().setup().policy.win_at)
    }

    fn note_address(&mut self, answer: &Answer) {
        if self.first_address.is_none()
            && matches!(&answer.records, Ok(Records::A(_) | Records::Aaaa(_)))
        {
            self.first_address = Some(self.clock.origin().elapsed());
        }
    }

    /// Says how many more attempts may start, once other races have left fewer than this one
    /// may use by its own policy, and from then on at every change.
    fn tell_slots(&mut self) {
        let free = self.endpoint.limit().free();
        let is_tight = self.slots_told.is_some() || free < self.max_in_flight;
        if is_tight && self.slots_told != Some(free) {
            self.slots_told = Some(free);
            self.put_in(Input::Slots(free));
        }
    }

    fn hand_out_usable(&mut self, id: AttemptId) {
        if let (Some(connection), Some(usable)) = (self.connection(id), self.outlets.usable.take())
        {
            // A caller that is gone lets the race go on only to learn.
            let _ = usable.send(Ok(connection));
        }
    }

    fn hand_out_better(&mut self, id: AttemptId) {
        if let Some(connection) = self.connection(id) {
            // A caller that takes none has enough of them, or is gone: then this one is closed.
            let _ = self.outlets.better.try_send(connection);
        }
    }

    fn fail(&mut self, failure: RaceFailure) {
        if let Some(usable) = self.outlets.usable.take() {
            // A caller that is gone need not know.
            let _ = usable.send(Err(failure));
        }
    }

    fn learn(&self, mut evidence: Evidence) {
        evidence.network = self.endpoint.network().settled(&evidence.network);
        self.endpoint.memory().learn_soon(evidence);
    }

    /// The complete attempt as the caller gets it.
    fn connection(&mut self, id: AttemptId) -> Option<Connection> {
        let Established { carrier, mut info, said } = *self.complete.remove(&id)?;
        info.timings.dns = self.first_address;
        self.outlets.record.with(|recorder| {
            if let Some(attempt) = recorder.race().attempt(id) {
                info.from_memory = attempt.from_memory;
                info.reasons.splice(0..0, attempt.reasons.iter().map(ToString::to_string));
            }
        });
        let mut candidate = self.candidates.get(&id)?.clone();
        if info.fell_back {
            candidate.transport = Transport::Tcp;
        }
        Some(Connection::new(carrier, info, self.feedback(candidate), said))
    }

    fn feedback(&self, candidate: Candidate) -> Feedback {
        let endpoint = self.endpoint.clone();
        let (network, host) = self.outlets.record.with(|recorder| {
            let setup = recorder.race().setup();
            (setup.network.id.clone(), setup.target.host.clone())
        });
        Feedback::new(move |level, failure| {
            endpoint.memory().learn_soon(Evidence {
                at: crate::memory_store::now(),
                network: endpoint.network().settled(&network),
                host: host.clone(),
                candidate: candidate.clone(),
                level,
                failure,
                doubt: None,
                rtt: None,
            });
        })
    }
}
