//! A stationary network: every candidate has a fate, and a race runs against it to its end. Every
//! run is checked: once all outputs of an instant are polled no decision is due, and nothing
//! follows the end.

use alloc::{collections::BTreeMap, sync::Arc};
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use super::scene::{ms, network};
use crate::candidate::{Candidate, Transport};
use crate::dns::{DnsAnswer, DnsFailure, DnsQuery, DnsRecords, RecordType};
use crate::evidence::{AttemptFailure, Evidence, EvidenceLevel, FailureCause};
use crate::io::{AttemptId, NetworkChange, RaceInput, RaceOutput};
use crate::memory::MemoryView;
use crate::race::{Race, RaceSetup};
use crate::trace::{RaceJournal, Trace, TraceRecorder};

/// The outcome of every attempt at a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It completes; one round trip takes this long.
    Works(Duration),
    /// It is never answered.
    Silent,
    /// It is answered after this long, then stalls.
    Stalls(Duration),
    /// It fails after this long.
    Fails(FailureCause, Duration),
}

/// DNS answers and the fates of candidates. A candidate without a fate is silent.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) addresses: Vec<IpAddr>,
    /// The addresses that AAAA and A return after a millisecond, if `addresses` are an update.
    pub(super) earlier_addresses: Option<Vec<IpAddr>>,
    /// Whether the time to live of those is over.
    pub(super) earlier_expired: bool,
    /// Whether no server answers, so that there is no update of those.
    pub(super) update_fails: bool,
    /// How long AAAA and A take.
    pub(super) dns: [Duration; 2],
    pub(super) fates: BTreeMap<(Transport, SocketAddr), Fate>,
    /// Whether inputs of the same instant are passed in reverse order.
    pub(super) reversed_inputs: bool,
    /// Whether a connection is complete before the application receives its first byte; otherwise
    /// the first byte is waited for.
    pub(super) ready_first: bool,
    /// When the host moves to another network, after the start.
    pub(super) moves_at: Vec<Duration>,
    /// When the race is polled although nothing happened, after the start.
    pub(super) polls_at: Vec<Duration>,
    /// The limit of the process on attempts in flight, if there is one.
    pub(super) process_limit: Option<usize>,
}

/// The pending events of a run.
struct Script<'a> {
    world: &'a World,
    due: Vec<(Duration, RaceInput)>,
    in_flight: Vec<AttemptId>,
    reported_slots: Option<usize>,
}

/// The outputs of one race.
pub(super) struct Run {
    pub(super) started_at: Duration,
    pub(super) outputs: Vec<(Duration, RaceOutput)>,
    pub(super) failed: Vec<AttemptId>,
    pub(super) trace: Trace,
}

impl Run {
    pub(super) fn starts(&self) -> Vec<(Duration, AttemptId, Candidate)> {
        let started = |(at, output): &(Duration, RaceOutput)| match output {
            RaceOutput::Start { id, candidate, .. } => Some((*at, *id, candidate.clone())),
            _ => None,
        };
        self.outputs.iter().filter_map(started).collect()
    }

    pub(super) fn usable(&self) -> Option<(Duration, AttemptId)> {
        self.outputs.iter().find_map(|(at, output)| match output {
            RaceOutput::Usable(id) => Some((*at, *id)),
            _ => None,
        })
    }

    /// The transport of the last connection passed to the caller.
    pub(super) fn last_transport(&self) -> Option<Transport> {
        let last = self.outputs.iter().rev().find_map(|(_, output)| match output {
            RaceOutput::Usable(id) | RaceOutput::Better(id) => Some(*id),
            _ => None,
        })?;
        let starts = self.starts();
        Some(starts.iter().find(|(_, id, _)| *id == last)?.2.transport)
    }

    pub(super) fn learnt(&self) -> impl Iterator<Item = &Evidence> {
        self.outputs.iter().filter_map(|(_, output)| match output {
            RaceOutput::Learn(evidence) => Some(evidence),
            _ => None,
        })
    }

    pub(super) fn count(&self, which: impl Fn(&RaceOutput) -> bool) -> usize {
        self.outputs.iter().filter(|(_, output)| which(output)).count()
    }
}

impl World {
    /// Runs one race to its end. The caller cancels it at `cancel_at` after the start.
    pub(super) fn run(&self, setup: RaceSetup, now: Duration, cancel_at: Option<Duration>) -> Run {
        let mut journal = RaceJournal::new(Arc::new(setup.clone()), now);
        let mut race = TraceRecorder::new(setup, now);
        let mut to_come = Script::new(self, now, cancel_at);
        let started_at = now;
        let (mut now, mut outputs, mut failed) = (now, Vec::new(), Vec::new());
        if let Some(input) = to_come.first_input() {
            journal.note_input(now, &input);
            race.handle_input(now, input);
        }
        loop {
            let output = race.poll_output(now);
            journal.note_polls(now, 1);
            if let RaceOutput::Timeout(next) = &output {
                check_nothing_is_due(race.race(), now, *next);
                if race.race().is_over() {
                    check_nothing_follows(race.race(), now);
                }
                to_come.report_slots(now);
                let Some(next) = next.iter().copied().chain(to_come.next()).min() else { break };
                assert!(next > now, "the race asks to be woken at once");
                now = next;
                let inputs = to_come.take(now);
                // Attempts of the old network end with it, whatever they report at that instant.
                let moves =
                    inputs.iter().any(|input| matches!(input, RaceInput::NetworkChanged(_)));
                for input in inputs {
                    if let RaceInput::Failed { id, .. } = input
                        && !moves
                    {
                        failed.push(id);
                    }
                    journal.note_input(now, &input);
                    race.handle_input(now, input);
                }
                continue;
            }
            to_come.carry_out(now, &output, race.race());
            outputs.push((now, output));
        }
        let trace = race.into_trace();
        assert_eq!(journal.trace(), trace, "the journal replays to another race");
        Run { started_at, outputs, failed, trace }
    }

    /// The answers to this query, with the times at which they arrive.
    fn answers(&self, now: Duration, query: &DnsQuery) -> Vec<(Duration, RaceInput)> {
        let delay = match query.record_type {
            RecordType::Aaaa => self.dns[0],
            RecordType::A => self.dns[1],
            RecordType::Https => ms(1),
        };
        let mut update = answer(query, &self.addresses);
        if self.update_fails && query.record_type != RecordType::Https {
            update.records = Err(DnsFailure::Timeout);
        }
        let last = (now + delay.max(ms(1)), RaceInput::Answer(update));
        let expired = self.earlier_expired;
        let first = self.earlier_addresses.as_ref().map(|earlier| {
            let answer = DnsAnswer { expired, ..answer(query, earlier) };
            (now + ms(1), RaceInput::Answer(answer))
        });
        first.into_iter().chain([last]).collect()
    }

    pub(super) fn fate_of(&self, candidate: &Candidate) -> Fate {
        let key = (candidate.transport, candidate.address);
        self.fates.get(&key).copied().unwrap_or(Fate::Silent)
    }

    /// The events of an attempt that starts now, until it waits for the race.
    fn fate(
        &self,
        now: Duration,
        id: AttemptId,
        candidate: &Candidate,
    ) -> Vec<(Duration, RaceInput)> {
        let answered = |rtt| {
            (now + rtt, RaceInput::Progress { id, level: EvidenceLevel::Answered, rtt: Some(rtt) })
        };
        match self.fate_of(candidate) {
            Fate::Works(rtt) if candidate.transport.waits_when_answered() => vec![answered(rtt)],
            Fate::Works(rtt) => [vec![answered(rtt)], self.rest(now + rtt, id, rtt)].concat(),
            Fate::Silent => Vec::new(),
            Fate::Stalls(rtt) => vec![answered(rtt)],
            Fate::Fails(cause, after) => {
                let failure = AttemptFailure::new(cause, EvidenceLevel::Started, "");
                vec![(now + after, RaceInput::Failed { id, failure })]
            }
        }
    }

    /// The further events of a working attempt that was answered now.
    fn rest(&self, now: Duration, id: AttemptId, rtt: Duration) -> Vec<(Duration, RaceInput)> {
        let ready = RaceInput::Ready { id, alpn: None, rtt: Some(rtt) };
        let first_byte = RaceInput::Progress { id, level: EvidenceLevel::FirstByte, rtt: None };
        match self.ready_first {
            true => vec![(now + rtt, ready), (now + 2 * rtt, first_byte)],
            false => vec![(now + rtt, first_byte), (now + rtt, ready)],
        }
    }
}

impl<'a> Script<'a> {
    fn new(world: &'a World, start: Duration, cancel_at: Option<Duration>) -> Self {
        let mut due: Vec<(Duration, RaceInput)> = Vec::new();
        due.extend(cancel_at.map(|after| (start + after, RaceInput::Cancel)));
        due.extend(world.polls_at.iter().map(|after| (start + *after, RaceInput::Tick)));
        for (number, after) in world.moves_at.iter().enumerate() {
            let network = network(&format!("network {number}"));
            let change = NetworkChange { network, view: MemoryView::empty() };
            due.push((start + *after, RaceInput::NetworkChanged(Box::new(change))));
        }
        Self { world, due, in_flight: Vec::new(), reported_slots: None }
    }

    /// The first input of the driver, if any.
    fn first_input(&mut self) -> Option<RaceInput> {
        self.reported_slots = self.world.process_limit;
        self.reported_slots.map(RaceInput::Slots)
    }

    fn next(&self) -> Option<Duration> {
        self.due.iter().map(|(at, _)| *at).min()
    }

    /// The inputs of this instant.
    fn take(&mut self, now: Duration) -> Vec<RaceInput> {
        let due = std::mem::take(&mut self.due);
        let (due_now, rest) = due.into_iter().partition::<Vec<_>, _>(|(at, _)| *at <= now);
        self.due = rest;
        let mut due_now: Vec<RaceInput> = due_now.into_iter().map(|(_, input)| input).collect();
        for input in &due_now {
            match input {
                RaceInput::Ready { id, .. } | RaceInput::Failed { id, .. } => {
                    self.in_flight.retain(|attempt| attempt != id);
                }
                RaceInput::Slots(free) => self.reported_slots = Some(*free),
                _ => {}
            }
        }
        if self.world.reversed_inputs {
            due_now.reverse();
        }
        due_now
    }

    /// Carries out an output of the race.
    fn carry_out(&mut self, now: Duration, output: &RaceOutput, race: &Race) {
        match output {
            RaceOutput::Query(query) => self.due.extend(self.world.answers(now, query)),
            RaceOutput::Start { id, candidate, .. } => {
                self.due.extend(self.world.fate(now, *id, candidate));
                self.in_flight.push(*id);
                // Each start uses up one slot, as the race counts them.
                self.reported_slots = self.reported_slots.map(|left| left.saturating_sub(1));
            }
            RaceOutput::Proceed { id } => {
                let candidate = &race.attempt(*id).expect("it started").candidate;
                if let Fate::Works(rtt) = self.world.fate_of(candidate) {
                    self.due.extend(self.world.rest(now, *id, rtt));
                }
            }
            RaceOutput::Close { id, .. } => {
                self.due.retain(|(_, input)| attempt_of(input) != Some(*id));
                self.in_flight.retain(|attempt| attempt != id);
            }
            _ => {}
        }
    }

    /// Reports the number of slots left, a moment after it changed.
    fn report_slots(&mut self, now: Duration) {
        let Some(limit) = self.world.process_limit else { return };
        self.due.retain(|(_, input)| !matches!(input, RaceInput::Slots(_)));
        let free = limit.saturating_sub(self.in_flight.len());
        if self.reported_slots != Some(free) {
            self.due.push((now + ms(1), RaceInput::Slots(free)));
        }
    }
}

/// Checks that another poll finds nothing due, and that the next timeout is in the future.
fn check_nothing_is_due(race: &Race, now: Duration, next: Option<Duration>) {
    assert!(next.is_none_or(|next| next > now), "the race asks to be woken at {next:?}");
    let mut copy = race.clone();
    copy.handle_input(now, RaceInput::Tick);
    assert_eq!(copy.poll_output(now), RaceOutput::Timeout(next), "a decision was due");
}

/// Checks that a race that is over has no outputs, whatever the inputs.
fn check_nothing_follows(race: &Race, now: Duration) {
    let mut race = race.clone();
    for number in 0..race.attempts().len() {
        let id = AttemptId(number.try_into().unwrap());
        let failure = AttemptFailure::new(FailureCause::Reset, EvidenceLevel::Security, "");
        race.handle_input(
            now,
            RaceInput::Progress { id, level: EvidenceLevel::FullPacket, rtt: None },
        );
        race.handle_input(now, RaceInput::Ready { id, alpn: None, rtt: None });
        race.handle_input(now, RaceInput::Failed { id, failure });
    }
    let change = NetworkChange { network: network("elsewhere"), view: MemoryView::empty() };
    race.handle_input(now, RaceInput::NetworkChanged(Box::new(change)));
    race.handle_input(now, RaceInput::Cancel);
    assert_eq!(race.poll_output(now), RaceOutput::Timeout(None), "something comes after the end");
}

/// The answer to this query, if the name has these addresses.
fn answer(query: &DnsQuery, addresses: &[IpAddr]) -> DnsAnswer {
    let v6 = addresses.iter().filter_map(|ip| match ip {
        IpAddr::V6(ip) => Some(*ip),
        IpAddr::V4(_) => None,
    });
    let v4 = addresses.iter().filter_map(|ip| match ip {
        IpAddr::V4(ip) => Some(*ip),
        IpAddr::V6(_) => None,
    });
    let records = match query.record_type {
        RecordType::Aaaa => Ok(DnsRecords::Aaaa(v6.collect())),
        RecordType::A => Ok(DnsRecords::A(v4.collect())),
        RecordType::Https => Err(DnsFailure::NoData),
    };
    DnsAnswer { id: query.id, records, protected: false, expired: false }
}

fn attempt_of(input: &RaceInput) -> Option<AttemptId> {
    match input {
        RaceInput::Progress { id, .. }
        | RaceInput::Ready { id, .. }
        | RaceInput::Failed { id, .. } => Some(*id),
        _ => None,
    }
}
