//! A stationary network: every candidate has a fate, and a race runs against it to its end.

use alloc::{collections::BTreeMap, sync::Arc};
use core::{net::SocketAddr, time::Duration};

use super::scene::ms;
use crate::candidate::{Candidate, Transport};
use crate::dns::{Answer, DnsFailure, RecordType, Records};
use crate::evidence::{Cause, Evidence, Failure, Level};
use crate::io::{AttemptId, Input, Output};
use crate::race::Setup;
use crate::trace::{Journal, Recorder, Trace};

/// What becomes of every attempt at a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It completes; one round trip takes this long.
    Works(Duration),
    /// Nothing ever comes back.
    Silent,
    /// It is answered after this long, and then nothing more comes.
    Stalls(Duration),
    /// It fails after this long.
    Fails(Cause, Duration),
}

/// Answers of DNS and fates of candidates. What has no fate is silent.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) addresses: Vec<core::net::IpAddr>,
    /// How long AAAA and A take.
    pub(super) dns: [Duration; 2],
    pub(super) fates: BTreeMap<(Transport, SocketAddr), Fate>,
    /// Whether inputs of one instant are handed in backwards.
    pub(super) backwards: bool,
}

/// What one race did.
pub(super) struct Run {
    pub(super) started_at: Duration,
    pub(super) outputs: Vec<(Duration, Output)>,
    pub(super) failed: Vec<AttemptId>,
    pub(super) trace: Trace,
}

impl Run {
    pub(super) fn starts(&self) -> Vec<(Duration, AttemptId, Candidate)> {
        let started = |(at, output): &(Duration, Output)| match output {
            Output::Start { id, candidate, .. } => Some((*at, *id, candidate.clone())),
            _ => None,
        };
        self.outputs.iter().filter_map(started).collect()
    }

    pub(super) fn usable(&self) -> Option<(Duration, AttemptId)> {
        self.outputs.iter().find_map(|(at, output)| match output {
            Output::Usable(id) => Some((*at, *id)),
            _ => None,
        })
    }

    /// The transport of the connection that the caller has in the end.
    pub(super) fn last_transport(&self) -> Option<Transport> {
        let last = self.outputs.iter().rev().find_map(|(_, output)| match output {
            Output::Usable(id) | Output::Better(id) => Some(*id),
            _ => None,
        })?;
        let starts = self.starts();
        Some(starts.iter().find(|(_, id, _)| *id == last)?.2.transport)
    }

    pub(super) fn learnt(&self) -> impl Iterator<Item = &Evidence> {
        self.outputs.iter().filter_map(|(_, output)| match output {
            Output::Learn(evidence) => Some(evidence),
            _ => None,
        })
    }

    pub(super) fn count(&self, which: impl Fn(&Output) -> bool) -> usize {
        self.outputs.iter().filter(|(_, output)| which(output)).count()
    }
}

impl World {
    /// Runs one race to its end. The caller gives up, or is done, at `cancel_at` after the start.
    pub(super) fn run(&self, setup: Setup, now: Duration, cancel_at: Option<Duration>) -> Run {
        let mut journal = Journal::new(Arc::new(setup.clone()), now);
        let mut race = Recorder::new(setup, now);
        let mut due: Vec<(Duration, Input)> = Vec::new();
        due.extend(cancel_at.map(|after| (now + after, Input::Cancel)));
        let started_at = now;
        let (mut now, mut outputs, mut failed) = (now, Vec::new(), Vec::new());
        loop {
            let output = race.poll_output(now);
            journal.note_polls(now, 1);
            match &output {
                Output::Timeout(next) => {
                    let event = due.iter().map(|(at, _)| *at).min();
                    let Some(next) = next.iter().copied().chain(event).min() else { break };
                    assert!(next > now, "the race asks to be woken at once");
                    now = next;
                    let (mut ripe, rest) =
                        due.into_iter().partition::<Vec<_>, _>(|(at, _)| *at <= now);
                    due = rest;
                    if self.backwards {
                        ripe.reverse();
                    }
                    for (_, input) in ripe {
                        if let Input::Failed { id, .. } = input {
                            failed.push(id);
                        }
                        journal.note_input(now, &input);
                        race.handle_input(now, input);
                    }
                    continue;
                }
                Output::Query(query) => due.push(self.answer(now, query)),
                Output::Start { id, candidate, .. } => due.extend(self.fate(now, *id, candidate)),
                Output::Close { id, .. } => due.retain(|(_, input)| attempt_of(input) != Some(*id)),
                _ => {}
            }
            outputs.push((now, output));
        }
        let trace = race.into_trace();
        assert_eq!(journal.trace(), trace, "the journal leads to another race");
        Run { started_at, outputs, failed, trace }
    }

    fn answer(&self, now: Duration, query: &crate::dns::Query) -> (Duration, Input) {
        use core::net::IpAddr;
        let v6 = self.addresses.iter().filter_map(|ip| match ip {
            IpAddr::V6(ip) => Some(*ip),
            IpAddr::V4(_) => None,
        });
        let v4 = self.addresses.iter().filter_map(|ip| match ip {
            IpAddr::V4(ip) => Some(*ip),
            IpAddr::V6(_) => None,
        });
        let (delay, records) = match query.record_type {
            RecordType::Aaaa => (self.dns[0], Ok(Records::Aaaa(v6.collect()))),
            RecordType::A => (self.dns[1], Ok(Records::A(v4.collect()))),
            RecordType::Https => (ms(1), Err(DnsFailure::NoData)),
        };
        let answer = Answer { id: query.id, records, protected: false };
        (now + delay.max(ms(1)), Input::Answer(answer))
    }

    pub(super) fn fate_of(&self, candidate: &Candidate) -> Fate {
        let key = (candidate.transport, candidate.address);
        self.fates.get(&key).copied().unwrap_or(Fate::Silent)
    }

    fn fate(&self, now: Duration, id: AttemptId, candidate: &Candidate) -> Vec<(Duration, Input)> {
        let answered =
            |rtt| (now + rtt, Input::Progress { id, level: Level::Answered, rtt: Some(rtt) });
        match self.fate_of(candidate) {
            Fate::Works(rtt) => {
                let ready = Input::Ready { id, alpn: None, rtt: Some(rtt), fell_back: false };
                vec![answered(rtt), (now + 2 * rtt, ready)]
            }
            Fate::Silent => Vec::new(),
            Fate::Stalls(rtt) => vec![answered(rtt)],
            Fate::Fails(cause, after) => {
                let failure = Failure { cause, reached: Level::Started, detail: String::new() };
                vec![(now + after, Input::Failed { id, failure })]
            }
        }
    }
}

fn attempt_of(input: &Input) -> Option<AttemptId> {
    match input {
        Input::Progress { id, .. } | Input::Ready { id, .. } | Input::Failed { id, .. } => {
            Some(*id)
        }
        _ => None,
    }
}
