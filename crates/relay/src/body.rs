//! Where the body of a request ends (RFC 9112 §6, §7.1).

/// Finds the end of the body after a request's head. Pure, and of a fixed size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyDelimiter(BodyState);

#[derive(Clone, Debug, PartialEq, Eq)]
enum BodyState {
    /// This many bytes are missing.
    Length(u64),
    Chunked(ChunkedState),
    /// The framing is invalid.
    Broken,
}

/// The next element of a chunked body.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ChunkedState {
    /// Digits of a chunk's size: the value and the number of digits so far.
    Size { value: u64, digits: u8 },
    /// The rest of the line of a chunk's size, and its length so far.
    Extension { value: u64, length: usize },
    /// The end of the line of a chunk's size.
    SizeEnd(u64),
    /// This many bytes of a chunk.
    Data(u64),
    /// The line end after a chunk, from its first or second byte.
    DataEnd(bool),
    /// Trailer fields: the length of the current line and of all lines so far.
    Trailer { line: usize, all: usize },
    /// The end of a line of the trailers.
    TrailerEnd { line: usize, all: usize },
    /// The body is complete.
    Done,
}

/// The limit on the extensions of one chunk, and on all trailers, in bytes.
const MAX_EXTRA: usize = 8 * 1024;
/// The limit on the digits of a chunk's size: 2⁶⁰ bytes are enough for any body.
const MAX_DIGITS: u8 = 15;

impl BodyDelimiter {
    /// Returns an empty body.
    pub(crate) const fn none() -> Self {
        Self(BodyState::Length(0))
    }

    /// Returns a body of this length.
    pub(crate) const fn of_length(length: u64) -> Self {
        Self(BodyState::Length(length))
    }

    /// Returns a body in chunks.
    pub(crate) const fn chunked() -> Self {
        Self(BodyState::Chunked(ChunkedState::Size { value: 0, digits: 0 }))
    }

    /// Returns whether the body has been read to its end.
    pub fn is_complete(&self) -> bool {
        matches!(self.0, BodyState::Length(0) | BodyState::Chunked(ChunkedState::Done))
    }

    /// Returns whether its framing is invalid.
    pub fn is_broken(&self) -> bool {
        self.0 == BodyState::Broken
    }

    /// Reads the next bytes, and returns how many of them belong to the body.
    pub fn read(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len() && !self.is_complete() && !self.is_broken() {
            let rest = &bytes[taken..];
            taken += match &mut self.0 {
                BodyState::Length(left) | BodyState::Chunked(ChunkedState::Data(left)) => {
                    let some = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                    *left -= some as u64;
                    some
                }
                BodyState::Chunked(chunked) => match chunked.next(rest[0]) {
                    Some(next) => {
                        *chunked = next;
                        1
                    }
                    None => {
                        self.0 = BodyState::Broken;
                        0
                    }
                },
                BodyState::Broken => 0,
            };
            if self.0 == BodyState::Chunked(ChunkedState::Data(0)) {
                self.0 = BodyState::Chunked(ChunkedState::DataEnd(true));
            }
        }
        taken
    }
}

impl ChunkedState {
    /// Returns the state after this byte, or `None` if it is not allowed here.
    fn next(&self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Size { value, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16)?;
                if *digits >= MAX_DIGITS {
                    return None;
                }
                Self::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Self::Size { value, digits: 1.. }, b'\r') => Self::SizeEnd(*value),
            (Self::Size { value, digits: 1.. }, b';' | b' ' | b'\t') => {
                Self::Extension { value: *value, length: 0 }
            }
            (Self::Extension { value, .. }, b'\r') => Self::SizeEnd(*value),
            (Self::Extension { value, length }, b'\t' | b' '..=b'~' | 0x80..) => {
                if *length >= MAX_EXTRA {
                    return None;
                }
                Self::Extension { value: *value, length: length + 1 }
            }
            (Self::SizeEnd(0), b'\n') => Self::Trailer { line: 0, all: 0 },
            (Self::SizeEnd(length), b'\n') => Self::Data(*length),
            (Self::DataEnd(true), b'\r') => Self::DataEnd(false),
            (Self::DataEnd(false), b'\n') => Self::Size { value: 0, digits: 0 },
            (Self::Trailer { line, all }, b'\r') => Self::TrailerEnd { line: *line, all: *all },
            (Self::Trailer { line, all }, b'\t' | b' '..=b'~' | 0x80..) => {
                if *all >= MAX_EXTRA {
                    return None;
                }
                Self::Trailer { line: line + 1, all: all + 1 }
            }
            (Self::TrailerEnd { line: 0, .. }, b'\n') => Self::Done,
            (Self::TrailerEnd { all, .. }, b'\n') => Self::Trailer { line: 0, all: *all },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken(mut body: BodyDelimiter, bytes: &[u8]) -> (usize, bool, bool) {
        let taken = body.read(bytes);
        (taken, body.is_complete(), body.is_broken())
    }

    #[test]
    fn a_body_ends_where_its_length_says() {
        assert_eq!(taken(BodyDelimiter::none(), b"GET"), (0, true, false));
        assert_eq!(taken(BodyDelimiter::of_length(3), b"abcGET"), (3, true, false));
        assert_eq!(taken(BodyDelimiter::of_length(9), b"abc"), (3, false, false));
    }

    #[test]
    fn a_chunked_body_ends_after_its_trailers() {
        let whole = b"5;a=\"b\"\r\nhello\r\nA \r\n0123456789\r\n0\r\nX: y\r\n\r\n";
        let with_more = [whole, &b"GET / HTTP/1.1\r\n"[..]].concat();
        assert_eq!(taken(BodyDelimiter::chunked(), &with_more), (whole.len(), true, false));
    }

    #[test]
    fn ambiguous_framing_is_an_error() {
        for bytes in [
            &b"5\nhello"[..],
            b"\r\nhello",
            b"x\r\n",
            b"0x5\r\n",
            b"-1\r\n",
            b"1\r\nab\r\n",
            b"fffffffffffffffff\r\n",
            b"0\r\nX: y\n\n",
            b"1;\na\r\n",
        ] {
            assert!(taken(BodyDelimiter::chunked(), bytes).2, "{}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #[test]
        fn splitting_the_input_changes_nothing(bytes: Vec<u8>, digits in "[0-9a-f]{0,2}", cut in 0..64_usize) {
            let bytes = [digits.as_bytes(), b"\r\n", &bytes].concat();
            let cut = cut.min(bytes.len());
            let mut parts = BodyDelimiter::chunked();
            let mut count = parts.read(&bytes[..cut]);
            if count == cut {
                count += parts.read(&bytes[cut..]);
            }
            prop_assert_eq!(
                (count, parts.is_complete(), parts.is_broken()),
                taken(BodyDelimiter::chunked(), &bytes)
            );
        }
    }
}
