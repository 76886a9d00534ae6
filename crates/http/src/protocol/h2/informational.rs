//! Follows the frames of an HTTP/2 connection: limits its informational responses, and says when the
//! server's settings have been read.
//!
//! The h2 crate reads and skips them for as long as they come, without reporting them. They can be
//! counted from the frames: like them, the final response is a HEADERS frame, and a further one,
//! with END_STREAM, contains the trailers (RFC 9113 §8.1). So this parses the frames as they are
//! read, and ends the connection when a stream has had more HEADERS frames than that.

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::protocol::{MAX_INFORMATIONAL, TooManyInformational};

/// Streams whose HEADERS are counted at once; beyond, the oldest is forgotten.
const MAX_COUNTED: usize = 1024;

/// The head of a frame: length, type, flags, stream (RFC 9113 §4.1).
const FRAME_HEAD: usize = 9;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const SETTINGS: u8 = 0x4;
const END_STREAM: u8 = 0x1;
const ACK: u8 = 0x1;

/// A stream of octets whose frames are followed as they are read.
pub(super) struct Followed<S> {
    stream: S,
    frames: Frames,
    greeting: Arc<Greeting>,
}

/// Whether the reader has processed the peer's settings, and who waits for that.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    is_over: AtomicBool,
    waker: AtomicWaker,
}

impl Greeting {
    /// Whether it is over; if not, the task is woken when it is.
    pub(super) fn is_over(&self, cx: &Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.is_over.load(Ordering::Acquire)
    }
}

impl<S> Followed<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, frames: Frames::default(), greeting: Arc::default() }
    }

    /// Signals that the peer's settings are in force.
    pub(super) fn greeting(&self) -> Arc<Greeting> {
        Arc::clone(&self.greeting)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Followed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // A reader that asks for more has processed all complete frames.
        if self.frames.has_settings && !self.greeting.is_over.swap(true, Ordering::AcqRel) {
            self.greeting.waker.wake();
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let fresh = &buffer.filled()[before..];
        Poll::Ready(self.frames.follow(fresh).map_err(io::Error::other))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Followed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Where in the frames the reading is, and how many HEADERS open streams have had.
#[derive(Debug, Default)]
struct Frames {
    head: [u8; FRAME_HEAD],
    /// Octets of the head that have been read.
    read: usize,
    /// Octets of the payload still to come.
    payload: usize,
    /// Whether the payload is the peer's settings.
    is_settings: bool,
    /// Whether they are complete.
    has_settings: bool,
    headers: BTreeMap<u32, usize>,
}

impl Frames {
    fn follow(&mut self, mut bytes: &[u8]) -> Result<(), TooManyInformational> {
        while !bytes.is_empty() {
            let skipped = self.payload.min(bytes.len());
            self.payload -= skipped;
            bytes = &bytes[skipped..];
            self.has_settings |= self.is_settings && self.payload == 0;
            let taken = (FRAME_HEAD - self.read).min(bytes.len());
            self.head[self.read..][..taken].copy_from_slice(&bytes[..taken]);
            self.read += taken;
            bytes = &bytes[taken..];
            if self.read == FRAME_HEAD {
                self.read = 0;
                self.frame()?;
            }
        }
        Ok(())
    }

    /// Handles a complete frame header.
    fn frame(&mut self) -> Result<(), TooManyInformational> {
        let [high, middle, low, kind, flags, stream @ ..] = self.head;
        self.payload = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        let stream = u32::from_be_bytes(stream);
        self.is_settings = kind == SETTINGS && flags & ACK == 0;
        self.has_settings |= self.is_settings && self.payload == 0;
        match kind {
            HEADERS if flags & END_STREAM == 0 => {
                let count = self.headers.entry(stream).or_default();
                *count += 1;
                // The final response is one of them.
                if *count > MAX_INFORMATIONAL + 1 {
                    return Err(TooManyInformational);
                }
                if self.headers.len() > MAX_COUNTED {
                    self.headers.pop_first();
                }
            }
            // After these no informational response can follow.
            DATA | HEADERS | RST_STREAM => drop(self.headers.remove(&stream)),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).expect("short");
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    /// Follows them cut at every place.
    fn follow(bytes: &[u8]) -> Result<(), TooManyInformational> {
        let whole = Frames::default().follow(bytes);
        for size in 1..bytes.len().min(40) {
            let mut frames = Frames::default();
            let cut = bytes.chunks(size).try_for_each(|piece| frames.follow(piece));
            assert_eq!(cut, whole, "in pieces of {size}");
        }
        whole
    }

    #[test]
    fn informational_heads_are_counted_per_stream_until_its_data() {
        let interim = |stream| frame(HEADERS, 4, stream, b"\x08\x03103");
        let most = interim(1).repeat(MAX_INFORMATIONAL + 1);
        assert_eq!(follow(&most), Ok(()));
        assert_eq!(follow(&[most.clone(), interim(1)].concat()), Err(TooManyInformational));
        // Another stream does not start the count again, and is counted by itself.
        let others = [most.clone(), frame(DATA, 0, 3, b"x"), interim(3), interim(1)].concat();
        assert_eq!(follow(&others), Err(TooManyInformational));
        let trailers = [&most[..], &frame(DATA, 0, 1, b""), &frame(HEADERS, 5, 1, b"")].concat();
        assert_eq!(follow(&trailers), Ok(()));
        // Payloads are not looked at.
        let data = frame(DATA, 0, 1, &interim(1).repeat(17)[..200]);
        assert_eq!(follow(&data), Ok(()));
    }

    #[test]
    fn settings_are_there_once_they_are_complete() {
        let settings = frame(SETTINGS, 0, 0, &[0, 8, 0, 0, 0, 1]);
        let mut frames = Frames::default();
        frames.follow(&frame(SETTINGS, ACK, 0, b"")).expect("an acknowledgement of ours");
        for piece in settings[..settings.len() - 1].chunks(1) {
            frames.follow(piece).expect("a piece");
            assert!(!frames.has_settings);
        }
        frames.follow(&settings[settings.len() - 1..]).expect("the last octet");
        assert!(frames.has_settings);
        let mut empty = Frames::default();
        empty.follow(&frame(SETTINGS, 0, 0, b"")).expect("settings");
        assert!(empty.has_settings);
    }

    #[test]
    fn the_number_of_counted_streams_is_bounded() {
        let mut frames = Frames::default();
        for stream in 0..4000_u32 {
            let mut head = [0, 0, 0, HEADERS, 4, 0, 0, 0, 0];
            head[5..].copy_from_slice(&stream.to_be_bytes());
            assert_eq!(frames.follow(&head), Ok(()));
        }
        assert_eq!(frames.headers.len(), MAX_COUNTED);
    }
}
