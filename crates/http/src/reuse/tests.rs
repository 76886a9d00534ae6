//! Requests on one connection in random worlds, in virtual time.

mod ladders;

use proptest::prelude::*;

use super::*;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What happens to the connection at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Lives,
    /// Nothing comes back any more.
    FallsSilent(u64),
    /// Nothing comes back for a while.
    Stalls(u64, u64),
    /// Requests on it fail as soon as they are sent, or at once.
    IsReset(u64),
    /// Requests sent before are answered, later ones fail.
    HalfCloses(u64),
}

impl Fate {
    fn carries(self, at: u64) -> bool {
        match self {
            Self::Lives | Self::HalfCloses(_) => true,
            Self::FallsSilent(from) | Self::IsReset(from) => at < from,
            Self::Stalls(from, to) => !(from..to).contains(&at),
        }
    }

    /// Returns when something sent at this time arrives at the other side or back: as soon as
    /// the connection carries it, by retransmissions.
    fn arrival(self, at: u64, rtt: u64) -> Option<u64> {
        let arrived = at + (rtt / 2).max(1);
        match self {
            Self::Stalls(from, to) if (from..to).contains(&arrived) => Some(to),
            _ => self.carries(arrived).then_some(arrived),
        }
    }

    fn fails(self, sent: u64) -> Option<u64> {
        match self {
            Self::IsReset(at) => Some(at.max(sent + 1)),
            Self::HalfCloses(at) if sent >= at => Some(sent + 1),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Ask {
    at: u64,
    may_repeat: bool,
    /// How long the service takes.
    service: u64,
}

#[derive(Clone, Debug)]
struct World {
    rtt: u64,
    idle: u64,
    can_check: bool,
    fate: Fate,
    asks: Vec<Ask>,
    /// How long a race takes, and whether it is won.
    races: Vec<(u64, bool)>,
    /// How late the timers of this host are.
    late: u64,
}

fn worlds() -> impl Strategy<Value = World> {
    let fate = prop_oneof![
        Just(Fate::Lives),
        (0..2000_u64).prop_map(Fate::FallsSilent),
        (0..2000_u64, 1..3000_u64).prop_map(|(from, length)| Fate::Stalls(from, from + length)),
        (0..2000_u64).prop_map(Fate::IsReset),
        (0..2000_u64).prop_map(Fate::HalfCloses),
    ];
    let ask = (0..2500_u64, any::<bool>(), prop_oneof![0..50_u64, 0..5000_u64])
        .prop_map(|(at, may_repeat, service)| Ask { at, may_repeat, service });
    (
        (1..400_u64, 0..20_000_u64, any::<bool>(), fate),
        prop::collection::vec(ask, 1..6),
        prop::collection::vec((1..800_u64, prop::bool::weighted(0.8)), 1..4),
        prop_oneof![Just(0), 0..20_u64, 0..2000_u64],
    )
        .prop_map(|((rtt, idle, can_check, fate), asks, races, late)| World {
            rtt,
            idle,
            can_check,
            fate,
            asks,
            races,
            late,
        })
}

/// One request in the world.
struct Request {
    ask: Ask,
    core: ReusedRequest,
    /// When the request or a probe was sent on the reused connection, and since when signs count.
    probed: Option<u64>,
    sent: Option<u64>,
    signs_since: u64,
    repeated: Option<u64>,
    timeout: Option<u64>,
    outcome: Option<(u64, Output)>,
    /// When it first saw a sign of life.
    seen_at: Option<u64>,
    races: usize,
    is_racing: bool,
    outputs: Vec<(u64, Output)>,
}

impl Request {
    fn answered_again(&self) -> Option<u64> {
        Some(self.repeated? + 20 + self.ask.service)
    }
}

struct Run {
    world: World,
    requests: Vec<Request>,
    /// The race in progress, which all requests share, as in the pool: its end and outcome.
    race: Option<(u64, bool)>,
    races: usize,
    is_doubted: bool,
    is_dead: bool,
    has_new: bool,
}

impl Run {
    fn new(world: World) -> Self {
        Self {
            world,
            requests: Vec::new(),
            race: None,
            races: 0,
            is_doubted: false,
            is_dead: false,
            has_new: false,
        }
    }

    /// Returns the times at which the peer's signs of life arrive for something sent at that time.
    fn sign(&self, sent: u64) -> Option<u64> {
        let there = self.world.fate.arrival(sent, self.world.rtt)?;
        self.world.fate.arrival(there, self.world.rtt)
    }

    fn response(&self, sent: u64, service: u64) -> Option<u64> {
        let there = self.world.fate.arrival(sent, self.world.rtt)?;
        self.world.fate.arrival(there + service, self.world.rtt)
    }

    /// Returns whether anything has come since: an acknowledgement of something sent.
    fn seen(&self, since: u64, now: u64) -> bool {
        let things = self.requests.iter().flat_map(|request| {
            let responds = request.sent.and_then(|sent| self.response(sent, request.ask.service));
            let acknowledged = [request.probed, request.sent].into_iter().flatten();
            acknowledged.filter_map(|sent| self.sign(sent)).chain(responds)
        });
        things.into_iter().any(|at| at > since && at <= now)
    }

    fn run(mut self) -> Self {
        let mut next = self.next(None);
        while let Some(at) = next.filter(|at| *at < 60_000) {
            self.begin(at);
            self.step(at);
            next = self.next(Some(at));
        }
        self
    }

    /// Returns when the next thing happens.
    fn next(&self, now: Option<u64>) -> Option<u64> {
        let asks = self.world.asks.iter().map(|ask| ask.at);
        let waiting = self.requests.iter().filter(|request| request.outcome.is_none());
        let events = waiting.flat_map(|request| {
            let due = request.timeout.map(|due| (due + self.world.late).max(now.unwrap_or(0) + 1));
            let sent = request.sent;
            let failed = sent.and_then(|sent| self.world.fate.fails(sent));
            let answered = sent.and_then(|sent| self.response(sent, request.ask.service));
            [due, failed, answered, request.answered_again()].into_iter().flatten()
        });
        let race = self.race.map(|(end, _)| end);
        asks.chain(events).chain(race).filter(|at| now.is_none_or(|now| *at > now)).min()
    }

    fn begin(&mut self, at: u64) {
        for ask in self.world.asks.clone().into_iter().filter(|ask| ask.at == at) {
            // The pool gives no request a connection that is in doubt.
            let usable = !self.is_doubted && !self.is_dead;
            let setup = Setup {
                rtt: Some(ms(self.world.rtt)),
                idle: ms(self.world.idle),
                may_repeat: ask.may_repeat,
                can_check: self.world.can_check,
            };
            let mut request = Request {
                ask,
                core: ReusedRequest::new(setup, ms(at)),
                probed: None,
                sent: None,
                signs_since: at,
                repeated: None,
                timeout: None,
                outcome: None,
                seen_at: None,
                races: 0,
                is_racing: false,
                outputs: Vec::new(),
            };
            if !usable {
                request.outcome = Some((at, Output::Use(Lane::New)));
            }
            self.requests.push(request);
            let last = self.requests.len() - 1;
            self.drain(last, at);
        }
    }

    fn step(&mut self, at: u64) {
        let race_ended = self.race.filter(|(end, _)| *end <= at).map(|(_, won)| won);
        if let Some(won) = race_ended {
            self.race = None;
            self.has_new |= won;
        }
        for number in 0..self.requests.len() {
            let request = &self.requests[number];
            if request.outcome.is_some() {
                continue;
            }
            let fate = self.world.fate;
            let failed = request.sent.and_then(|sent| fate.fails(sent)) == Some(at);
            let answered = request.sent.and_then(|sent| self.response(sent, request.ask.service));
            let repeated = request.answered_again();
            let mut inputs = Vec::new();
            if let (Some(won), true) = (race_ended, request.is_racing) {
                inputs.push(if won { Input::RaceWon } else { Input::RaceFailed });
            }
            inputs.extend(failed.then_some(Input::Failed(Lane::Reused)));
            inputs.extend((answered == Some(at)).then_some(Input::Answered(Lane::Reused)));
            inputs.extend((repeated == Some(at)).then_some(Input::Answered(Lane::New)));
            let late = self.world.late;
            inputs
                .extend(request.timeout.is_some_and(|due| due + late <= at).then_some(Input::Tick));
            for input in inputs {
                if matches!(input, Input::RaceWon | Input::RaceFailed) {
                    self.requests[number].is_racing = false;
                }
                self.requests[number].core.handle_input(ms(at), input);
                self.drain(number, at);
            }
        }
    }

    fn drain(&mut self, number: usize, at: u64) {
        loop {
            let output = self.requests[number].core.poll_output();
            let request = &mut self.requests[number];
            request.outputs.push((at, output));
            match output {
                Output::Probe => {
                    request.probed = Some(at);
                    request.signs_since = at;
                }
                Output::Send(Lane::Reused) => {
                    assert_eq!(request.sent, None, "sent twice on one connection");
                    request.sent = Some(at);
                    request.signs_since = at;
                }
                Output::Send(Lane::New) => {
                    assert!(self.has_new, "sent on a connection that does not exist");
                    assert_eq!(request.repeated, None, "repeated twice");
                    assert!(
                        request.sent.is_none() || request.ask.may_repeat,
                        "sent twice though that is not safe"
                    );
                    request.repeated = Some(at);
                }
                Output::Look => {
                    let since = request.signs_since;
                    let sign = match self.seen(since, at) {
                        true => Sign::Seen,
                        false => Sign::NotWithin(ms(3 * self.world.rtt)),
                    };
                    if sign == Sign::Seen && self.requests[number].sent.is_some() {
                        self.requests[number].seen_at.get_or_insert(at);
                    }
                    self.requests[number].core.handle_input(ms(at), Input::Looked(sign));
                }
                Output::Doubt => {
                    self.is_doubted = true;
                    self.tell_others(number, at);
                }
                Output::Trust => self.is_doubted = false,
                Output::StartRace => {
                    assert!(!std::mem::replace(&mut request.is_racing, true), "two races");
                    request.races += 1;
                    if self.race.is_none() {
                        let (takes, won) = self.world.races[self.races % self.world.races.len()];
                        self.races += 1;
                        self.race = Some((at + takes, won));
                    }
                }
                Output::EndRace => {
                    assert!(std::mem::take(&mut request.is_racing), "no race to end");
                }
                Output::Dead => self.is_dead = true,
                Output::Use(_) | Output::Fail(_) | Output::GiveUp | Output::Abandon => {
                    assert_eq!(request.outcome, None, "two outcomes");
                    assert!(!request.is_racing, "a race is left behind");
                    request.outcome = Some((at, output));
                }
                Output::Timeout(time) => {
                    request.timeout =
                        time.map(|time| u64::try_from(time.as_millis()).expect("short"));
                    return;
                }
            }
        }
    }

    fn tell_others(&mut self, teller: usize, at: u64) {
        for number in 0..self.requests.len() {
            if number != teller && self.requests[number].outcome.is_none() {
                self.requests[number].signs_since = at;
                self.requests[number].core.handle_input(ms(at), Input::Doubted);
                self.drain(number, at);
            }
        }
    }
}

fn ceiling(world: &World) -> u64 {
    let delay = delay(Some(ms(world.rtt))).as_millis();
    u64::try_from(delay).expect("short")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// The assertions of the world hold: nothing is sent twice unless that is safe, races are
    /// ended, and there is one outcome. All ends once the connection does.
    #[test]
    fn every_request_has_one_outcome(world in worlds()) {
        let run = Run::new(world.clone()).run();
        for request in &run.requests {
            // What was acknowledged before, by a peer that cannot be asked, ends with the transport's
            // keep-alive.
            let was_seen = request.seen_at.is_some() && !world.can_check;
            let waits_for_good = matches!(world.fate, Fate::FallsSilent(_))
                && (was_seen || world.races.iter().all(|(_, won)| !won));
            prop_assert!(
                request.outcome.is_some() || waits_for_good,
                "{:?}: {:?}", request.ask, request.outputs
            );
        }
    }

    /// No request that may be repeated waits longer for its answer than the delay, a race and the
    /// service, counted from when it was sent, or from when another request found no sign of life.
    #[test]
    fn no_request_waits_longer_than_its_delay_and_a_race(
        world in worlds().prop_map(|world| World {
            // The host is not busy, and the network is there.
            late: 0,
            races: world.races.iter().map(|(takes, _)| (*takes, true)).collect(),
            ..world
        })
    ) {
        let race = world.races.iter().map(|(takes, _)| *takes).max().unwrap_or(0);
        let run = Run::new(world.clone()).run();
        for request in run.requests.iter().filter(|request| request.ask.may_repeat) {
            let raced = request.ask.at + ceiling(&world) + race + 2;
            let longest = raced + world.rtt.max(20) + request.ask.service;
            let acknowledged = request.seen_at.is_some_and(|seen| seen <= raced);
            prop_assert!(
                request.outcome.is_some_and(|(end, _)| end <= longest) || acknowledged,
                "later than {longest}: {:?}", request.outputs
            );
        }
    }

    /// Nor does one that was acknowledged, by a host that can be asked and that dies then, wait
    /// longer for its answer than two questions, a race and the service: the first question may be
    /// answered just before that.
    #[test]
    fn no_request_waits_for_a_host_that_died_while_it_worked(
        world in worlds().prop_map(|world| World {
            late: 0,
            can_check: true,
            fate: match world.fate {
                Fate::FallsSilent(_) => world.fate,
                _ => Fate::FallsSilent(1000),
            },
            races: world.races.iter().map(|(takes, _)| (*takes, true)).collect(),
            ..world
        })
    ) {
        let Fate::FallsSilent(died) = world.fate else { unreachable!() };
        let answer = ceiling(&world).max(2000);
        let race = world.races.iter().map(|(takes, _)| *takes).max().unwrap_or(0);
        let run = Run::new(world.clone()).run();
        for request in run.requests.iter().filter(|request| request.ask.may_repeat) {
            let silent = died.max(request.ask.at) + world.rtt;
            let longest = silent + 2 * ceiling(&world) + (2000 + answer) + (4000 + answer)
                + race + world.rtt.max(20) + request.ask.service + 2;
            prop_assert!(
                request.outcome.is_some_and(|(end, _)| end <= longest),
                "later than {longest}: {:?}", request.outputs
            );
        }
    }

    /// On a path that acknowledges within the delay nothing is asked, raced or repeated, however
    /// slow the service and this host are, but for the documented check.
    #[test]
    fn a_healthy_path_carries_no_more_than_the_request(
        world in worlds().prop_map(|world| World { rtt: world.rtt.min(90), fate: Fate::Lives, ..world })
    ) {
        let run = Run::new(world.clone()).run();
        for request in &run.requests {
            let extra = |output: &Output| !matches!(
                output,
                Output::Send(Lane::Reused) | Output::Look | Output::Use(_) | Output::Timeout(_)
            );
            let found: Vec<_> =
                request.outputs.iter().map(|(_, output)| *output).filter(extra).collect();
            let checks = world.can_check && !request.ask.may_repeat && ms(world.idle) >= CHECK_AFTER;
            // While the service works, its host is asked after 2 s, and not again within 4 s.
            let questions = if world.can_check { request.ask.service / 2000 } else { 0 };
            let least = usize::from(checks);
            let most = least + usize::try_from(questions.min(1)).expect("few");
            prop_assert!((least..=most).contains(&found.len()), "{:?}", found);
            prop_assert!(found.iter().all(|output| *output == Output::Probe), "{:?}", found);
            let (end, outcome) = request.outcome.expect("an outcome");
            prop_assert_eq!(outcome, Output::Use(Lane::Reused));
            let check = if checks { ceiling(&world) + world.late } else { 0 };
            prop_assert!(end <= request.ask.at + check + world.rtt + request.ask.service + 2);
        }
    }

    /// The same inputs give the same outputs.
    #[test]
    fn the_outcome_is_determined(world in worlds()) {
        let outputs = |run: Run| -> Vec<_> {
            run.requests.into_iter().map(|request| request.outputs).collect()
        };
        prop_assert_eq!(outputs(Run::new(world.clone()).run()), outputs(Run::new(world).run()));
    }
}
