//! The settings of an upstream over HTTP/2, which say whether it takes extended CONNECT (RFC 8441 §3).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

/// Whether the upstream takes extended CONNECT, once that is known.
pub(crate) type ExtendedConnect = watch::Receiver<Option<bool>>;

/// The length of a frame's header (RFC 9113 §4.1).
const HEADER_BYTES: usize = 9;

/// A stream that notices when its reader has had the settings of the upstream, with which it has to begin (RFC 9113
/// §3.4).
pub(crate) struct SettingsStream<S> {
    stream: S,
    /// The header of the first frame, as far as it has been read.
    header: Vec<u8>,
    /// The number of bytes that are missing of its payload, once the header is there.
    left: Option<usize>,
    signal: Arc<SettingsSignal>,
}

/// Whether the reader has come back after the settings, and the task that waits for that.
#[derive(Default)]
pub(crate) struct SettingsSignal {
    are_read: AtomicBool,
    waker: AtomicWaker,
}

impl SettingsSignal {
    /// Returns whether they are read; if not, the task is woken when they are.
    pub(crate) fn are_read(&self, cx: &Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.are_read.load(Acquire)
    }
}

impl<S> SettingsStream<S> {
    pub(crate) fn new(stream: S) -> Self {
        let (header, left) = (Vec::with_capacity(HEADER_BYTES), None);
        Self { stream, header, left, signal: Arc::default() }
    }

    /// Returns the signal that the settings have been read.
    pub(crate) fn signal(&self) -> Arc<SettingsSignal> {
        Arc::clone(&self.signal)
    }

    fn note_bytes(&mut self, mut read: &[u8]) {
        if self.left.is_none() {
            let (some, rest) = read.split_at(read.len().min(HEADER_BYTES - self.header.len()));
            self.header.extend_from_slice(some);
            read = rest;
            if let [high, middle, low, ..] = self.header[..]
                && self.header.len() == HEADER_BYTES
            {
                self.left = Some(u32::from_be_bytes([0, high, middle, low]) as usize);
            }
        }
        self.left = self.left.map(|left| left.saturating_sub(read.len()));
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SettingsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.left == Some(0) {
            if !self.signal.are_read.swap(true, Release) {
                self.signal.waker.wake();
            }
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.note_bytes(&buf.filled()[before..]);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SettingsStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_read_once_all_of_their_frame_is() {
        let frame = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0];
        for size in 1..=frame.len() {
            let mut stream = SettingsStream::new(());
            let mut read = 0;
            for part in frame.chunks(size) {
                assert_eq!(stream.left == Some(0), read >= 15, "{size}: {read}");
                stream.note_bytes(part);
                read += part.len();
            }
            assert_eq!(stream.left, Some(0), "{size}");
        }
    }
}
