//! The winning stream, with hyper's I/O traits.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use eyas::{ByteStream, ConnectionInfo};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};

/// The byte stream that won a race. It implements hyper's traits for reading and writing; for
/// tokio's traits wrap it in [`TokioIo`] or call [`into_inner`](Self::into_inner).
#[derive(Debug)]
pub struct Stream(TokioIo<ByteStream>);

impl Stream {
    pub(super) fn new(stream: ByteStream) -> Self {
        Self(TokioIo::new(stream))
    }

    /// Returns the details of the connection: transport, addresses, and why it was chosen.
    /// hyper-util's client adds a copy to the extensions of each response.
    pub fn info(&self) -> &ConnectionInfo {
        self.0.inner().info()
    }

    /// Converts the stream into one that implements tokio's I/O traits.
    pub fn into_inner(self) -> ByteStream {
        self.0.into_inner()
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(self.info().clone());
        match self.info().alpn.as_deref() {
            Some("h2") => connected.negotiated_h2(),
            _ => connected,
        }
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}
