//! Tells a request line that is too long from header fields that are (RFC 9110 §15.5.15, RFC 6585
//! §5). hyper answers both with 431, before a service sees the request.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How hyper's answer begins.
const TOO_LARGE: [&[u8]; 2] = [b"HTTP/1.1 431 ", b"HTTP/1.0 431 "];

/// What it is replaced by, up to the end of the line.
const TOO_LONG: &[u8] = b"HTTP/1.1 414 URI Too Long";

/// A stream of HTTP/1 whose answer to a request line without an end is 414.
pub(super) struct RequestLine<S> {
    io: S,
    /// The number of bytes that hyper buffers for a head.
    limit: usize,
    /// The number of bytes since the last line feed.
    line: usize,
    /// What remains to be written of a changed answer.
    changed: Vec<u8>,
}

impl<S> RequestLine<S> {
    pub(super) fn new(io: S, limit: usize) -> Self {
        Self { io, limit, line: 0, changed: Vec::new() }
    }

    /// Returns the answer in place of this one: if all that hyper has buffered is one line, that
    /// line is the request line.
    fn change(&self, answer: &[u8]) -> Option<Vec<u8>> {
        if self.line < self.limit || !TOO_LARGE.iter().any(|begin| answer.starts_with(begin)) {
            return None;
        }
        let end = answer.iter().position(|byte| *byte == b'\r')?;
        Some([TOO_LONG, &answer[end..]].concat())
    }
}

impl<S: AsyncWrite + Unpin> RequestLine<S> {
    fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.changed.is_empty() {
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, &self.changed))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.changed.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RequestLine<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        self.line = match read.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => read.len() - at - 1,
            None => self.line.saturating_add(read.len()),
        };
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RequestLine<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_changed(cx))?;
        if let Some(changed) = self.change(buf) {
            self.changed = changed;
            return Poll::Ready(Ok(buf.len()));
        }
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_changed(cx))?;
        if let Some(first) = bufs.iter().find(|buf| !buf.is_empty())
            && let Some(changed) = self.change(first)
        {
            self.changed = changed;
            return Poll::Ready(Ok(first.len()));
        }
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_changed(cx))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_changed(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
