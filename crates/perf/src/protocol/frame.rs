//! Frames: a type, a length, and a payload of exactly the fields of that type, in network byte order.
//!
//! | octets | field |
//! | --- | --- |
//! | 1 | type |
//! | 2 | length of the payload, at most [`MAX_PAYLOAD`] |
//! | length | payload |
//!
//! Times are whole microseconds in 8 octets. The first frame of each channel, `Open` or `Attach`, begins with the octets
//! `EYPF` and the version.

use std::time::Duration;

use super::TestEnd;
use super::goodput::GoodputInterval;
use super::measurement::EndReport;
use super::request::{TestDirection, TestRequest};

/// The version of the protocol.
pub const VERSION: u16 = 1;
/// The length of type and length.
pub const HEADER: usize = 3;
/// The longest payload.
pub const MAX_PAYLOAD: usize = 256;
/// The longest text of a refusal, in bytes.
pub const MAX_TEXT: usize = MAX_PAYLOAD - 1;

const MAGIC: [u8; 4] = *b"EYPF";
/// Stands for a value that is not known.
const UNKNOWN: u64 = u64::MAX;

/// Names a test; whoever knows it may attach channels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestToken(pub [u8; 16]);

impl std::fmt::Debug for TestToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It would let readers of a log attach channels.
        f.write_str("TestToken")
    }
}

/// Why a server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RefusalKind {
    /// As many tests are running as it allows.
    Busy = 0,
    /// It speaks another version of the protocol.
    Version = 1,
    /// The request cannot be a test.
    Request = 2,
    /// There is no such test to attach a channel to.
    NoTest = 3,
}

/// A server's refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRefusal {
    /// Why.
    pub kind: RefusalKind,
    /// The same for people, in at most [`MAX_TEXT`] bytes without control characters.
    pub text: String,
}

/// What a server grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestGrant {
    /// The name of the test.
    pub token: TestToken,
    /// The test, which may be shorter than was asked for.
    pub request: TestRequest,
    /// The most bytes of data in each direction.
    pub bytes: u64,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfFrame {
    /// Asks for a test; the first frame of a control channel.
    Open(TestRequest),
    /// Attaches a channel to a test; its first frame. Channel 0 carries pings, the others data.
    Attach(TestToken, u16),
    /// Begins the test.
    Start,
    /// The client has received for long enough.
    Finished,
    /// The client ends the test early.
    Stop,
    /// Grants a test.
    Accepted(TestGrant),
    /// Refuses a test.
    Refused(TestRefusal),
    /// All channels are attached.
    Ready,
    /// What the server has received in an interval.
    Interval(GoodputInterval),
    /// What the server has measured in the whole test; its last frame.
    Summary(EndReport, TestEnd),
    /// Is to be answered with a `Pong` of the same number, on channel 0.
    Ping(u64),
    /// Answers a `Ping`.
    Pong(u64),
}

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The type does not exist.
    #[error("there is no frame of type {0}")]
    Type(u8),
    /// The payload is longer than any.
    #[error("a frame of {0} bytes is too long")]
    TooLong(usize),
    /// The first frame does not begin as it must.
    #[error("the peer does not speak the protocol of eyas perf")]
    Magic,
    /// The version is not this one.
    #[error("the peer speaks version {0} of the protocol, not {VERSION}")]
    Version(u16),
    /// The payload is not what the type has.
    #[error("a frame of type {0} is malformed")]
    Malformed(u8),
}

const OPEN: u8 = 1;
const ATTACH: u8 = 2;
const START: u8 = 3;
const FINISHED: u8 = 4;
const STOP: u8 = 5;
const PING: u8 = 6;
const ACCEPTED: u8 = 16;
const REFUSED: u8 = 17;
const READY: u8 = 18;
const INTERVAL: u8 = 19;
const SUMMARY: u8 = 20;
const PONG: u8 = 21;

impl PerfFrame {
    /// Returns the octets of the frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        let kind = self.write(&mut payload);
        let mut octets = Vec::with_capacity(HEADER + payload.len());
        octets.push(kind);
        // Payloads are shorter than `MAX_PAYLOAD` by the fields that they have.
        octets.extend((payload.len() as u16).to_be_bytes());
        octets.extend(payload);
        octets
    }

    fn write(&self, out: &mut Vec<u8>) -> u8 {
        match self {
            Self::Open(request) => {
                begin(out);
                write_request(out, request);
                OPEN
            }
            Self::Attach(token, channel) => {
                begin(out);
                out.extend(token.0);
                out.extend(channel.to_be_bytes());
                ATTACH
            }
            Self::Start => START,
            Self::Finished => FINISHED,
            Self::Stop => STOP,
            Self::Ping(number) => {
                out.extend(number.to_be_bytes());
                PING
            }
            Self::Accepted(grant) => {
                out.extend(grant.token.0);
                write_request(out, &grant.request);
                out.extend(grant.bytes.to_be_bytes());
                ACCEPTED
            }
            Self::Refused(refusal) => {
                out.push(refusal.kind as u8);
                let text = &refusal.text;
                out.extend(&text.as_bytes()[..text.floor_char_boundary(MAX_TEXT)]);
                REFUSED
            }
            Self::Ready => READY,
            Self::Interval(interval) => {
                write_time(out, interval.start);
                write_time(out, interval.length);
                out.extend(interval.bytes.to_be_bytes());
                INTERVAL
            }
            Self::Summary(report, ended) => {
                write_report(out, report);
                out.push(*ended as u8);
                SUMMARY
            }
            Self::Pong(number) => {
                out.extend(number.to_be_bytes());
                PONG
            }
        }
    }

    /// Returns the length of the payload that follows this header.
    ///
    /// # Errors
    /// If there is no such frame.
    pub fn payload_length(header: [u8; HEADER]) -> Result<usize, FrameError> {
        let [kind, high, low] = header;
        if !matches!(kind, OPEN..=PING | ACCEPTED..=PONG) {
            return Err(FrameError::Type(kind));
        }
        match usize::from(u16::from_be_bytes([high, low])) {
            length if length > MAX_PAYLOAD => Err(FrameError::TooLong(length)),
            length => Ok(length),
        }
    }

    /// Parses the payload of a frame of this type. Every frame has exactly one encoding.
    ///
    /// # Errors
    /// If it is not such a frame, or one of another version.
    pub fn parse(kind: u8, payload: &[u8]) -> Result<Self, FrameError> {
        let malformed = FrameError::Malformed(kind);
        let mut fields = PayloadFields(payload);
        if matches!(kind, OPEN | ATTACH) {
            fields.begin()?;
        }
        let frame = fields.frame(kind).ok_or(malformed)?;
        match fields.0.is_empty() {
            true => Ok(frame),
            false => Err(malformed),
        }
    }
}

fn begin(out: &mut Vec<u8>) {
    out.extend(MAGIC);
    out.extend(VERSION.to_be_bytes());
}

fn write_time(out: &mut Vec<u8>, time: Duration) {
    let micros = u64::try_from(time.as_micros()).unwrap_or(UNKNOWN).min(UNKNOWN - 1);
    out.extend(micros.to_be_bytes());
}

fn write_request(out: &mut Vec<u8>, request: &TestRequest) {
    out.push(request.direction as u8);
    out.extend(request.streams.to_be_bytes());
    write_time(out, request.time);
    write_time(out, request.omit);
    write_time(out, request.interval);
    out.extend(request.count.to_be_bytes());
    out.extend(request.size.to_be_bytes());
    out.extend(request.rate.to_be_bytes());
}

fn write_report(out: &mut Vec<u8>, report: &EndReport) {
    let EndReport { received, sent, measured, cpu, retransmitted, rtt } = report;
    out.extend(received.to_be_bytes());
    out.extend(sent.to_be_bytes());
    write_time(out, *measured);
    for time in [cpu, rtt] {
        match time {
            Some(time) => write_time(out, *time),
            None => out.extend(UNKNOWN.to_be_bytes()),
        }
    }
    out.extend(retransmitted.unwrap_or(UNKNOWN).to_be_bytes());
}

/// The rest of a payload. `None` if it is too short or has an impossible value.
struct PayloadFields<'a>(&'a [u8]);

impl PayloadFields<'_> {
    fn frame(&mut self, kind: u8) -> Option<PerfFrame> {
        Some(match kind {
            OPEN => PerfFrame::Open(self.request()?),
            ATTACH => {
                PerfFrame::Attach(TestToken(self.octets()?), u16::from_be_bytes(self.octets()?))
            }
            START => PerfFrame::Start,
            FINISHED => PerfFrame::Finished,
            STOP => PerfFrame::Stop,
            PING => PerfFrame::Ping(self.number()?),
            ACCEPTED => {
                let token = TestToken(self.octets()?);
                PerfFrame::Accepted(TestGrant {
                    token,
                    request: self.request()?,
                    bytes: self.number()?,
                })
            }
            REFUSED => PerfFrame::Refused(self.refusal()?),
            READY => PerfFrame::Ready,
            INTERVAL => {
                let (start, length) = (self.time()?, self.time()?);
                PerfFrame::Interval(GoodputInterval { start, length, bytes: self.number()? })
            }
            SUMMARY => PerfFrame::Summary(self.report()?, TestEnd::try_from(self.octet()?).ok()?),
            PONG => PerfFrame::Pong(self.number()?),
            _ => return None,
        })
    }

    fn begin(&mut self) -> Result<(), FrameError> {
        if self.octets() != Some(MAGIC) {
            return Err(FrameError::Magic);
        }
        match self.octets().map(u16::from_be_bytes) {
            Some(VERSION) => Ok(()),
            Some(other) => Err(FrameError::Version(other)),
            None => Err(FrameError::Magic),
        }
    }

    fn request(&mut self) -> Option<TestRequest> {
        Some(TestRequest {
            direction: TestDirection::try_from(self.octet()?).ok()?,
            streams: u16::from_be_bytes(self.octets()?),
            time: self.time()?,
            omit: self.time()?,
            interval: self.time()?,
            count: self.number()?,
            size: u32::from_be_bytes(self.octets()?),
            rate: self.number()?,
        })
    }

    fn report(&mut self) -> Option<EndReport> {
        Some(EndReport {
            received: self.number()?,
            sent: self.number()?,
            measured: self.time()?,
            cpu: self.known()?.map(Duration::from_micros),
            rtt: self.known()?.map(Duration::from_micros),
            retransmitted: self.known()?,
        })
    }

    fn refusal(&mut self) -> Option<TestRefusal> {
        let kinds =
            [RefusalKind::Busy, RefusalKind::Version, RefusalKind::Request, RefusalKind::NoTest];
        let kind = *kinds.get(usize::from(self.octet()?))?;
        let text = std::str::from_utf8(std::mem::take(&mut self.0)).ok()?;
        // It is shown on a terminal.
        let is_text = !text.chars().any(char::is_control);
        is_text.then(|| TestRefusal { kind, text: text.to_owned() })
    }

    fn octets<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (octets, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*octets)
    }

    fn octet(&mut self) -> Option<u8> {
        self.octets().map(|[octet]| octet)
    }

    fn number(&mut self) -> Option<u64> {
        self.octets().map(u64::from_be_bytes)
    }

    fn known(&mut self) -> Option<Option<u64>> {
        self.number().map(|number| (number != UNKNOWN).then_some(number))
    }

    fn time(&mut self) -> Option<Duration> {
        self.known()?.map(Duration::from_micros)
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
