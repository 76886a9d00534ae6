//! Arbitrary octets as an HTTP/3 stream: the output does not depend on how the transport split the
//! stream, is the stream without its empty DATA frames, and is no longer than the input.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/http/src/quic_streams/frames.rs"]
mod frames;

mod reach;

use reach::Reach;

use frames::{FRAME_SLACK, FrameError, Frames};

/// The longest frame header, which is all that is buffered of a stream.
const MAX_HEADER: usize = 16;

/// Passes a stream through; returns the output, and how the stream ended.
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
                    assert!(!piece.is_empty(), "h3 treats an empty chunk as the end");
                    assert!(piece.len() <= before.max(MAX_HEADER));
                    passed.extend_from_slice(&piece);
                    let _ = frames.take_goaway();
                }
                Ok(None) => break assert!(chunk.is_empty()),
                Err(error) => return (passed, Err(error)),
            }
        }
    }
    let is_within_data = frames.data_left() > 0;
    let end = frames.end().map(|rest| passed.extend_from_slice(&rest.unwrap_or_default()));
    assert_eq!(is_within_data, matches!(end, Err(FrameError::Truncated)));
    (passed, end)
}

static REACH: Reach<7> = Reach::new([
    "frames of a request are passed on",
    "frames of the control stream are passed on",
    "another stream is passed on",
    "an empty DATA frame is dropped",
    "an empty frame of another type is passed on",
    "a frame exceeds the limit",
    "a DATA frame is truncated",
]);

/// Counts what a stream has reached.
fn count(is_request: bool, stream: &[u8], passed: &(Vec<u8>, Result<(), FrameError>)) {
    match passed {
        (_, Err(FrameError::TooLong)) => REACH.hit("a frame exceeds the limit"),
        (_, Err(FrameError::Truncated)) => REACH.hit("a DATA frame is truncated"),
        (whole, Ok(())) if !whole.is_empty() => {
            REACH.hit(match (is_request, stream) {
                (true, _) => "frames of a request are passed on",
                (false, [0, _, ..]) => "frames of the control stream are passed on",
                (false, _) => "another stream is passed on",
            });
            if whole.len() < stream.len() {
                REACH.hit("an empty DATA frame is dropped");
            }
            if let (true, [1..64, 0, ..]) = (is_request, stream) {
                REACH.hit("an empty frame of another type is passed on");
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
    // The output passes through unchanged.
    if end.is_ok() {
        assert_eq!(pass(begin(), &whole, &cuts), (whole, end));
    }
});
