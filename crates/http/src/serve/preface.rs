//! Detects the version of HTTP at the start of a cleartext connection.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// The client connection preface of HTTP/2 (RFC 9113 §3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads enough to detect HTTP/2, and returns the stream with the bytes read.
pub(super) async fn detect_http2<T>(mut io: T) -> io::Result<(bool, Rewind<T>)>
where
    T: AsyncRead + Unpin,
{
    let mut read = [0; PREFACE.len()];
    let mut length = 0;
    while length < PREFACE.len() && read[..length] == PREFACE[..length] {
        match io.read(&mut read[length..]).await? {
            0 => break,
            count => length += count,
        }
    }
    let buffered = Bytes::copy_from_slice(&read[..length]);
    Ok((read == *PREFACE, Rewind { buffered, inner: io }))
}

/// A stream whose first bytes have already been read.
#[derive(Debug)]
pub(super) struct Rewind<T> {
    buffered: Bytes,
    inner: T,
}

impl<T> Rewind<T> {
    pub(super) fn new(buffered: Bytes, inner: T) -> Self {
        Self { buffered, inner }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Rewind<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.buffered.is_empty() {
            return Pin::new(&mut self.inner).poll_read(cx, buf);
        }
        let length = self.buffered.len().min(buf.remaining());
        buf.put_slice(&self.buffered[..length]);
        self.buffered.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Rewind<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_that_was_read_is_lost() {
        for (sent, wanted) in [
            (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nand more"[..], true),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", false),
            (b"PRI /x HTTP/1.1\r\n\r\n", false),
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false),
            (b"", false),
        ] {
            // A byte at a time, as a network may deliver it.
            let (mut peer, io) = tokio::io::duplex(1);
            let sending = tokio::spawn(async move {
                tokio::io::AsyncWriteExt::write_all(&mut peer, sent).await.unwrap();
            });
            let (is_http2, mut io) = detect_http2(io).await.unwrap();
            let mut read = Vec::new();
            io.read_to_end(&mut read).await.unwrap();
            assert_eq!((is_http2, &read[..]), (wanted, sent));
            sending.await.unwrap();
        }
    }
}
