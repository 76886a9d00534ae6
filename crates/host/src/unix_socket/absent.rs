//! Windows has such sockets, but tokio has them for Linux and its relatives only.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

fn absent() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "sockets of the file system are not used on Windows")
}

/// A connection (unix(7)): there is none.
#[derive(Debug)]
pub struct UnixStream(Infallible);

/// A listener (unix(7)): there is none.
#[derive(Debug)]
pub struct UnixListener(Infallible);

impl UnixStream {
    /// Fails.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`].
    pub async fn connect(_: impl AsRef<Path>) -> io::Result<Self> {
        Err(absent())
    }
}

impl UnixListener {
    /// Fails.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`].
    pub fn bind(_: impl AsRef<Path>) -> io::Result<Self> {
        Err(absent())
    }

    /// Waits for a connection: there is none.
    ///
    /// # Errors
    /// None.
    pub async fn accept(&self) -> io::Result<(UnixStream, Infallible)> {
        match self.0 {}
    }
}

impl AsyncRead for UnixStream {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.0 {}
    }
}

impl AsyncWrite for UnixStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match self.0 {}
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.0 {}
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_absent_is_named() {
        let errors = [UnixStream::connect("a").await.map(drop), UnixListener::bind("a").map(drop)];
        for error in errors.map(Result::unwrap_err) {
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            assert!(error.to_string().contains("Windows"), "{error}");
        }
    }
}
