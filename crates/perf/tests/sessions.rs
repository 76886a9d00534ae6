//! Both ends of a test as state machines: against each other in virtual time, and against anything.

use std::collections::BTreeMap;
use std::time::Duration;

use eyas_perf::protocol::client_session::{
    ClientInput, ClientOutput, ClientSession, TestFailure, TestOutcome,
};
use eyas_perf::protocol::frame::{PerfFrame, RefusalKind, TestGrant, TestRefusal, TestToken};
use eyas_perf::protocol::goodput::GoodputInterval;
use eyas_perf::protocol::request::{ServerLimits, TestDirection, TestRequest};
use eyas_perf::protocol::server_session::{
    ServerInput, ServerOutcome, ServerOutput, ServerSession,
};
use eyas_perf::protocol::{EndReading, EndReport, GRACE, MAX_IDLE, STEP_TIME, TestEnd};
use proptest::prelude::*;

const TOKEN: TestToken = TestToken([5; 16]);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A client and a server with a path between them that takes `delay` in each direction, in virtual time.
struct World {
    now: Duration,
    delay: Duration,
    /// Bytes per millisecond in each direction.
    rate: u64,
    client: ClientSession,
    server: Option<ServerSession>,
    limits: ServerLimits,
    /// What arrives when, in order of sending.
    arrivals: BTreeMap<(Duration, u64), Arrival>,
    sent: u64,
    /// When the ends began to send.
    flowing: [Option<Duration>; 2],
    outcome: Option<Result<Box<TestOutcome>, TestFailure>>,
    server_outcome: Option<ServerOutcome>,
}

enum Arrival {
    ToServer(PerfFrame),
    ToClient(PerfFrame),
    Attached(u16),
    AllAttached,
    Closed,
}

impl World {
    fn new(request: TestRequest, limits: ServerLimits, delay: Duration, rate: u64) -> Self {
        Self {
            now: Duration::ZERO,
            delay,
            rate,
            client: ClientSession::new(request, millis(200), Duration::ZERO),
            server: None,
            limits,
            arrivals: BTreeMap::new(),
            sent: 0,
            flowing: [None; 2],
            outcome: None,
            server_outcome: None,
        }
    }

    fn send(&mut self, arrival: Arrival) {
        self.sent += 1;
        self.arrivals.insert((self.now + self.delay, self.sent), arrival);
    }

    /// Returns the counters of an end: 0 is the client.
    fn reading(&self, end: usize) -> EndReading {
        let flowed = |from: usize, late: Duration| {
            let begin = self.flowing[from].map(|begin| begin + late);
            begin.map_or(0, |begin| self.now.saturating_sub(begin).as_millis() as u64 * self.rate)
        };
        let received = flowed(1 - end, self.delay);
        EndReading { received, sent: flowed(end, Duration::ZERO), ..EndReading::default() }
    }

    /// Lets both do what they have to, and returns when they have something to do next.
    fn drain(&mut self) -> Duration {
        let mut until = Duration::MAX;
        loop {
            match self.client.poll_output(self.now) {
                ClientOutput::Send(frame) => self.send(Arrival::ToServer(frame)),
                ClientOutput::Attach(grant) => {
                    for number in 0..=grant.request.streams {
                        self.send(Arrival::Attached(number));
                    }
                    let round_trip = (self.now + self.delay * 2, u64::MAX);
                    self.arrivals.insert(round_trip, Arrival::AllAttached);
                }
                ClientOutput::Begin => {
                    let has_up =
                        self.client.granted().is_some_and(|granted| granted.direction.has_up());
                    self.flowing[0] = has_up.then_some(self.now);
                    self.client.handle_input(self.now, ClientInput::Begun);
                }
                ClientOutput::End(outcome) => {
                    self.outcome = Some(outcome);
                    self.send(Arrival::Closed);
                }
                ClientOutput::Timeout(at) => {
                    until = until.min(at);
                    break;
                }
                _ => {}
            }
        }
        while let Some(server) = &mut self.server {
            match server.poll_output(self.now) {
                ServerOutput::Send(frame) => self.send(Arrival::ToClient(frame)),
                ServerOutput::Begin => self.flowing[1] = Some(self.now),
                ServerOutput::End(outcome) => self.server_outcome = Some(outcome),
                ServerOutput::Timeout(at) => return until.min(at),
                ServerOutput::StopSending => {}
            }
        }
        until
    }

    fn arrive(&mut self, arrival: Arrival) {
        let (now, readings) = (self.now, [self.reading(0), self.reading(1)]);
        let to_client = match arrival {
            Arrival::ToServer(PerfFrame::Open(asked)) => {
                let request = self.limits.grant(asked);
                let grant = TestGrant { token: TOKEN, request, bytes: self.limits.bytes };
                self.server = Some(ServerSession::new(grant, now));
                return;
            }
            Arrival::ToClient(frame) => ClientInput::Frame(frame),
            Arrival::AllAttached => ClientInput::Attached,
            to_server => {
                let Some(server) = &mut self.server else { return };
                server.handle_input(now, ServerInput::Reading(readings[1]));
                server.handle_input(
                    now,
                    match to_server {
                        Arrival::ToServer(frame) => ServerInput::Frame(frame),
                        Arrival::Attached(number) => ServerInput::Attached(number),
                        _ => ServerInput::Lost,
                    },
                );
                return;
            }
        };
        self.client.handle_input(now, ClientInput::Reading(readings[0]));
        self.client.handle_input(now, to_client);
    }

    /// Runs until both have ended.
    fn run(mut self) -> (Result<Box<TestOutcome>, TestFailure>, ServerOutcome) {
        for _ in 0..100_000 {
            let until = self.drain();
            // The first byte is an event of its own.
            let first = self.flowing.iter().flatten().map(|begin| *begin + self.delay + millis(1));
            let until = first.filter(|first| *first > self.now).min().unwrap_or(until).min(until);
            if let (Some(outcome), Some(server)) = (&self.outcome, self.server_outcome) {
                return (outcome.clone(), server);
            }
            match self.arrivals.first_entry() {
                Some(first) if first.key().0 <= until => {
                    let ((at, _), arrival) = first.remove_entry();
                    self.now = self.now.max(at);
                    self.arrive(arrival);
                }
                _ => {
                    assert!(until >= self.now, "a timer is never in the past");
                    self.now = until;
                    let readings = [self.reading(0), self.reading(1)];
                    self.client.handle_input(self.now, ClientInput::Reading(readings[0]));
                    if let Some(server) = &mut self.server {
                        server.handle_input(self.now, ServerInput::Reading(readings[1]));
                    }
                }
            }
        }
        panic!("it does not end");
    }
}

#[test]
fn a_client_gets_what_it_asks_for() {
    let request = TestRequest {
        direction: TestDirection::AtOnce,
        time: millis(1_000),
        omit: millis(300),
        interval: millis(250),
        ..TestRequest::default()
    };
    let world = World::new(request, ServerLimits::default(), millis(20), 1_000);
    let (outcome, server) = world.run();
    let outcome = outcome.expect("an outcome");
    assert_eq!((outcome.ended, server.ended), (TestEnd::Complete, Some(TestEnd::Complete)));
    for flow in [outcome.up.expect("up"), outcome.down.expect("down")] {
        assert_eq!(flow.intervals.len(), 4);
        assert_eq!((flow.bytes(), flow.duration()), (1_000_000, millis(1_000)));
    }
    assert_eq!(outcome.server.map(|server| server.received), Some(1_000_000));
}

#[test]
fn a_refusal_is_what_the_server_says() {
    let mut client = ClientSession::new(TestRequest::default(), Duration::ZERO, Duration::ZERO);
    let refusal = TestRefusal { kind: RefusalKind::Busy, text: "later".to_owned() };
    client.handle_input(millis(1), ClientInput::Frame(PerfFrame::Refused(refusal.clone())));
    assert_eq!(
        client.poll_output(millis(1)),
        ClientOutput::Send(PerfFrame::Open(TestRequest::default()))
    );
    let failure = TestFailure::Refused(refusal);
    assert_eq!(failure.to_string(), "the server refused: later");
    assert_eq!(client.poll_output(millis(1)), ClientOutput::End(Err(failure)));
}

fn direction() -> impl Strategy<Value = TestDirection> {
    prop_oneof![Just(TestDirection::Up), Just(TestDirection::Down), Just(TestDirection::AtOnce)]
}

fn request() -> impl Strategy<Value = TestRequest> {
    (direction(), 1_u16..5, 10_u64..3_000, 0_u64..1_000, 10_u64..1_500).prop_map(
        |(direction, streams, time, omit, interval)| TestRequest {
            direction,
            streams,
            time: millis(time),
            omit: millis(omit),
            interval: millis(interval),
            ..TestRequest::default()
        },
    )
}

fn frame() -> impl Strategy<Value = PerfFrame> {
    let micros = |micros: u64| Duration::from_micros(micros);
    prop_oneof![
        Just(PerfFrame::Start),
        Just(PerfFrame::Finished),
        Just(PerfFrame::Stop),
        Just(PerfFrame::Ready),
        Just(PerfFrame::Open(TestRequest::default())),
        Just(PerfFrame::Attach(TOKEN, 1)),
        any::<u64>().prop_map(PerfFrame::Ping),
        (request(), any::<u64>()).prop_map(|(request, bytes)| {
            PerfFrame::Accepted(TestGrant { token: TOKEN, request, bytes })
        }),
        (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(move |(start, length, bytes)| {
            PerfFrame::Interval(GoodputInterval {
                start: micros(start),
                length: micros(length),
                bytes,
            })
        }),
        (any::<u64>(), any::<u64>(), 0_u8..5).prop_map(move |(received, measured, ended)| {
            let measured = micros(measured);
            let ended = TestEnd::try_from(ended).expect("a code");
            PerfFrame::Summary(EndReport { received, measured, ..EndReport::default() }, ended)
        }),
    ]
}

fn reading() -> impl Strategy<Value = EndReading> {
    (any::<u64>(), any::<u64>(), any::<Option<u64>>()).prop_map(
        |(received, sent, retransmitted)| EndReading {
            received,
            sent,
            retransmitted,
            ..EndReading::default()
        },
    )
}

fn server_input() -> impl Strategy<Value = ServerInput> {
    prop_oneof![
        4 => frame().prop_map(ServerInput::Frame),
        4 => (0_u16..4).prop_map(ServerInput::Attached),
        4 => reading().prop_map(ServerInput::Reading),
        1 => Just(ServerInput::SendingEnded),
        1 => Just(ServerInput::ReceivingEnded),
        1 => Just(ServerInput::Lost),
    ]
}

fn client_input() -> impl Strategy<Value = ClientInput> {
    prop_oneof![
        8 => frame().prop_map(ClientInput::Frame),
        1 => Just(ClientInput::Attached),
        2 => Just(ClientInput::Begun),
        4 => reading().prop_map(ClientInput::Reading),
        1 => Just(ClientInput::SendingEnded),
        1 => Just(ClientInput::ReceivingEnded),
        1 => Just(ClientInput::Stop),
        1 => Just(ClientInput::Lost),
    ]
}

proptest! {
    #[test]
    fn every_valid_test_is_completed(
        request in request(),
        delay in 0_u64..400,
        rate in 1_u64..100_000,
        most in 50_u64..3_000,
    ) {
        let limits = ServerLimits { time: millis(most), bytes: u64::MAX, ..ServerLimits::default() };
        let (outcome, server) = World::new(request, limits, millis(delay), rate).run();
        let outcome = outcome.expect("an outcome");
        prop_assert_eq!(outcome.ended, TestEnd::Complete);
        prop_assert_eq!(server.ended, Some(TestEnd::Complete));
        let granted = outcome.grant.request;
        prop_assert!(granted.duration() <= limits.time);
        for flow in outcome.up.iter().chain(&outcome.down) {
            prop_assert!(flow.duration() >= granted.time, "{:?}", flow);
            // A millisecond of data is counted when it is complete.
            let expected = flow.duration().as_millis() as u64 * rate;
            prop_assert!(flow.bytes().abs_diff(expected) <= 2 * rate, "{:?} {}", flow, expected);
        }
        prop_assert_eq!(outcome.up.map(|flow| flow.bytes()), request.direction.has_up().then_some(server.report.received));
    }

    /// Whatever a client does, its place is free again after the longest that it may have it.
    #[test]
    fn the_server_ends_whatever_the_client_does(
        request in request(),
        steps in prop::collection::vec((server_input(), 0_u64..5_000), 0..60),
    ) {
        let grant = TestGrant { token: TOKEN, request, bytes: 1 << 62 };
        let mut server = ServerSession::new(grant, Duration::ZERO);
        let longest = STEP_TIME + MAX_IDLE + request.duration() + GRACE + millis(5_000);
        let (mut now, mut ends, mut summaries) = (Duration::ZERO, 0, 0);
        let mut steps = steps.into_iter();
        for number in 0.. {
            let mut outputs = 0;
            let until = loop {
                match server.poll_output(now) {
                    ServerOutput::Timeout(until) => break until,
                    ServerOutput::End(_) => ends += 1,
                    ServerOutput::Send(PerfFrame::Summary(..)) => summaries += 1,
                    _ => prop_assert_eq!(ends, 0, "nothing comes after the end"),
                }
                outputs += 1;
                prop_assert!(outputs <= 6);
            };
            prop_assert!(until >= now, "a timer is never in the past");
            prop_assert!(number < 2_000, "a timer that fires makes progress");
            if ends > 0 && number > 80 {
                break;
            }
            let input = match steps.next() {
                Some((input, passed)) => {
                    now = until.min(now + millis(passed));
                    input
                }
                None => {
                    now = until;
                    ServerInput::Reading(EndReading::default())
                }
            };
            server.handle_input(now, input);
            prop_assert!(ends > 0 || now <= longest, "it is not over after {now:?}");
        }
        prop_assert_eq!(ends, 1);
        prop_assert!(summaries <= 1);
        prop_assert!(server.is_over());
    }

    #[test]
    fn the_client_ends_whatever_the_server_does(
        request in request(),
        steps in prop::collection::vec((client_input(), 0_u64..5_000), 0..60),
    ) {
        let mut client = ClientSession::new(request, millis(100), Duration::ZERO);
        let longest = STEP_TIME * 2 + request.duration() + GRACE + millis(5_000);
        let (mut now, mut ends) = (Duration::ZERO, 0);
        let mut steps = steps.into_iter();
        for number in 0.. {
            let mut outputs = 0;
            let until = loop {
                match client.poll_output(now) {
                    ClientOutput::Timeout(until) => break until,
                    ClientOutput::End(_) => ends += 1,
                    _ => prop_assert_eq!(ends, 0, "nothing comes after the end"),
                }
                outputs += 1;
                prop_assert!(outputs <= 8);
            };
            prop_assert!(until >= now, "a timer is never in the past");
            prop_assert!(number < 2_000, "a timer that fires makes progress");
            if ends > 0 && number > 80 {
                break;
            }
            let input = match steps.next() {
                Some((input, passed)) => {
                    now = until.min(now + millis(passed));
                    input
                }
                None => {
                    now = until;
                    ClientInput::Reading(EndReading::default())
                }
            };
            client.handle_input(now, input);
            prop_assert!(ends > 0 || now <= longest, "it is not over after {now:?}");
        }
        prop_assert_eq!(ends, 1);
        prop_assert!(client.is_over());
    }
}
