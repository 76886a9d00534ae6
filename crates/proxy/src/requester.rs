//! A client of which a single request is forwarded.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use eyas_relay::body::BodyDelimiter;
use eyas_relay::copy::CopyStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Reads the body of the request, and nothing after it: neither another request, which may be meant for
/// another server, nor the end of the stream, which servers take for an aborted request.
#[derive(Debug)]
pub(crate) struct RequestReader<'a, C> {
    client: &'a mut C,
    /// Data that was read together with the head.
    rest: Bytes,
    body: BodyDelimiter,
    has_ended: bool,
}

/// The limit on data after a request that is discarded. Beyond it, nothing more is read.
const MAX_DISCARDED: usize = 64 * 1024;

impl<'a, C: CopyStream> RequestReader<'a, C> {
    pub(crate) fn new(client: &'a mut C, rest: Bytes, body: BodyDelimiter) -> Self {
        Self { client, rest, body, has_ended: false }
    }

    /// Returns whether the whole request has been read.
    pub(crate) fn has_all(&self) -> bool {
        self.body.is_complete()
    }

    /// Returns how many of these bytes belong to the request.
    fn taken(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.body.read(bytes);
        match self.body.is_broken() {
            true => Err(io::Error::new(io::ErrorKind::InvalidData, "its body is invalid")),
            false => Ok(taken),
        }
    }

    /// Discards data after the request, and fails when the client breaks the connection.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut scratch = [0; 1024];
        for _ in 0..MAX_DISCARDED / scratch.len() {
            if self.has_ended {
                break;
            }
            let mut read = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut *self.client).poll_read(cx, &mut read))?;
            self.has_ended = read.filled().is_empty();
        }
        self.has_ended = true;
        Poll::Pending
    }
}

impl<C: CopyStream> AsyncRead for RequestReader<'_, C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.body.is_complete() {
            return this.poll_discard(cx);
        }
        if !this.rest.is_empty() {
            let some = this.rest.len().min(buf.remaining());
            let piece = this.rest.slice(..some);
            let taken = this.taken(&piece)?;
            this.rest.advance(some);
            buf.put_slice(&piece[..taken]);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut *this.client).poll_read(cx, buf))?;
        let read = buf.filled().len() - before;
        if read == 0 {
            let error = "the client ended in the middle of its request";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, error)));
        }
        let taken = this.taken(&buf.filled()[before..])?;
        buf.set_filled(before + taken);
        Poll::Ready(Ok(()))
    }
}

impl<C: CopyStream> AsyncWrite for RequestReader<'_, C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.client).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.client).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.client).poll_shutdown(cx)
    }
}
