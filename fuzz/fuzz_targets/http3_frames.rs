//! Arbitrary octets as a stream of HTTP/3: what is handed on does not depend on how the transport cut
//! the stream, is the stream without its empty DATA frames, and grows by nothing.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/http/src/quic_streams/frames.rs"]
mod frames;

mod reach;

use reach::Reach;

use frames::{FRAME_SLACK, FrameError, Frames};

/// The longest head of a frame, which is all that is kept of a stream.
const LONGEST_HEAD: usize = 16;

/// What was handed on, and how the stream ended.
fn pass(mut frames: Frames, stream: &[u8], cuts: &[u8]) -> (Vec<u8>, Result<(), FrameError>) {
    let mut passed = Vec::new();
    let mut rest = stream;
    let mut cuts = cuts.iter().cycle();
    while !rest.is_empty() {
        let length = usize::from(*cuts.next().unwrap_or(&255)).clamp(1, rest.len());
        let (chunk, after) = rest.split_at(length);
        rest = after;
        let mut chunk = Bytes::copy_from_slice(chunk);
        loop {
            let before = chunk.len();
            match frames.next(&mut chunk) {
                Ok(Some(piece)) => {
                    assert!(!piece.is_empty(), "h3 takes nothing for the end");
                    assert!(piece.len() <= before.max(LONGEST_HEAD));
                    passed.extend_from_slice(&piece);
                }
                Ok(None) => break assert!(chunk.is_empty()),
                Err(error) => return (passed, Err(error)),
            }
        }
    }
    let end = frames.end().map(|rest| passed.extend_from_slice(&rest.unwrap_or_default()));
    (passed, end)
}

static REACH: Reach<7> = Reach::new([
    "frames of a request are handed on",
    "frames of the control stream are handed on",
    "another stream is handed on",
    "an empty DATA frame is left out",
    "an empty frame of another kind is handed on",
    "a frame is over the limit",
    "a DATA frame is cut short",
]);

/// What a stream like this has reached.
fn count(is_request: bool, stream: &[u8], passed: &(Vec<u8>, Result<(), FrameError>)) {
    match passed {
        (_, Err(FrameError::TooLong)) => REACH.hit("a frame is over the limit"),
        (_, Err(FrameError::Truncated)) => REACH.hit("a DATA frame is cut short"),
        (whole, Ok(())) if !whole.is_empty() => {
            REACH.hit(match (is_request, stream) {
                (true, _) => "frames of a request are handed on",
                (false, [0, _, ..]) => "frames of the control stream are handed on",
                (false, _) => "another stream is handed on",
            });
            if whole.len() < stream.len() {
                REACH.hit("an empty DATA frame is left out");
            }
            if let (true, [1..64, 0, ..]) = (is_request, stream) {
                REACH.hit("an empty frame of another kind is handed on");
            }
        }
        _ => {}
    }
}

fuzz_target!(|input: (bool, u16, Vec<u8>, &[u8])| {
    REACH.begin();
    let (is_request, limit, cuts, stream) = input;
    let begin = || match is_request {
        true => Frames::request(u64::from(limit).min(FRAME_SLACK)),
        false => Frames::unidirectional(u64::from(limit).min(FRAME_SLACK)),
    };
    let (whole, end) = pass(begin(), stream, &[]);
    assert!(whole.len() <= stream.len());
    count(is_request, stream, &(whole.clone(), end));
    assert_eq!((whole.clone(), end), pass(begin(), stream, &cuts));
    assert_eq!((whole.clone(), end), pass(begin(), stream, &[1]));
    // What was handed on is handed on again as it is.
    if end.is_ok() {
        assert_eq!(pass(begin(), &whole, &cuts), (whole, end));
    }
});
