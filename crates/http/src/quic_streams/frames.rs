//! A bound on HTTP/3 frames (RFC 9114 §7.1).
//!
//! The h3 crate keeps a whole frame in memory before it looks at it, `DATA` alone excepted, and a
//! peer may announce 2^62 bytes. This follows the frames of a stream and refuses the length.

/// The most bytes of one frame that is kept whole, beside what a request's head may have.
pub(super) const FRAME_SLACK: u64 = 64 * 1024;

/// The most bytes of a unidirectional stream that is not the control stream (the QPACK streams:
/// without a dynamic table nothing of length belongs there).
pub(super) const SIDE_STREAM_BYTES: u64 = 1024 * 1024;

const CONTROL_STREAM: u64 = 0x00;
const DATA_FRAME: u64 = 0x00;

/// A frame is announced that is longer than the server keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame or stream of the peer is over the limit")]
pub(super) struct TooLong;

/// Follows one stream.
#[derive(Debug)]
pub(super) struct FrameGuard {
    limit: u64,
    state: State,
    number: Varint,
}

#[derive(Clone, Copy, Debug)]
enum State {
    StreamType,
    FrameType,
    FrameLength { data: bool },
    Payload { left: u64 },
    SideStream { left: u64 },
}

impl FrameGuard {
    /// For a request stream.
    pub(super) const fn request(limit: u64) -> Self {
        Self { limit, state: State::FrameType, number: Varint::NEW }
    }

    /// For a unidirectional stream.
    pub(super) const fn unidirectional(limit: u64) -> Self {
        Self { limit, state: State::StreamType, number: Varint::NEW }
    }

    /// Looks at the next bytes of the stream.
    pub(super) fn check(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        while let Some((&first, rest)) = bytes.split_first() {
            match self.state {
                State::Payload { left } => {
                    let passed = left.min(bytes.len() as u64);
                    bytes = &bytes[passed as usize..];
                    self.state = match left - passed {
                        0 => State::FrameType,
                        left => State::Payload { left },
                    };
                }
                State::SideStream { left } => {
                    let left = left.checked_sub(bytes.len() as u64).ok_or(TooLong)?;
                    self.state = State::SideStream { left };
                    return Ok(());
                }
                _ => {
                    bytes = rest;
                    if let Some(number) = self.number.push(first) {
                        self.state = self.after(number)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn after(&self, number: u64) -> Result<State, TooLong> {
        match self.state {
            State::StreamType if number == CONTROL_STREAM => Ok(State::FrameType),
            State::StreamType => Ok(State::SideStream { left: SIDE_STREAM_BYTES }),
            State::FrameType => Ok(State::FrameLength { data: number == DATA_FRAME }),
            State::FrameLength { data: false } if number > self.limit => Err(TooLong),
            State::FrameLength { .. } if number == 0 => Ok(State::FrameType),
            State::FrameLength { .. } => Ok(State::Payload { left: number }),
            other => Ok(other),
        }
    }
}

/// A variable-length integer in the making (RFC 9000 §16).
#[derive(Debug)]
struct Varint {
    value: u64,
    missing: u8,
}

impl Varint {
    const NEW: Self = Self { value: 0, missing: 0 };

    fn push(&mut self, byte: u8) -> Option<u64> {
        if self.missing == 0 {
            self.missing = 1 << (byte >> 6);
            self.value = u64::from(byte & 0x3f);
        } else {
            self.value = self.value << 8 | u64::from(byte);
        }
        self.missing -= 1;
        (self.missing == 0).then_some(self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer must not depend on how the transport cut the stream.
    fn check(mut guard: impl FnMut() -> FrameGuard, stream: &[u8]) -> Result<(), TooLong> {
        let whole = guard().check(stream);
        let mut piecewise = guard();
        let pieces = stream.iter().try_for_each(|byte| piecewise.check(&[*byte]));
        assert_eq!(whole, pieces);
        whole
    }

    #[test]
    fn data_may_be_of_any_length() {
        // DATA of 2^62 - 1 bytes.
        let stream = [0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3];
        assert_eq!(check(|| FrameGuard::request(10), &stream), Ok(()));
    }

    #[test]
    fn headers_and_unknown_frames_are_bounded() {
        for kind in [0x01, 0x21] {
            assert_eq!(check(|| FrameGuard::request(10), &[kind, 11]), Err(TooLong));
            let mut stream = vec![kind, 10];
            stream.extend([0xaa; 10]);
            stream.extend([kind, 0, kind, 11]);
            assert_eq!(check(|| FrameGuard::request(10), &stream), Err(TooLong));
            stream.truncate(14);
            assert_eq!(check(|| FrameGuard::request(10), &stream), Ok(()));
        }
    }

    #[test]
    fn the_control_stream_carries_frames_and_others_bytes() {
        assert_eq!(check(|| FrameGuard::unidirectional(10), &[0x00, 0x04, 11]), Err(TooLong));
        let mut qpack = vec![0x02];
        qpack.resize(1 + SIDE_STREAM_BYTES as usize, 0xff);
        let mut guard = FrameGuard::unidirectional(10);
        assert_eq!(guard.check(&qpack), Ok(()));
        assert_eq!(guard.check(&[0]), Err(TooLong));
    }

    proptest::proptest! {
        #[test]
        fn the_cut_of_the_stream_does_not_matter(
            stream in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
            cut in 0_usize..200,
            is_request in proptest::bool::ANY,
        ) {
            let guard = || match is_request {
                true => FrameGuard::request(40),
                false => FrameGuard::unidirectional(40),
            };
            let whole = check(guard, &stream);
            let (first, second) = stream.split_at(cut.min(stream.len()));
            let mut halves = guard();
            let halves = halves.check(first).and_then(|()| halves.check(second));
            proptest::prop_assert_eq!(whole, halves);
        }
    }
}
