use proptest::prelude::*;

use super::*;

fn parse(octets: &[u8]) -> Result<PerfFrame, FrameError> {
    let (header, payload) = octets.split_first_chunk().expect("a header");
    assert_eq!(PerfFrame::payload_length(*header), Ok(payload.len()));
    PerfFrame::parse(header[0], payload)
}

/// One frame of each type.
fn each() -> Vec<PerfFrame> {
    let request = TestRequest { rate: 20_000_000, count: 7, ..TestRequest::default() };
    let micros = Duration::from_micros;
    let report = EndReport {
        received: 1 << 40,
        sent: 3,
        measured: micros(10_000_017),
        cpu: Some(micros(5)),
        retransmitted: None,
        rtt: Some(micros(0)),
    };
    let refusal =
        TestRefusal { kind: RefusalKind::Busy, text: "four tests – no more".to_owned() };
    let token = TestToken([7; 16]);
    vec![
        PerfFrame::Open(request),
        PerfFrame::Attach(token, 3),
        PerfFrame::Start,
        PerfFrame::Finished,
        PerfFrame::Stop,
        PerfFrame::Accepted(TestGrant { token, request, bytes: 9 }),
        PerfFrame::Refused(refusal),
        PerfFrame::Ready,
        PerfFrame::Interval(GoodputInterval { start: micros(1), length: micros(2), bytes: 3 }),
        PerfFrame::Summary(report, TestEnd::ByteLimit),
        PerfFrame::Ping(1),
        PerfFrame::Pong(u64::MAX),
    ]
}

#[test]
fn frames_survive_their_octets() {
    for frame in each() {
        assert_eq!(parse(&frame.encode()), Ok(frame));
    }
}

#[test]
fn a_frame_that_is_cut_or_longer_is_refused() {
    for frame in each() {
        let octets = frame.encode();
        let (kind, payload) = (octets[0], &octets[HEADER..]);
        for length in 0..payload.len() {
            // The text of a refusal may have any length.
            let is_refusal = matches!(frame, PerfFrame::Refused(_)) && length > 0;
            let parsed = PerfFrame::parse(kind, &payload[..length]);
            assert!(parsed.is_err() || is_refusal, "{frame:?} without its end: {parsed:?}");
        }
        let longer = [payload, b"\x01"].concat();
        assert!(PerfFrame::parse(kind, &longer).is_err(), "{frame:?}");
    }
}

#[test]
fn another_version_and_another_protocol_are_told_apart() {
    let mut octets = PerfFrame::Open(TestRequest::default()).encode();
    octets[HEADER + 5] = 2;
    assert_eq!(parse(&octets), Err(FrameError::Version(2)));
    octets[HEADER] = b'G';
    assert_eq!(parse(&octets), Err(FrameError::Magic));
    assert_eq!(PerfFrame::payload_length(*b"GET"), Err(FrameError::Type(b'G')));
    assert_eq!(PerfFrame::payload_length([OPEN, 255, 0]), Err(FrameError::TooLong(65_280)));
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let refusal = TestRefusal { kind: RefusalKind::Request, text: "é".repeat(200) };
    let Ok(PerfFrame::Refused(parsed)) = parse(&PerfFrame::Refused(refusal).encode()) else {
        panic!("it is a refusal")
    };
    assert_eq!(parsed.text, "é".repeat(MAX_TEXT / 2));
}

proptest! {
    /// Whatever parses has one encoding, so that nothing can hide in a frame.
    #[test]
    fn what_parses_is_what_was_sent(kind in 0_u8..24, payload in prop::collection::vec(any::<u8>(), 0..MAX_PAYLOAD)) {
        if let Ok(frame) = PerfFrame::parse(kind, &payload) {
            let octets = frame.encode();
            prop_assert_eq!((octets[0], &octets[HEADER..]), (kind, &payload[..]));
        }
    }
}
