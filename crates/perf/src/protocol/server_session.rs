//! The server's end of one test, once it has been granted.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::frame::{PerfFrame, TestGrant};
use super::measurement::EndMeasurement;
use super::{EndReading, EndReport, GRACE, MAX_IDLE, STEP_TIME, TestEnd};

/// How long the client may take to disconnect once it has the summary.
const CLOSE_TIME: Duration = Duration::from_secs(5);

/// What happens to the server's end.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerInput {
    /// A frame arrived on the control channel.
    Frame(PerfFrame),
    /// A channel was attached.
    Attached(u16),
    /// The current counters; due at each timeout, at the first byte and when something ends.
    Reading(EndReading),
    /// All messages have been sent, and the streams ended.
    SendingEnded,
    /// The client has ended all its streams, and everything was received.
    ReceivingEnded,
    /// The control channel or a data channel broke.
    Lost,
}

/// What the server's end is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOutput {
    /// Send this on the control channel.
    Send(PerfFrame),
    /// Begin to send and to receive data, as granted.
    Begin,
    /// Stop sending; go on receiving.
    StopSending,
    /// Close everything: the test is over.
    End(ServerOutcome),
    /// Nothing is left to do before this time.
    Timeout(Duration),
}

/// How a test ended at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerOutcome {
    /// What the server measured.
    pub report: EndReport,
    /// Why it ended; `None` if it never began.
    pub ended: Option<TestEnd>,
}

#[derive(Debug)]
enum ServerState {
    /// Channels are missing.
    Attaching {
        missing: BTreeSet<u16>,
    },
    /// All channels are there, and the client measures the idle path.
    Ready,
    Running(Box<ServerMeasuring>),
    /// The summary was sent.
    Closing(ServerOutcome),
    Over,
}

#[derive(Debug)]
struct ServerMeasuring {
    measurement: EndMeasurement,
    reading: EndReading,
    is_due: Duration,
    /// Whether the client still sends, as far as it counts.
    receives: bool,
    /// Whether the client still receives.
    sends: bool,
}

/// The server's end of one test. Its first frame is the grant.
///
/// Whatever the client sends, it ends: each state has a deadline.
#[derive(Debug)]
pub struct ServerSession {
    grant: TestGrant,
    state: ServerState,
    deadline: Duration,
    outputs: VecDeque<ServerOutput>,
}

impl ServerSession {
    /// Creates the session of a test that was granted. `grant.request` must be
    /// [valid](super::request::TestRequest::validated).
    pub fn new(grant: TestGrant, now: Duration) -> Self {
        let outputs = VecDeque::from([ServerOutput::Send(PerfFrame::Accepted(grant))]);
        let missing = (0..=grant.request.streams).collect();
        Self {
            grant,
            state: ServerState::Attaching { missing },
            deadline: now + STEP_TIME,
            outputs,
        }
    }

    /// Takes an input; then take all outputs.
    pub fn handle_input(&mut self, now: Duration, input: ServerInput) {
        match input {
            ServerInput::Frame(frame) => self.handle_frame(now, &frame),
            ServerInput::Attached(channel) => self.attached(now, channel),
            ServerInput::Reading(reading) => self.read(now, reading),
            ServerInput::SendingEnded => {}
            ServerInput::ReceivingEnded if self.grant.request.count == 0 => self.lost(now),
            ServerInput::ReceivingEnded => {
                if let ServerState::Running(running) = &mut self.state {
                    running.receives = false;
                    self.finish_if_done(now);
                }
            }
            ServerInput::Lost => self.lost(now),
        }
        if now >= self.deadline {
            self.deadline_passed(now);
        }
    }

    /// Returns the next thing to do, until that is to wait.
    pub fn poll_output(&mut self, now: Duration) -> ServerOutput {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        ServerOutput::Timeout(match &self.state {
            ServerState::Running(running) => running.is_due.min(self.deadline),
            // Even if nobody asks any more.
            ServerState::Over => now + STEP_TIME,
            _ => self.deadline,
        })
    }

    /// Returns whether the test has ended; the last output says how.
    pub fn is_over(&self) -> bool {
        matches!(self.state, ServerState::Over)
    }

    fn handle_frame(&mut self, now: Duration, frame: &PerfFrame) {
        match (&mut self.state, frame) {
            (ServerState::Ready, PerfFrame::Start) => self.begin(now),
            (ServerState::Running(running), PerfFrame::Finished) if running.sends => {
                running.sends = false;
                self.outputs.push_back(ServerOutput::StopSending);
                self.finish_if_done(now);
            }
            (ServerState::Running(_), PerfFrame::Stop) => self.finish(now, TestEnd::Stopped),
            (ServerState::Attaching { .. } | ServerState::Ready, PerfFrame::Stop) => self.end(None),
            // They may have crossed the summary.
            (ServerState::Closing(_), PerfFrame::Finished | PerfFrame::Stop) => {}
            (ServerState::Over, _) => {}
            // The client is not one.
            _ => self.lost(now),
        }
    }

    fn attached(&mut self, now: Duration, channel: u16) {
        let ServerState::Attaching { missing } = &mut self.state else { return self.lost(now) };
        if !missing.remove(&channel) {
            self.lost(now);
        } else if missing.is_empty() {
            self.outputs.push_back(ServerOutput::Send(PerfFrame::Ready));
            self.state = ServerState::Ready;
            self.deadline = now + MAX_IDLE;
        }
    }

    fn begin(&mut self, now: Duration) {
        let request = &self.grant.request;
        let receives = request.direction.has_up();
        self.state = ServerState::Running(Box::new(ServerMeasuring {
            measurement: EndMeasurement::new(request, receives, now),
            reading: EndReading::default(),
            is_due: now,
            receives,
            sends: request.direction.has_down(),
        }));
        self.deadline = now + request.duration() + GRACE;
        self.outputs.push_back(ServerOutput::Begin);
    }

    fn read(&mut self, now: Duration, reading: EndReading) {
        let ServerState::Running(running) = &mut self.state else { return };
        running.reading = reading;
        if let Some(interval) = running.measurement.look(now, reading) {
            self.outputs.push_back(ServerOutput::Send(PerfFrame::Interval(interval)));
        }
        running.is_due = running.measurement.next_look(now);
        running.receives &= !running.measurement.is_complete();
        if reading.received.max(reading.sent) > self.grant.bytes {
            self.finish(now, TestEnd::ByteLimit);
        } else {
            self.finish_if_done(now);
        }
    }

    fn finish_if_done(&mut self, now: Duration) {
        if let ServerState::Running(running) = &self.state
            && !running.receives
            && !running.sends
        {
            self.finish(now, TestEnd::Complete);
        }
    }

    /// Ends what is measured, and sends the summary.
    fn finish(&mut self, now: Duration, ended: TestEnd) {
        let ServerState::Running(running) = &mut self.state else { return };
        if let Some(interval) = running.measurement.end(now, running.reading) {
            self.outputs.push_back(ServerOutput::Send(PerfFrame::Interval(interval)));
        }
        let report = running.measurement.report();
        self.outputs.push_back(ServerOutput::StopSending);
        self.outputs.push_back(ServerOutput::Send(PerfFrame::Summary(report, ended)));
        self.state = ServerState::Closing(ServerOutcome { report, ended: Some(ended) });
        self.deadline = now + CLOSE_TIME;
    }

    /// Handles the end of a channel.
    fn lost(&mut self, now: Duration) {
        match &self.state {
            ServerState::Running(_) => {
                self.finish(now, TestEnd::Lost);
                self.close();
            }
            ServerState::Closing(_) => self.close(),
            ServerState::Attaching { .. } | ServerState::Ready => self.end(None),
            ServerState::Over => {}
        }
    }

    fn deadline_passed(&mut self, now: Duration) {
        match &self.state {
            ServerState::Running(_) => self.finish(now, TestEnd::Late),
            ServerState::Closing(_) => self.close(),
            ServerState::Attaching { .. } | ServerState::Ready => self.end(None),
            ServerState::Over => {}
        }
    }

    fn close(&mut self) {
        if let ServerState::Closing(outcome) = self.state {
            self.end(Some(outcome));
        }
    }

    fn end(&mut self, outcome: Option<ServerOutcome>) {
        let never = ServerOutcome { report: EndReport::default(), ended: None };
        self.outputs.push_back(ServerOutput::End(outcome.unwrap_or(never)));
        self.state = ServerState::Over;
        self.deadline = Duration::MAX;
    }
}
