//! Executes the decisions of a race: one loop around one exhaustive match.
//!
//! The race decides what to try and when; nothing here does. Each attempt is a future that owns its
//! socket, so dropping it closes that. A race is determined by its setup and its inputs, so
//! only these are kept, as a *journal*; its trace is made on demand, by running the race again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use eyas_race::candidate::{Candidate, Transport};
use eyas_race::dns::{DnsAnswer, DnsQuery, DnsRecords};
use eyas_race::evidence::{Evidence, EvidenceLevel, FailureCause};
use eyas_race::io::{AttemptId, NetworkChange, NetworkView, RaceFailure, RaceInput, RaceOutput};
use eyas_race::race::{Race, RaceAttempt, RaceSetup};
use eyas_race::trace::RaceJournal;
use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot, watch};

use crate::abort_on_drop::AbortOnDrop;
use crate::attempt::event::{AttemptEvent, EstablishedTransport};
use crate::attempt::opening::RaceOpening;
use crate::attempt::{AttemptReporter, CandidateAttempt, server_name};
use crate::clock::RaceClock;
use crate::driver_event::DriverEvent;
use crate::ech::EchAttempt;
use crate::events;
use crate::memory_store::ObservedOutcome;
use crate::preconnection::{AllowedAddresses, PeerParameters};
use crate::race_counts::EndpointTally;
use crate::running_attempt::{self, RunningAttempt};
use crate::shared_journal::SharedJournal;
use crate::{Connection, ConnectionFeedback, Endpoint, Resolver};

/// The maximum number of events and DNS answers that wait for the driver; beyond it, senders wait.
const MAX_EVENTS: usize = 64;
/// The maximum number of inputs processed before the race is polled again.
const MAX_BURST: usize = 32;

/// Where the driver sends its results.
pub(crate) struct ResultChannels {
    pub(crate) usable: Option<oneshot::Sender<Result<Connection, RaceFailure>>>,
    /// Dropped when the race is over and everything has been learnt.
    pub(crate) better: mpsc::Sender<Box<Connection>>,
    pub(crate) record: SharedJournal,
}

/// The parameters of a race's attempts that the race itself does not decide.
pub(crate) struct AttemptOptions {
    pub(crate) peer: PeerParameters,
    /// What they send first, if the race runs until a peer has sent something.
    pub(crate) opening: Option<RaceOpening>,
    pub(crate) allowed: Option<AllowedAddresses>,
}

struct RaceDriver {
    endpoint: Endpoint,
    race: Race,
    options: AttemptOptions,
    clock: RaceClock,
    results: ResultChannels,
    /// Attempts in progress; dropping one cancels it.
    attempts: BTreeMap<AttemptId, RunningAttempt>,
    queries: Vec<AbortOnDrop>,
    /// Answers that are available without a query.
    immediate_answers: Vec<DnsAnswer>,
    /// Attempts that have been answered and wait for the signal to proceed.
    held: BTreeMap<AttemptId, oneshot::Sender<()>>,
    /// Attempts that are complete but not delivered to the caller.
    complete: Vec<(AttemptId, Box<EstablishedTransport>)>,
    sender: mpsc::Sender<DriverEvent>,
    /// Notifies when an attempt of any race has ended; `None` until that matters.
    slot_freed: Option<watch::Receiver<()>>,
    /// The number of free slots that the race assumes: as last reported, less what it has started
    /// since.
    reported_slots: Option<usize>,
    first_address: Option<Duration>,
    /// Whether an attempt has started.
    has_started: bool,
}

pub(crate) async fn run(
    endpoint: Endpoint,
    options: AttemptOptions,
    clock: RaceClock,
    results: ResultChannels,
) {
    let mut network = endpoint.network().changes();
    let (sender, mut events) = mpsc::channel(MAX_EVENTS);
    complete_setup(&endpoint, &clock, &results.record).await;
    let mut driver = RaceDriver {
        race: results.record.with_journal(|journal| journal.race()),
        endpoint,
        options,
        clock,
        results,
        attempts: BTreeMap::new(),
        queries: Vec::new(),
        immediate_answers: Vec::new(),
        held: BTreeMap::new(),
        complete: Vec::new(),
        sender,
        slot_freed: None,
        reported_slots: None,
        first_address: None,
        has_started: false,
    };
    driver.endpoint.tally().races().started();
    driver.feed_slots();
    while !driver.run_until_network_change(&mut network, &mut events).await {
        if let Some(view) = network.borrow_and_update().clone() {
            driver.handle_event(DriverEvent::Network(view));
        }
    }
    driver.results.record.with_journal(RaceJournal::close);
}

/// Completes the set-up of a race that was started with what was available without waiting.
async fn complete_setup(endpoint: &Endpoint, clock: &RaceClock, record: &SharedJournal) {
    let network = endpoint.network().view().await;
    record.with_journal(|journal| {
        let current = journal.setup();
        if current.network != *network {
            let mut setup = RaceSetup::clone(current);
            let (host, trust) = (&setup.target.host, current.view.trust());
            setup.view = endpoint.memory_view(&network.id, host, trust);
            setup.network = NetworkView::clone(&network);
            *journal = RaceJournal::new(Arc::new(setup), clock.now());
        }
    });
}

/// Waits for a notification, if there is a receiver.
async fn notified(receiver: Option<&mut watch::Receiver<()>>) {
    match receiver {
        // The sender lives as long as the endpoint.
        Some(receiver) => _ = receiver.changed().await,
        None => std::future::pending().await,
    }
}

impl RaceDriver {
    /// Runs the race until the network changes. Returns whether the race is over.
    async fn run_until_network_change(
        &mut self,
        network: &mut watch::Receiver<Option<Arc<NetworkView>>>,
        events: &mut mpsc::Receiver<DriverEvent>,
    ) -> bool {
        // Both are reused over the iterations of the loop, in most of which neither is ready.
        let mut changed = pin!(network.changed());
        let mut timer = pin!(tokio::time::sleep_until(self.clock.origin().into()));
        while let Some(wait_until) = self.drain() {
            let wake_at = wait_until.map(|time| self.clock.instant(time));
            // A timer rounds up to the next millisecond, so do not sleep for what is already due.
            let is_due = wake_at.is_some_and(|time| time <= Instant::now());
            if let Some(time) = wake_at
                && timer.deadline() != time.into()
            {
                timer.as_mut().reset(time.into());
            }
            let mut event = tokio::select! {
                biased;
                // First, because they send events.
                never = running_attempt::proceed(&mut self.attempts) => match never {},
                _ = &mut changed => return false,
                () = notified(self.slot_freed.as_mut()) => DriverEvent::SlotFreed,
                () = std::future::ready(()), if is_due => DriverEvent::TimerExpired,
                Some(event) = events.recv() => event,
                () = &mut timer, if wake_at.is_some() && !is_due => DriverEvent::TimerExpired,
            };
            for _ in 0..MAX_BURST {
                self.handle_event(event);
                match events.try_recv() {
                    Ok(next) => event = next,
                    Err(_) => break,
                }
            }
            self.feed_slots();
        }
        true
    }

    /// Executes every output. Returns the time to wait for, or `None` once the race is over.
    fn drain(&mut self) -> Option<Option<Duration>> {
        // One instant for all outputs, so that the race evaluates its state only once.
        let now = self.clock.now();
        loop {
            let output = self.race.poll_output(now);
            self.results.record.with_journal(|journal| journal.note_polls(now, 1));
            match output {
                RaceOutput::Timeout(time) if self.immediate_answers.is_empty() => {
                    return Some(time);
                }
                RaceOutput::Timeout(_) => self.feed_immediate_answers(now),
                RaceOutput::Finished => return None,
                RaceOutput::Query(query) => self.query(query),
                RaceOutput::Start { id, candidate, initial_rtt, background: _ } => {
                    self.start(id, candidate, initial_rtt);
                }
                RaceOutput::Proceed { id } => {
                    if let Some(proceed) = self.held.remove(&id) {
                        // An attempt that has ended needs no notification.
                        let _ = proceed.send(());
                    }
                }
                RaceOutput::Close { id, why: _ } => {
                    self.held.remove(&id);
                    self.attempts.remove(&id);
                    self.complete.retain(|(complete, _)| *complete != id);
                }
                RaceOutput::Usable(id) => self.deliver_usable(id),
                RaceOutput::Better(id) => self.deliver_better(id),
                RaceOutput::Learn(evidence) => self.learn(evidence),
                RaceOutput::Failed(failure) => self.fail(failure),
            }
        }
    }

    fn feed_immediate_answers(&mut self, now: Duration) {
        for answer in std::mem::take(&mut self.immediate_answers) {
            self.record_first_address(&answer);
            self.feed_at(now, RaceInput::Answer(answer));
        }
    }

    fn handle_event(&mut self, event: DriverEvent) {
        let input = match event {
            DriverEvent::TimerExpired => RaceInput::Tick,
            // Report the free slots before polling the race.
            DriverEvent::SlotFreed => return,
            DriverEvent::Answer(answer) => {
                self.record_first_address(&answer);
                RaceInput::Answer(answer)
            }
            DriverEvent::Network(network) => {
                let setup = self.race.setup();
                let (host, trust) = (&setup.target.host, setup.view.trust());
                let view = self.endpoint.memory_view(&network.id, host, trust);
                let network = (*network).clone();
                RaceInput::NetworkChanged(Box::new(NetworkChange { network, view }))
            }
            // Ignore events of an attempt that has been closed.
            DriverEvent::Attempt(id, _) if !self.attempts.contains_key(&id) => return,
            DriverEvent::Attempt(id, AttemptEvent::Progress { level, rtt }) => {
                RaceInput::Progress { id, level, rtt }
            }
            DriverEvent::Attempt(id, AttemptEvent::FellBack) => RaceInput::FellBack { id },
            DriverEvent::Attempt(id, AttemptEvent::LongHelloFailed(detail)) => {
                if let Some(attempt) = self.race.attempt(id) {
                    events::long_hello(&self.race, &attempt.candidate, &detail);
                }
                RaceInput::LongHelloFailed { id, detail }
            }
            DriverEvent::Attempt(id, AttemptEvent::Failed(failure)) => {
                self.count(id, EndpointTally::failed);
                if let Some(attempt) = self.race.attempt(id) {
                    events::failure(&self.race, &attempt.candidate, &failure);
                }
                self.attempts.remove(&id);
                RaceInput::Failed { id, failure }
            }
            DriverEvent::Attempt(id, AttemptEvent::Ready(established)) => {
                self.count(id, EndpointTally::completed);
                self.attempts.remove(&id);
                let info = &established.info;
                let (alpn, rtt) = (info.alpn.clone(), info.rtt);
                self.complete.push((id, established));
                RaceInput::Ready { id, alpn, rtt }
            }
        };
        self.feed(input);
    }

    fn count(&self, id: AttemptId, outcome: impl Fn(&EndpointTally, Transport)) {
        if let Some(attempt) = self.race.attempt(id) {
            outcome(self.endpoint.tally(), attempt.candidate.transport);
        }
    }

    fn feed(&mut self, input: RaceInput) {
        self.feed_at(self.clock.now(), input);
    }

    fn feed_at(&mut self, now: Duration, input: RaceInput) {
        self.results.record.with_journal(|journal| journal.note_input(now, &input));
        self.race.handle_input(now, input);
    }

    fn query(&mut self, query: DnsQuery) {
        let port = self.race.setup().target.port;
        let allowed = self.options.allowed.clone();
        let filter = move |mut answer: DnsAnswer| {
            if let Some(allowed) = &allowed {
                allowed.filter(&mut answer);
            }
            answer
        };
        if let Some(answer) = self.endpoint.resolver().known(&query, port) {
            self.immediate_answers.push(filter(answer));
            return;
        }
        self.queries.retain(|query| !query.is_finished());
        let is_absolute = Resolver::is_absolute(&self.race.setup().target, &query);
        let resolver = self.endpoint.resolver().clone();
        // A peer that proves nothing may have taken over the address.
        let is_proved =
            self.race.setup().target.authenticates_peer() && self.endpoint.authenticates_peers();
        let expired = is_proved.then(|| resolver.expired(&query, port, is_absolute)).flatten();
        let has_expired = expired.is_some();
        self.immediate_answers.extend(expired.map(&filter));
        let mut answering =
            Box::pin(async move { filter(resolver.query_as(&query, port, is_absolute).await) });
        // What files or earlier answers say needs no task.
        if let Some(answer) = answering.as_mut().now_or_never() {
            self.immediate_answers.push(answer);
            return;
        }
        let sender = self.sender.clone();
        let query = AbortOnDrop::spawn(async move {
            let answer = answering.await;
            // A driver that has ended needs no answer.
            let _ = sender.send(DriverEvent::Answer(answer)).await;
        });
        match has_expired {
            // If this race does not need the new answer, the next one does.
            true => query.detach(),
            false => self.queries.push(query),
        }
    }

    fn start(&mut self, id: AttemptId, candidate: Candidate, initial_rtt: Option<Duration>) {
        #[cfg(feature = "sctp")]
        let proceed = candidate.transport.waits_when_answered().then(|| {
            let (sender, receiver) = oneshot::channel();
            self.held.insert(id, sender);
            receiver
        });
        self.endpoint.tally().started(candidate.transport);
        if !std::mem::replace(&mut self.has_started, true) {
            events::plan(&self.race);
        }
        events::start(&self.race, &candidate, self.race.attempt(id));
        let layers = (candidate.transport, candidate.security);
        let candidate = self.on_interface(candidate);
        let short_hello = self.race.attempt(id).is_some_and(|attempt| attempt.short_hello);
        let setup = self.race.setup();
        let host = self.options.peer.certificate_host.as_ref().unwrap_or(&setup.target.host);
        let attempt = CandidateAttempt {
            candidate,
            ech: EchAttempt::default(),
            without_ech: self.options.peer.without_ech,
            short_hello: AtomicBool::new(short_hello),
            server_name: server_name(host),
            initial_rtt,
            origin: self.clock.origin(),
            is_unraced: false,
            until_first_byte: setup.policy.win_at >= EvidenceLevel::FirstByte,
            opening: self.options.opening.clone(),
            #[cfg(feature = "sctp")]
            proceed,
            #[cfg(feature = "sctp")]
            encapsulation_port: self.options.peer.encapsulation_port,
            #[cfg(feature = "quic")]
            quic_config: self.options.peer.quic_config.clone(),
            #[cfg(feature = "quic")]
            without_keep_alive: self.options.peer.without_keep_alive,
        };
        let reporter = AttemptReporter::new(id, self.sender.clone());
        let endpoint = self.endpoint.clone();
        // Taken now, so that the remaining slots are counted correctly; the race counts them too.
        let slot = endpoint.limit().try_take();
        self.reported_slots = self.reported_slots.map(|left| left.saturating_sub(1));
        let running = RunningAttempt::start(layers, async move {
            let slot = match slot {
                Some(slot) => slot,
                None => endpoint.limit().acquire().await,
            };
            let event = match attempt.run(endpoint.connector(), &reporter).await {
                Ok(established) => AttemptEvent::Ready(Box::new(established)),
                Err(failure) => AttemptEvent::Failed(failure),
            };
            drop(slot);
            reporter.report(event).await;
        });
        self.attempts.insert(id, running);
    }

    /// Returns a link-local candidate on the interface that the caller named for its address.
    fn on_interface(&self, mut candidate: Candidate) -> Candidate {
        let target = &self.race.setup().target;
        if let (SocketAddr::V6(address), Some(name)) = (&mut candidate.address, target.host.name())
            && address.ip().is_unicast_link_local()
            && address.scope_id() == 0
            && let Some(scope) =
                self.endpoint.resolver().scope_of(name, target.port, (*address.ip()).into())
        {
            address.set_scope_id(scope);
        }
        candidate
    }

    fn record_first_address(&mut self, answer: &DnsAnswer) {
        if self.first_address.is_none()
            && matches!(&answer.records, Ok(DnsRecords::A(_) | DnsRecords::Aaaa(_)))
        {
            self.first_address = Some(self.clock.origin().elapsed());
        }
    }

    /// Reports how many more attempts may start, as soon as other races have left fewer slots than
    /// this race's policy allows, and then whenever that changes.
    fn feed_slots(&mut self) {
        let limit = self.endpoint.limit();
        if self.slot_freed.is_none() {
            if limit.free() >= self.race.setup().policy.max_in_flight {
                return;
            }
            // Subscribe before reading the value that is reported, so that no change is missed.
            self.slot_freed = Some(limit.freed());
        }
        let free = limit.free();
        if self.reported_slots != Some(free) {
            self.reported_slots = Some(free);
            self.feed(RaceInput::Slots(free));
        }
    }

    fn deliver_usable(&mut self, id: AttemptId) {
        if let (Some(connection), Some(usable)) = (self.connection(id), self.results.usable.take())
        {
            self.endpoint.tally().races().won();
            if let Some(attempt) = self.race.attempt(id) {
                events::win(&self.race, &attempt.candidate, self.clock.origin().elapsed());
            }
            // If the caller is gone, the race continues only to learn.
            let _ = usable.send(Ok(connection));
        }
    }

    fn deliver_better(&mut self, id: AttemptId) {
        if let Some(connection) = self.connection(id) {
            self.endpoint.tally().races().switched();
            if let Some(attempt) = self.race.attempt(id) {
                events::switch(&self.race, &attempt.candidate, self.clock.origin().elapsed());
            }
            // If the caller does not accept any more connections, this one is closed.
            let _ = self.results.better.try_send(Box::new(connection));
        }
    }

    fn fail(&mut self, failure: RaceFailure) {
        if let Some(usable) = self.results.usable.take() {
            self.endpoint.tally().races().failed();
            events::lost(&self.race, &failure);
            // If the caller is gone, nothing needs to be notified.
            let _ = usable.send(Err(failure));
        }
    }

    fn learn(&self, mut evidence: Evidence) {
        if self.endpoint.memory().is_disabled() {
            return;
        }
        let network_name;
        (evidence.network, network_name) = self.endpoint.network().final_id(&evidence.network);
        events::learnt(&evidence);
        let trust = self.race.setup().view.trust().clone();
        self.endpoint.memory().learn_in_background(ObservedOutcome {
            evidence,
            trust,
            network_name,
        });
    }

    /// Returns the completed attempt as a connection for the caller.
    fn connection(&mut self, id: AttemptId) -> Option<Connection> {
        let index = self.complete.iter().position(|(complete, _)| *complete == id)?;
        let (_, established) = self.complete.swap_remove(index);
        let EstablishedTransport { transport, mut info, read_ahead } = *established;
        let attempt = self.race.attempt(id)?;
        self.endpoint.tally().used(attempt.candidate.transport);
        info.timings.dns = self.first_address;
        info.from_memory = attempt.from_memory;
        let failed = |attempt: &RaceAttempt| {
            let failures = attempt.long_hello_failure.iter().chain(attempt.failure());
            failures.map(|failure| (attempt.candidate.clone(), failure.clone())).collect::<Vec<_>>()
        };
        info.failed = self.race.attempts().iter().flat_map(failed).collect();
        info.reasons.splice(0..0, attempt.reasons.iter().map(ToString::to_string));
        let mut candidate = attempt.candidate.clone();
        if info.fell_back {
            candidate.transport = Transport::Tcp;
        }
        Some(Connection::new(transport, info, self.feedback(candidate), read_ahead))
    }

    fn feedback(&self, candidate: Candidate) -> ConnectionFeedback {
        if self.endpoint.memory().is_disabled() {
            return ConnectionFeedback::none();
        }
        let endpoint = self.endpoint.clone();
        let setup = self.race.setup();
        let (network, host) = (setup.network.id.clone(), setup.target.host.clone());
        let trust = setup.view.trust().clone();
        let is_planned_mptcp = candidate.transport == Transport::Mptcp;
        ConnectionFeedback::new(move |level, failure| {
            // Of a candidate for TCP, whose endpoint uses MPTCP where it can, a fallback is no failure.
            let (level, failure) = match failure {
                Some(failure) if failure.cause == FailureCause::FellBack && !is_planned_mptcp => {
                    (EvidenceLevel::FirstByte, None)
                }
                failure => (level, failure),
            };
            let (network, network_name) = endpoint.network().final_id(&network);
            let evidence = Evidence {
                at: crate::memory_store::now(),
                network,
                host: host.clone(),
                candidate: candidate.clone(),
                level,
                failure,
                doubt: None,
                rtt: None,
                sent_again: None,
            };
            events::learnt(&evidence);
            let observation = ObservedOutcome { evidence, trust: trust.clone(), network_name };
            endpoint.memory().learn_in_background(observation);
        })
    }
}
