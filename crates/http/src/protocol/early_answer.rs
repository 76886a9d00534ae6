//! A response that the peer sent before it stopped reading the request.
//!
//! A server may answer before it has read a request, and close the connection (RFC 9112 §9.5). The
//! next write then fails although the response has arrived. hyper would give up, so a write that
//! fails stays pending until everything that has arrived is read.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::InputEnd;

/// A stream whose reader learns of a failed write, once it has read everything.
#[derive(Debug)]
pub struct EarlyAnswer<S> {
    inner: S,
    /// The error of the write that has failed.
    failed: Option<io::ErrorKind>,
    /// Whether everything was read after that.
    is_exhausted: bool,
    end: InputEnd,
}

impl<S> EarlyAnswer<S> {
    /// Wraps a stream that carries HTTP/1.1, at its client.
    pub fn new(inner: S) -> Self {
        Self { inner, failed: None, is_exhausted: false, end: InputEnd::default() }
    }

    /// Returns where the peer's informational responses end its input, of which hyper reads on as long as there is
    /// any.
    pub fn input_end(&self) -> InputEnd {
        self.end.clone()
    }

    /// Returns the outcome of a write, unless it is to wait for the reader.
    fn outcome<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>>
    where
        S: Unpin,
    {
        if self.failed.is_none() {
            match ready!(write(Pin::new(&mut self.inner), cx)) {
                Err(error) if is_of_the_peer(error.kind()) => self.failed = Some(error.kind()),
                outcome => return Poll::Ready(outcome),
            }
            // The reader comes first in each turn: it has not seen the failure yet.
            cx.waker().wake_by_ref();
        }
        match self.failed {
            // The reader is polled until it has ended, and then the writer as well.
            Some(kind) if self.is_exhausted => Poll::Ready(Err(kind.into())),
            _ => Poll::Pending,
        }
    }
}

/// Returns whether a write failed because the peer reads no more.
fn is_of_the_peer(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected
    )
}

impl<S: AsyncRead + Unpin> AsyncRead for EarlyAnswer<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(too_many) = self.end.get() {
            return Poll::Ready(Err(io::Error::other(too_many)));
        }
        let (before, has_room) = (buf.filled().len(), buf.remaining() > 0);
        let result = ready!(Pin::new(&mut self.inner).poll_read(cx, buf));
        let has_ended = result.is_err() || (has_room && buf.filled().len() == before);
        match self.failed {
            Some(kind) if has_ended => {
                self.is_exhausted = true;
                Poll::Ready(Err(kind.into()))
            }
            _ => Poll::Ready(result),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for EarlyAnswer<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.outcome(cx, |inner, cx| inner.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.outcome(cx, |inner, cx| inner.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outcome(cx, AsyncWrite::poll_flush)
    }

    /// Not delayed: nobody reads after it.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, StatusCode};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
    };

    use crate::{Body, protocol::h1::Http1};

    /// Answers without reading the body, and resets the connection by closing it.
    async fn refuse(listener: TcpListener, answer: &'static [u8]) {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = [0; 64];
        stream.read_exact(&mut head).await.expect("a head");
        stream.write_all(answer).await.expect("sent");
    }

    async fn upload(answer: &'static [u8]) -> Option<(StatusCode, usize)> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).await;
        let mut http1 = Http1::start(stream.expect("connected"), false).await.expect("starts");
        let refusing = tokio::spawn(refuse(listener, answer));
        let body = Body::from(vec![0; 12_000_000]);
        let request = Request::post("http://localhost/a-path-that-is-long-enough-for-the-server");
        let response = http1.send(request.body(body).expect("a request")).await.ok();
        refusing.await.expect("no panic");
        let response = response?;
        let status = response.status();
        let body = response.into_body().bytes().await.ok()?;
        Some((status, body.len()))
    }

    #[tokio::test]
    async fn an_answer_before_a_reset_is_delivered() {
        for _ in 0..50 {
            let answer = b"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 9\r\n\r\ntoo large";
            assert_eq!(upload(answer).await, Some((StatusCode::PAYLOAD_TOO_LARGE, 9)));
        }
    }

    #[tokio::test]
    async fn a_reset_without_a_whole_answer_is_an_error() {
        for answer in
            [&b""[..], b"HTTP/1.1 413 Pay", b"HTTP/1.1 413 P\r\nContent-Length: 9\r\n\r\nt"]
        {
            let answered = tokio::time::timeout(std::time::Duration::from_secs(20), upload(answer));
            assert_eq!(answered.await.expect("no hang"), None);
        }
    }
}
