//! The client's end of one test.

use std::collections::VecDeque;
use std::time::Duration;

use super::frame::{PerfFrame, TestGrant, TestRefusal};
use super::goodput::GoodputInterval;
use super::measurement::EndMeasurement;
use super::request::{MAX_INTERVALS, TestRequest};
use super::statistics::FlowReport;
use super::{EndReading, EndReport, GRACE, STEP_TIME, TestEnd};

/// How long the server may take for its summary once the client has stopped.
const SUMMARY_TIME: Duration = Duration::from_secs(2);

/// What happens to the client's end.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientInput {
    /// A frame arrived on the control channel.
    Frame(PerfFrame),
    /// All channels were opened and attached.
    Attached,
    /// Data flows, as [`ClientOutput::Begin`] asked for: from now on, readings count.
    Begun,
    /// The current counters; due at each timeout, at the first byte and when something ends.
    Reading(EndReading),
    /// All messages have been sent, and the streams ended.
    SendingEnded,
    /// The server has ended all its streams, and everything was received.
    ReceivingEnded,
    /// The user stops the test.
    Stop,
    /// The control channel or a data channel broke.
    Lost,
}

/// What the client's end is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientOutput {
    /// Send this on the control channel.
    Send(PerfFrame),
    /// Open channel 0 and a channel for each stream, and attach them.
    Attach(TestGrant),
    /// Begin to ping, on the idle path.
    PingIdle,
    /// Begin to send and to receive data, as granted, once the transport has accepted the frames before this; pings go
    /// on.
    Begin,
    /// From now on the test counts, with its pings.
    Measure,
    /// Something was received in an interval: by the client, or by the server (`up`).
    Interval {
        /// Whether it was the client's data.
        up: bool,
        /// What was received.
        interval: GoodputInterval,
    },
    /// Stop sending and pinging.
    StopSending,
    /// Close everything: the test is over.
    End(Result<Box<TestOutcome>, TestFailure>),
    /// Nothing is left to do before this time.
    Timeout(Duration),
}

/// What a test measured.
#[derive(Clone, Debug, PartialEq)]
pub struct TestOutcome {
    /// What was granted.
    pub grant: TestGrant,
    /// How it ended, as the server says; if it does not, as the client saw it.
    pub ended: TestEnd,
    /// The client's own counters.
    pub client: EndReport,
    /// The server's; `None` if its summary never came.
    pub server: Option<EndReport>,
    /// What the server received.
    pub up: Option<FlowReport>,
    /// What the client received.
    pub down: Option<FlowReport>,
}

/// Why there is no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TestFailure {
    /// The server refused the test.
    #[error("the server refused: {}", .0.text)]
    Refused(TestRefusal),
    /// The server has not answered in time.
    #[error("the server took more than {time} s to {0}", time = STEP_TIME.as_secs())]
    Silent(&'static str),
    /// The connection broke before the test began.
    #[error("the server closed the connection before the test began")]
    Lost,
    /// The server's frames make no sense.
    #[error("the server does not follow the protocol: {0}")]
    Violation(&'static str),
    /// A further channel could not be opened.
    #[error("a further stream could not be opened: {0}")]
    Channel(String),
    /// The user stopped the test before it began.
    #[error("interrupted")]
    Stopped,
}

#[derive(Debug)]
enum ClientState {
    Opening,
    /// Channels are being attached; both ends say when that is done.
    Attaching {
        grant: TestGrant,
        is_attached: bool,
        is_ready: bool,
    },
    Idle(TestGrant),
    Running(Box<ClientMeasuring>),
    Over,
}

#[derive(Debug)]
struct ClientMeasuring {
    grant: TestGrant,
    /// `None` until data flows.
    measurement: Option<EndMeasurement>,
    /// Whether [`ClientOutput::Measure`] is due, and when.
    warm: Option<Duration>,
    reading: EndReading,
    is_due: Duration,
    /// Whether this end still receives.
    receives: bool,
    was_stopped: bool,
    summary: Option<(EndReport, TestEnd)>,
    up: Vec<GoodputInterval>,
    down: Vec<GoodputInterval>,
}

/// The client's end of one test. Its first frame is the request.
#[derive(Debug)]
pub struct ClientSession {
    request: TestRequest,
    idle: Duration,
    state: ClientState,
    deadline: Duration,
    outputs: VecDeque<ClientOutput>,
}

impl ClientSession {
    /// Creates the session of a [valid](TestRequest::validated) request. Before data flows, the idle path is pinged for
    /// `idle`.
    pub fn new(request: TestRequest, idle: Duration, now: Duration) -> Self {
        let outputs = VecDeque::from([ClientOutput::Send(PerfFrame::Open(request))]);
        Self { request, idle, state: ClientState::Opening, deadline: now + STEP_TIME, outputs }
    }

    /// Takes an input; then take all outputs.
    pub fn handle_input(&mut self, now: Duration, input: ClientInput) {
        match input {
            ClientInput::Frame(frame) => self.handle_frame(now, frame),
            ClientInput::Attached => {
                if let ClientState::Attaching { is_attached, .. } = &mut self.state {
                    *is_attached = true;
                    self.begin_idle(now);
                }
            }
            ClientInput::Begun => self.begun(now),
            ClientInput::SendingEnded => {}
            ClientInput::Reading(reading) => self.read(now, reading),
            ClientInput::ReceivingEnded if self.request.count == 0 => self.lost(now),
            ClientInput::ReceivingEnded => self.received_all(now),
            ClientInput::Stop => self.stop(now),
            ClientInput::Lost => self.lost(now),
        }
        if now >= self.deadline {
            self.deadline_passed(now);
        }
    }

    /// Returns the next thing to do, until that is to wait.
    pub fn poll_output(&mut self, now: Duration) -> ClientOutput {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        ClientOutput::Timeout(match &self.state {
            ClientState::Running(running) => running.is_due.min(self.deadline),
            // Even if nobody asks any more.
            ClientState::Over => now + STEP_TIME,
            _ => self.deadline,
        })
    }

    /// Returns what was granted; `None` before that and when the test is over.
    pub fn granted(&self) -> Option<TestRequest> {
        match &self.state {
            ClientState::Opening | ClientState::Over => None,
            ClientState::Attaching { grant, .. } | ClientState::Idle(grant) => Some(grant.request),
            ClientState::Running(running) => Some(running.grant.request),
        }
    }

    /// Returns whether the test has ended; the last output says how.
    pub fn is_over(&self) -> bool {
        matches!(self.state, ClientState::Over)
    }

    fn handle_frame(&mut self, now: Duration, frame: PerfFrame) {
        match (&mut self.state, frame) {
            (ClientState::Opening, PerfFrame::Accepted(grant)) => {
                if !grant.request.is_within(&self.request) {
                    return self.violated("it grants something else than was asked for");
                }
                self.outputs.push_back(ClientOutput::Attach(grant));
                self.state = ClientState::Attaching { grant, is_attached: false, is_ready: false };
                self.deadline = now + STEP_TIME;
            }
            (ClientState::Opening | ClientState::Attaching { .. }, PerfFrame::Refused(refusal)) => {
                self.fail(TestFailure::Refused(refusal));
            }
            (ClientState::Attaching { is_ready, .. }, PerfFrame::Ready) if !*is_ready => {
                *is_ready = true;
                self.begin_idle(now);
            }
            (ClientState::Running(running), PerfFrame::Interval(interval)) => {
                let expected = running.up.last().map_or(Duration::ZERO, end_of);
                let has_up = running.grant.request.direction.has_up();
                if !has_up || interval.start != expected || running.up.len() as u128 > MAX_INTERVALS
                {
                    return self.violated("its intervals are not in order");
                }
                running.up.push(interval);
                self.outputs.push_back(ClientOutput::Interval { up: true, interval });
            }
            (ClientState::Running(running), PerfFrame::Summary(report, ended))
                if running.summary.is_none() =>
            {
                running.summary = Some((report, ended));
                self.outputs.push_back(ClientOutput::StopSending);
                if ended != TestEnd::Complete {
                    running.receives = false;
                }
                self.end_if_done(now);
            }
            (ClientState::Over, _) => {}
            _ => self.violated("a frame came at the wrong time"),
        }
    }

    fn begin_idle(&mut self, now: Duration) {
        if let ClientState::Attaching { grant, is_attached: true, is_ready: true } = self.state {
            self.state = ClientState::Idle(grant);
            self.outputs.push_back(ClientOutput::PingIdle);
            self.deadline = now + self.idle;
        }
    }

    fn begin(&mut self, now: Duration) {
        let ClientState::Idle(grant) = self.state else { return };
        let request = &grant.request;
        let receives = request.direction.has_down();
        self.outputs.push_back(ClientOutput::Send(PerfFrame::Start));
        self.outputs.push_back(ClientOutput::Begin);
        self.deadline = now + request.duration() + GRACE + SUMMARY_TIME;
        self.state = ClientState::Running(Box::new(ClientMeasuring {
            grant,
            measurement: None,
            warm: None,
            reading: EndReading::default(),
            is_due: Duration::MAX,
            receives,
            was_stopped: false,
            summary: None,
            up: Vec::new(),
            down: Vec::new(),
        }));
    }

    fn begun(&mut self, now: Duration) {
        let ClientState::Running(running) = &mut self.state else { return };
        if running.measurement.is_none() {
            let request = &running.grant.request;
            running.measurement = Some(EndMeasurement::new(request, running.receives, now));
            running.warm = Some(now + request.omit);
            running.is_due = now;
        }
    }

    fn read(&mut self, now: Duration, reading: EndReading) {
        let ClientState::Running(running) = &mut self.state else { return };
        let Some(measurement) = &mut running.measurement else { return };
        running.reading = reading;
        if running.warm.take_if(|warm| now >= *warm).is_some() {
            self.outputs.push_back(ClientOutput::Measure);
        }
        if let Some(interval) = measurement.look(now, reading) {
            running.down.push(interval);
            self.outputs.push_back(ClientOutput::Interval { up: false, interval });
        }
        running.is_due = measurement.next_look(now);
        if measurement.is_complete() {
            self.received_all(now);
        }
    }

    fn received_all(&mut self, now: Duration) {
        if let ClientState::Running(running) = &mut self.state
            && std::mem::take(&mut running.receives)
        {
            self.outputs.push_back(ClientOutput::Send(PerfFrame::Finished));
            self.end_if_done(now);
        }
    }

    fn lost(&mut self, now: Duration) {
        match &self.state {
            ClientState::Running(_) => self.end(now, TestEnd::Lost),
            ClientState::Over => {}
            _ => self.fail(TestFailure::Lost),
        }
    }

    fn stop(&mut self, now: Duration) {
        match &mut self.state {
            ClientState::Running(running) if running.was_stopped => self.end(now, TestEnd::Stopped),
            ClientState::Running(running) => {
                running.was_stopped = true;
                running.receives = false;
                self.outputs.push_back(ClientOutput::StopSending);
                self.outputs.push_back(ClientOutput::Send(PerfFrame::Stop));
                self.deadline = now + SUMMARY_TIME;
                self.end_if_done(now);
            }
            ClientState::Over => {}
            _ => self.fail(TestFailure::Stopped),
        }
    }

    fn end_if_done(&mut self, now: Duration) {
        if let ClientState::Running(running) = &self.state
            && let (false, Some((_, ended))) = (running.receives, running.summary)
        {
            self.end(now, ended);
        }
    }

    fn end(&mut self, now: Duration, ended: TestEnd) {
        let ClientState::Running(mut running) =
            std::mem::replace(&mut self.state, ClientState::Over)
        else {
            return;
        };
        let reading = running.reading;
        let rest =
            running.measurement.as_mut().and_then(|measurement| measurement.end(now, reading));
        running.down.extend(rest);
        let direction = running.grant.request.direction;
        let interval = running.grant.request.interval;
        let flow = |has: bool, intervals| has.then(|| FlowReport::new(intervals, interval));
        self.outputs.push_back(ClientOutput::End(Ok(Box::new(TestOutcome {
            grant: running.grant,
            ended: if running.was_stopped { TestEnd::Stopped } else { ended },
            client: running.measurement.as_ref().map(EndMeasurement::report).unwrap_or_default(),
            server: running.summary.map(|(report, _)| report),
            up: flow(direction.has_up(), running.up),
            down: flow(direction.has_down(), running.down),
        }))));
        self.deadline = Duration::MAX;
    }

    fn deadline_passed(&mut self, now: Duration) {
        match &self.state {
            ClientState::Idle(_) => self.begin(now),
            ClientState::Running(_) => self.end(now, TestEnd::Late),
            ClientState::Opening => self.fail(TestFailure::Silent("answer")),
            ClientState::Attaching { .. } => self.fail(TestFailure::Silent("accept all streams")),
            ClientState::Over => {}
        }
    }

    fn violated(&mut self, what: &'static str) {
        self.fail(TestFailure::Violation(what));
    }

    fn fail(&mut self, failure: TestFailure) {
        self.outputs.push_back(ClientOutput::End(Err(failure)));
        self.state = ClientState::Over;
        self.deadline = Duration::MAX;
    }
}

fn end_of(interval: &GoodputInterval) -> Duration {
    interval.start.saturating_add(interval.length)
}
