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
    /// Whether that one ended a blank line, or is none at all: a request may begin behind it, or has
    /// its body there. A field of a head does not.
    is_after_blank_line: bool,
    /// Whether the first line behind that was too long.
    has_long_first_line: bool,
    /// The last two bytes.
    tail: [u8; 2],
    /// What remains to be written of a changed answer.
    changed: Vec<u8>,
}

impl<S> RequestLine<S> {
    pub(super) fn new(io: S, limit: usize) -> Self {
        let tail = [b'\n'; 2];
        Self {
            io,
            limit,
            line: 0,
            is_after_blank_line: true,
            has_long_first_line: false,
            tail,
            changed: Vec::new(),
        }
    }

    /// Follows the lines. Of several that arrive together, only the first and the last are looked at.
    fn note(&mut self, read: &[u8]) {
        if self.is_after_blank_line
            && self.line.saturating_add(read.len()) >= self.limit
            && let Some(rest) = read.iter().position(|byte| *byte == b'\n')
        {
            self.has_long_first_line = self.line + rest >= self.limit;
        }
        match read.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => {
                self.line = read.len() - at - 1;
                let mut before = read[..at].iter().rev().chain(self.tail.iter().rev());
                self.is_after_blank_line = match before.next() {
                    Some(b'\r') => before.next() == Some(&b'\n'),
                    last => last == Some(&b'\n'),
                };
                self.has_long_first_line &= !self.is_after_blank_line;
            }
            None => self.line = self.line.saturating_add(read.len()),
        }
        for byte in &read[read.len().saturating_sub(2)..] {
            self.tail = [self.tail[1], *byte];
        }
    }

    /// Returns the answer in place of this one, if the request line alone is too long.
    fn change(&mut self, answer: &[u8]) -> Option<Vec<u8>> {
        let has_no_end = self.line >= self.limit && self.is_after_blank_line;
        // What was answered otherwise is over, and the line may have been one of a body.
        let has_long_first_line = std::mem::take(&mut self.has_long_first_line);
        if !(has_no_end || has_long_first_line)
            || !TOO_LARGE.iter().any(|begin| answer.starts_with(begin))
        {
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
        self.note(&buf.filled()[before..]);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the answer to these pieces is changed.
    fn is_changed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> bool {
        let mut line = RequestLine::new(tokio::io::empty(), 16);
        pieces.into_iter().for_each(|piece| line.note(piece));
        let changed = line.change(b"HTTP/1.1 431 Too Large\r\nX: y\r\n\r\n");
        changed.is_some_and(|changed| changed.ends_with(b"414 URI Too Long\r\nX: y\r\n\r\n"))
    }

    #[test]
    fn a_long_line_is_a_request_line_only_behind_a_blank_one() {
        let long = "a".repeat(20);
        for (text, expected) in [
            (format!("GET /{long}"), true),
            (format!("\r\n\r\nGET /{long}"), true),
            (format!("GET /{long}\r\n"), true),
            (format!("GET /{long}\r\nX: y\r\nY: {long}"), true),
            (format!("GET /\r\nX: {long}"), false),
            (format!("GET /\r\nX: y\r\nY: {long}"), false),
            (format!("GET /\r\nX: y\r\n\r\nGET /{long}"), true),
            (format!("GET /\nX: y\n\nGET /{long}"), true),
            (format!("GET /\r\nX: y\r\n\r\nGET /\r\nX: {long}"), false),
            ("GET /\r\nX: y\r\n\r\n".to_owned(), false),
        ] {
            for size in [1, 2, 3, 7, 1000] {
                let found = is_changed(text.as_bytes().chunks(size));
                assert_eq!(found, expected, "{text:?} in pieces of {size}");
            }
        }
    }
}
