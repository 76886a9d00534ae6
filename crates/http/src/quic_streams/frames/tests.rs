use super::*;

/// The pieces that are passed on, and how the stream ends.
type Passed = (Vec<Bytes>, Result<(), FrameError>);

fn pass(mut frames: Frames, chunks: &[&[u8]]) -> Passed {
    let mut pieces = Vec::new();
    for chunk in chunks {
        let mut input = Bytes::copy_from_slice(chunk);
        loop {
            match frames.next(&mut input) {
                Ok(Some(piece)) => pieces.push(piece),
                Ok(None) => break,
                Err(error) => return (pieces, Err(error)),
            }
        }
    }
    let end = frames.end().map(|rest| pieces.extend(rest));
    (pieces, end)
}

/// Returns the bytes that are passed on, which must not depend on how the stream is split into
/// reads.
fn bytes(frames: fn() -> Frames, stream: &[u8]) -> (Vec<u8>, Result<(), FrameError>) {
    let (whole, end) = pass(frames(), &[stream]);
    let single: Vec<_> = stream.chunks(1).collect();
    let (piecewise, piecewise_end) = pass(frames(), &single);
    assert_eq!((whole.concat(), end), (piecewise.concat(), piecewise_end));
    (whole.concat(), end)
}

fn request() -> Frames {
    Frames::request(10)
}

fn unidirectional() -> Frames {
    Frames::unidirectional(10)
}

#[test]
fn a_goaway_is_noted_on_the_control_stream_alone() {
    // The type of the stream, SETTINGS, GOAWAY with identifiers of one and of two bytes.
    let stream = [0x00, 0x04, 0, 0x07, 1, 12, 0x07, 2, 0x40, 8];
    let noted = |mut frames: Frames, stream: &[u8], size: usize| {
        let mut noted = Vec::new();
        for chunk in stream.chunks(size) {
            let mut input = Bytes::copy_from_slice(chunk);
            while frames.next(&mut input).expect("valid").is_some() {
                noted.extend(frames.take_goaway());
            }
        }
        noted
    };
    for size in 1..=stream.len() {
        assert_eq!(noted(unidirectional(), &stream, size), [12, 8], "{size}");
    }
    assert_eq!(noted(request(), &[0x07, 1, 12], 1), Vec::<u64>::new());
    // Neither is one without an identifier, or with half of one.
    assert_eq!(
        noted(unidirectional(), &[0x00, 0x07, 0, 0x07, 1, 0x40, 0x21, 1, 8], 1),
        Vec::<u64>::new()
    );
}

#[test]
fn data_may_be_of_any_length_but_not_end_early() {
    // DATA of 2^62 - 1 bytes.
    let stream = [0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3];
    assert_eq!(bytes(request, &stream), (stream.to_vec(), Err(FrameError::Truncated)));
    assert_eq!(bytes(request, &[0x00, 2, 7]), (vec![0x00, 2, 7], Err(FrameError::Truncated)));
    assert_eq!(bytes(request, &[0x00, 1, 7]), (vec![0x00, 1, 7], Ok(())));
}

#[test]
fn headers_and_unknown_frames_are_bounded() {
    for kind in [0x01, 0x21] {
        assert_eq!(bytes(request, &[kind, 11]), (vec![], Err(FrameError::TooLong)));
        let mut stream = vec![kind, 10];
        stream.extend([0xaa; 10]);
        stream.extend([kind, 0]);
        assert_eq!(bytes(request, &stream), (stream.clone(), Ok(())));
        let allowed = stream.clone();
        stream.extend([kind, 11]);
        assert_eq!(bytes(request, &stream), (allowed, Err(FrameError::TooLong)));
    }
}

#[test]
fn a_stream_that_ends_in_a_head_is_passed_on_to_h3() {
    assert_eq!(bytes(request, &[0x01, 0x80, 0]), (vec![0x01, 0x80, 0], Ok(())));
    assert_eq!(bytes(request, &[0x01, 3, 0]), (vec![0x01, 3, 0], Ok(())));
}

#[test]
fn empty_data_frames_are_skipped() {
    let stream = [0x00, 0, 0x00, 1, 7, 0x00, 0x40, 0, 0x40, 0x00, 0, 0x21, 0];
    assert_eq!(bytes(request, &stream), (vec![0x00, 1, 7, 0x21, 0], Ok(())));
}

#[test]
fn no_piece_contains_more_than_one_frame() {
    let many = [0x00, 1, 7].repeat(400);
    let (pieces, end) = pass(request(), &[&many]);
    assert_eq!((pieces.len(), end), (800, Ok(())));
    assert!(pieces.iter().all(|piece| piece.len() <= 2));
}

#[test]
fn only_the_control_stream_is_parsed_as_frames() {
    let (_, end) = bytes(unidirectional, &[0x00, 0x04, 11]);
    assert_eq!(end, Err(FrameError::TooLong));
    let mut qpack = vec![0x02];
    qpack.resize(1 + SIDE_STREAM_BYTES as usize, 0xff);
    assert_eq!(pass(unidirectional(), &[&qpack]).1, Ok(()));
    assert_eq!(pass(unidirectional(), &[&qpack, &[0]]).1, Err(FrameError::TooLong));
}

proptest::proptest! {
    #[test]
    fn the_split_into_reads_does_not_matter(
        stream in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        cut in 0_usize..200,
        is_request in proptest::bool::ANY,
    ) {
        let frames = if is_request { request } else { unidirectional };
        let (whole, end) = bytes(frames, &stream);
        let (first, second) = stream.split_at(cut.min(stream.len()));
        let (joined, joined_end) = pass(frames(), &[first, second]);
        proptest::prop_assert_eq!((whole, end), (joined.concat(), joined_end));
    }
}
