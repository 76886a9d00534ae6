//! Inspects the frames of an HTTP/2 connection: limits its informational responses, tells truncated
//! responses from whole ones, and signals when the server's settings have been read. It also notes
//! the TLS alert that ends the stream.
//!
//! The h2 crate skips any number of informational responses without reporting them. They can be
//! counted from the frames: each of them, like the final response, is a HEADERS frame, and a last
//! one, with END_STREAM, contains the trailers (RFC 9113 §8.1). This therefore parses the frames as
//! they are read, and ends the connection when a stream has received too many HEADERS frames.
//!
//! hyper takes RST_STREAM with NO_ERROR for the end of a response, because it may follow one that is
//! whole (RFC 9113 §8.1). On a stream without END_STREAM the response is truncated, so the code is
//! replaced there.

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::task::AtomicWaker;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use crate::protocol::{TooManyInformational, alert::Alert};

/// The maximum number of open streams that are known; above it, the oldest is forgotten.
const MAX_COUNTED: usize = 1024;

/// The length of a frame header: length, type, flags, stream identifier (RFC 9113 §4.1).
const FRAME_HEADER_BYTES: usize = 9;

/// How long what the peer sent before it closed the connection may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(1);

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const SETTINGS: u8 = 0x4;
const CONTINUATION: u8 = 0x9;
const END_STREAM: u8 = 0x1;
const ACK: u8 = 0x1;

/// INTERNAL_ERROR (RFC 9113 §7).
const INTERNAL_ERROR: u8 = 0x2;

/// A byte stream whose frames are inspected as they are read.
pub(super) struct InspectedStream<S> {
    stream: S,
    frames: Frames,
    peer_settings: Arc<PeerSettings>,
    alert: Arc<Alert>,
    /// Runs from the first failed write on.
    last_words: Option<Pin<Box<Sleep>>>,
}

/// Whether the reader has processed the peer's settings, and the task that waits for them.
#[derive(Debug, Default)]
pub(super) struct PeerSettings {
    is_received: AtomicBool,
    waker: AtomicWaker,
}

impl PeerSettings {
    /// Returns whether the settings have been processed; if not, the task is woken when they are.
    pub(super) fn is_received(&self, cx: &Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.is_received.load(Ordering::Acquire)
    }
}

impl<S> InspectedStream<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            frames: Frames::default(),
            peer_settings: Arc::default(),
            alert: Arc::default(),
            last_words: None,
        }
    }

    /// Returns the signal that the peer's settings have been processed.
    pub(super) fn peer_settings(&self) -> Arc<PeerSettings> {
        Arc::clone(&self.peer_settings)
    }

    /// Returns the place of the alert with which the peer may end the stream.
    pub(super) fn alert(&self) -> Arc<Alert> {
        Arc::clone(&self.alert)
    }

    /// Delays the error of a write to a peer that has closed the connection: what the peer sent
    /// before, a response, GOAWAY or an alert, says more, and ends the connection once it is read.
    fn after_last_words<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let Poll::Ready(Err(error)) = &written else { return written };
        if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
            let timer = self.last_words.get_or_insert_with(|| Box::pin(sleep(LAST_WORDS)));
            ready!(timer.as_mut().poll(cx));
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for InspectedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // A reader that asks for more has processed all complete frames.
        if self.frames.has_settings && !self.peer_settings.is_received.swap(true, Ordering::AcqRel)
        {
            self.peer_settings.waker.wake();
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))
            .inspect_err(|error| self.alert.note(error))?;
        let received = &mut buffer.filled_mut()[before..];
        Poll::Ready(self.frames.parse(received).map_err(io::Error::other))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for InspectedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.after_last_words(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.after_last_words(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.after_last_words(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// What has been received of a response that has not ended.
#[derive(Clone, Copy, Debug)]
enum Begun {
    /// This many HEADERS, whose payloads have this many octets together.
    Heads(usize, usize),
    Body,
}

/// A parser of frame headers that knows the state of each open stream.
#[derive(Debug, Default)]
struct Frames {
    head: [u8; FRAME_HEADER_BYTES],
    /// The number of octets of the header that have been read.
    read: usize,
    /// The number of octets of the payload that are still to be read.
    payload: usize,
    /// Whether the payload is the peer's settings.
    is_settings: bool,
    /// Whether they are complete.
    has_settings: bool,
    /// The octets of the code so far, combined, while RST_STREAM cuts off a response.
    cut_by: Option<u8>,
    open: BTreeMap<u32, Begun>,
}

impl Frames {
    fn parse(&mut self, mut bytes: &mut [u8]) -> Result<(), TooManyInformational> {
        while !bytes.is_empty() {
            let (skipped, rest) = bytes.split_at_mut(self.payload.min(bytes.len()));
            self.payload -= skipped.len();
            self.note_cut(skipped);
            bytes = rest;
            self.has_settings |= self.is_settings && self.payload == 0;
            let taken = (FRAME_HEADER_BYTES - self.read).min(bytes.len());
            self.head[self.read..][..taken].copy_from_slice(&bytes[..taken]);
            self.read += taken;
            bytes = &mut bytes[taken..];
            if self.read == FRAME_HEADER_BYTES {
                self.read = 0;
                self.frame()?;
            }
        }
        Ok(())
    }

    /// Replaces NO_ERROR in the payload of an RST_STREAM that cuts off a response.
    fn note_cut(&mut self, payload: &mut [u8]) {
        let Some(combined) = &mut self.cut_by else { return };
        *combined = payload.iter().fold(*combined, |all, octet| all | octet);
        if self.payload == 0 {
            if *combined == 0
                && let Some(last) = payload.last_mut()
            {
                *last = INTERNAL_ERROR;
            }
            self.cut_by = None;
        }
    }

    /// Handles a complete frame header.
    fn frame(&mut self) -> Result<(), TooManyInformational> {
        let [high, middle, low, kind, flags, stream @ ..] = self.head;
        self.payload = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        let stream = u32::from_be_bytes(stream);
        self.is_settings = kind == SETTINGS && flags & ACK == 0;
        self.has_settings |= self.is_settings && self.payload == 0;
        match kind {
            DATA | HEADERS if flags & END_STREAM != 0 => drop(self.open.remove(&stream)),
            HEADERS => {
                let begun = self.open.entry(stream).or_insert(Begun::Heads(0, 0));
                if let Begun::Heads(count, bytes) = begun {
                    // The new one may be the final response.
                    TooManyInformational::check(*count, *bytes)?;
                    (*count, *bytes) = (*count + 1, bytes.saturating_add(self.payload));
                }
                if self.open.len() > MAX_COUNTED {
                    self.open.pop_first();
                }
            }
            CONTINUATION => {
                if let Some(Begun::Heads(_, bytes)) = self.open.get_mut(&stream) {
                    *bytes = bytes.saturating_add(self.payload);
                }
            }
            // No informational response can follow after it.
            DATA => {
                if let Some(begun) = self.open.get_mut(&stream) {
                    *begun = Begun::Body;
                }
            }
            RST_STREAM if self.open.remove(&stream).is_some() => self.cut_by = Some(0),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{MAX_HEAD_BYTES, informational::MAX_INFORMATIONAL};

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).expect("short");
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    /// Parses the bytes whole, and in pieces of each size.
    fn parse(bytes: &[u8]) -> Result<(), TooManyInformational> {
        let whole = Frames::default().parse(&mut bytes.to_vec());
        for size in 1..bytes.len().min(40) {
            let mut frames = Frames::default();
            let mut bytes = bytes.to_vec();
            let cut = bytes.chunks_mut(size).try_for_each(|piece| frames.parse(piece));
            assert_eq!(cut, whole, "in pieces of {size}");
        }
        whole
    }

    #[test]
    fn informational_heads_are_counted_per_stream_until_its_data() {
        let interim = |stream| frame(HEADERS, 4, stream, b"\x08\x03103");
        let allowed = interim(1).repeat(MAX_INFORMATIONAL + 1);
        assert_eq!(parse(&allowed), Ok(()));
        assert_eq!(
            parse(&[allowed.clone(), interim(1)].concat()),
            Err(TooManyInformational::Count)
        );
        // Frames of another stream do not reset the count, and are counted separately.
        let others = [allowed.clone(), frame(DATA, 0, 3, b"x"), interim(3), interim(1)].concat();
        assert_eq!(parse(&others), Err(TooManyInformational::Count));
        let trailers = [&allowed[..], &frame(DATA, 0, 1, b""), &frame(HEADERS, 5, 1, b"")].concat();
        assert_eq!(parse(&trailers), Ok(()));
        // Payloads are not inspected.
        let data = frame(DATA, 0, 1, &interim(1).repeat(17)[..200]);
        assert_eq!(parse(&data), Ok(()));
    }

    #[test]
    fn informational_heads_are_limited_in_bytes_with_their_continuations() {
        let frame = |kind, length: usize| {
            let length = u32::try_from(length).expect("a frame").to_be_bytes();
            [&length[1..], &[kind, 0, 0, 0, 0, 1]].concat()
        };
        let half = MAX_HEAD_BYTES / 2;
        let fill = |frames: &mut Frames, kind, length| {
            frames.parse(&mut frame(kind, length))?;
            frames.parse(&mut vec![0; length])
        };
        let mut frames = Frames::default();
        assert_eq!(fill(&mut frames, HEADERS, half), Ok(()));
        assert_eq!(fill(&mut frames, CONTINUATION, half), Ok(()));
        assert_eq!(fill(&mut frames, HEADERS, 1), Ok(()), "the final one does not count");
        assert_eq!(fill(&mut frames, HEADERS, 1), Err(TooManyInformational::Bytes));
    }

    #[test]
    fn settings_count_as_received_once_they_are_complete() {
        let mut settings = frame(SETTINGS, 0, 0, &[0, 8, 0, 0, 0, 1]);
        let mut frames = Frames::default();
        frames
            .parse(&mut frame(SETTINGS, ACK, 0, b""))
            .expect("an acknowledgement of our settings");
        let last = settings.len() - 1;
        for piece in settings[..last].chunks_mut(1) {
            frames.parse(piece).expect("a piece");
            assert!(!frames.has_settings);
        }
        frames.parse(&mut settings[last..]).expect("the last octet");
        assert!(frames.has_settings);
        let mut empty = Frames::default();
        empty.parse(&mut frame(SETTINGS, 0, 0, b"")).expect("settings");
        assert!(empty.has_settings);
    }

    #[test]
    fn no_error_on_a_truncated_response_is_replaced() {
        let (head, end) = (frame(HEADERS, 4, 1, b"\x88"), frame(HEADERS, 5, 1, b"\x88"));
        let (data, last) = (frame(DATA, 0, 1, b"half"), frame(DATA, 1, 1, b"rest"));
        let reset = |code: u8| frame(RST_STREAM, 0, 1, &[0, 0, 0, code]);
        let other = frame(DATA, 0, 3, b"x");
        for (before, code, expected) in [
            // Nothing of a response, a head, a part, all, and all with trailers.
            (vec![], 0, 0),
            (head.clone(), 0, INTERNAL_ERROR),
            ([&head[..], &data, &other].concat(), 0, INTERNAL_ERROR),
            ([&head[..], &data, &last].concat(), 0, 0),
            ([&head[..], &data, &end].concat(), 0, 0),
            (end.clone(), 0, 0),
            // Other codes stay.
            ([&head[..], &data].concat(), 8, 8),
        ] {
            let bytes = [before, reset(code), other.clone()].concat();
            for size in 1..=bytes.len() {
                let mut bytes = bytes.clone();
                let mut frames = Frames::default();
                for piece in bytes.chunks_mut(size) {
                    frames.parse(piece).expect("few heads");
                }
                let found = bytes[bytes.len() - other.len() - 1];
                assert_eq!(found, expected, "{bytes:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn the_number_of_counted_streams_is_bounded() {
        let mut frames = Frames::default();
        for stream in 0..4000_u32 {
            let mut head = [0, 0, 0, HEADERS, 4, 0, 0, 0, 0];
            head[5..].copy_from_slice(&stream.to_be_bytes());
            assert_eq!(frames.parse(&mut head), Ok(()));
        }
        assert_eq!(frames.open.len(), MAX_COUNTED);
    }
}
