//! A peer's frames to one end of `eyas perf`, with whatever its streams and the clock do: what parses has one encoding,
//! each end is over in bounded time, and it has few outputs for each input.
#![no_main]

use std::time::Duration;

use eyas_perf::protocol::client_session::{ClientInput, ClientOutput, ClientSession};
use eyas_perf::protocol::frame::{
    FrameError, HEADER, MAX_PAYLOAD, PerfFrame, TestGrant, TestToken,
};
use eyas_perf::protocol::request::{ServerLimits, TestDirection, TestRequest};
use eyas_perf::protocol::server_session::{ServerInput, ServerOutput, ServerSession};
use eyas_perf::protocol::{EndReading, GRACE, MAX_IDLE, STEP_TIME};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<7> = Reach::new([
    "a frame",
    "a malformed frame",
    "another version",
    "a request to a server",
    "a summary of a server",
    "a grant to a client",
    "an outcome of a client",
]);

/// The most outputs between two waits.
const MAX_OUTPUTS: usize = 8;

/// Something that happens to either end.
enum Event {
    Frame(PerfFrame),
    Attached(u16),
    Reading(EndReading),
    SendingEnded,
    ReceivingEnded,
    Stop,
    Lost,
}

/// The rest of the input.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn octet(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Returns the next event, and the time until then.
    fn event(&mut self) -> Option<(Event, Duration)> {
        let passed = Duration::from_millis(u64::from(self.octet()?) * 40);
        let event = match self.octet()? % 8 {
            0..=1 => Event::Frame(self.frame()?),
            2 => Event::Attached(u16::from(self.octet()? % 4)),
            3 => Event::SendingEnded,
            4 => Event::ReceivingEnded,
            5 => Event::Stop,
            6 => Event::Lost,
            _ => {
                let counted = u64::from(self.octet()?) << (self.octet()? % 56);
                Event::Reading(EndReading {
                    received: counted,
                    sent: counted,
                    ..EndReading::default()
                })
            }
        };
        Some((event, passed))
    }

    /// Returns the next frame that can be parsed.
    fn frame(&mut self) -> Option<PerfFrame> {
        loop {
            let (header, rest) = self.0.split_first_chunk::<HEADER>()?;
            let length = match PerfFrame::payload_length(*header) {
                Ok(length) => length.min(rest.len()),
                Err(_) => {
                    REACH.hit("a malformed frame");
                    self.0 = rest;
                    continue;
                }
            };
            assert!(length <= MAX_PAYLOAD);
            let (payload, rest) = rest.split_at(length);
            self.0 = rest;
            match PerfFrame::parse(header[0], payload) {
                Ok(frame) => {
                    let encoded = frame.encode();
                    assert_eq!((encoded[0], &encoded[HEADER..]), (header[0], payload));
                    REACH.hit("a frame");
                    return Some(frame);
                }
                Err(FrameError::Version(_)) => REACH.hit("another version"),
                Err(_) => REACH.hit("a malformed frame"),
            }
        }
    }
}

fn serve(asked: TestRequest, script: &mut Script<'_>) {
    let Ok(asked) = asked.validated() else { return };
    REACH.hit("a request to a server");
    let limits =
        ServerLimits { time: Duration::from_secs(3), bytes: 1 << 40, ..ServerLimits::default() };
    let request = limits.grant(asked);
    request.validated().expect("what is granted is valid");
    let grant = TestGrant { token: TestToken([1; 16]), request, bytes: limits.bytes };
    let mut server = ServerSession::new(grant, Duration::ZERO);
    let longest = STEP_TIME + MAX_IDLE + request.duration() + GRACE * 2;
    let mut now = Duration::ZERO;
    while !server.is_over() {
        let mut outputs = 0;
        let until = loop {
            match server.poll_output(now) {
                ServerOutput::Timeout(until) => break until,
                ServerOutput::Send(PerfFrame::Summary(..)) => REACH.hit("a summary of a server"),
                _ => {}
            }
            outputs += 1;
            assert!(outputs <= MAX_OUTPUTS);
        };
        assert!(until >= now && now <= longest, "{now:?} of {longest:?}");
        let (event, passed) =
            script.event().unwrap_or((Event::Reading(EndReading::default()), Duration::MAX));
        now = until.min(now.saturating_add(passed));
        server.handle_input(
            now,
            match event {
                Event::Frame(frame) => ServerInput::Frame(frame),
                Event::Attached(channel) => ServerInput::Attached(channel),
                Event::Reading(reading) => ServerInput::Reading(reading),
                Event::SendingEnded => ServerInput::SendingEnded,
                Event::ReceivingEnded => ServerInput::ReceivingEnded,
                Event::Stop | Event::Lost => ServerInput::Lost,
            },
        );
    }
}

fn ask(direction: u8, script: &mut Script<'_>) {
    let request = TestRequest {
        direction: TestDirection::try_from(direction % 3).expect("one of three"),
        streams: 4,
        time: Duration::from_secs(2),
        count: u64::from(direction / 3 % 2),
        ..TestRequest::default()
    };
    let mut client = ClientSession::new(request, Duration::from_millis(100), Duration::ZERO);
    let longest = STEP_TIME * 2 + request.duration() + GRACE * 2;
    let mut now = Duration::ZERO;
    while !client.is_over() {
        let mut outputs = 0;
        let until = loop {
            match client.poll_output(now) {
                ClientOutput::Timeout(until) => break until,
                ClientOutput::Attach(_) => REACH.hit("a grant to a client"),
                _ => {}
            }
            outputs += 1;
            assert!(outputs <= MAX_OUTPUTS);
        };
        assert!(until >= now && now <= longest, "{now:?} of {longest:?}");
        let (event, passed) =
            script.event().unwrap_or((Event::Reading(EndReading::default()), Duration::MAX));
        now = until.min(now.saturating_add(passed));
        client.handle_input(
            now,
            match event {
                Event::Frame(frame) => ClientInput::Frame(frame),
                Event::Attached(0) => ClientInput::Attached,
                Event::Attached(_) => ClientInput::Begun,
                Event::Reading(reading) => ClientInput::Reading(reading),
                Event::SendingEnded => ClientInput::SendingEnded,
                Event::ReceivingEnded => ClientInput::ReceivingEnded,
                Event::Stop => ClientInput::Stop,
                Event::Lost => ClientInput::Lost,
            },
        );
    }
    loop {
        match client.poll_output(now) {
            ClientOutput::Timeout(_) => return,
            ClientOutput::End(Ok(outcome)) => {
                REACH.hit("an outcome of a client");
                let flows = outcome.up.iter().chain(&outcome.down);
                flows.for_each(|flow| assert!(flow.goodput().is_none_or(f64::is_finite)));
            }
            _ => {}
        }
    }
}

fuzz_target!(|octets: &[u8]| {
    REACH.begin();
    let mut script = Script(octets);
    match script.octet() {
        None => {}
        Some(0) => {
            if let Some(PerfFrame::Open(asked)) = script.frame() {
                serve(asked, &mut script);
            }
        }
        Some(direction) => ask(direction, &mut script),
    }
});
