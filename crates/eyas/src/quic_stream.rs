//! One bidirectional QUIC stream as a byte stream, opened on first use.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

type Halves = (quinn::SendStream, quinn::RecvStream);
type Opening = Pin<Box<dyn Future<Output = Result<Halves, quinn::ConnectionError>> + Send>>;

/// Who opens the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The client opens it.
    Client,
    /// The server waits for the client's.
    Server,
}

/// A bidirectional stream that is opened, or waited for, at its first use.
pub(crate) struct QuicStream {
    connection: quinn::Connection,
    role: Role,
    state: State,
}

enum State {
    Unused,
    /// In a mutex that is never locked, only to make the type `Sync`.
    Opening(Mutex<Opening>),
    Open(quinn::SendStream, quinn::RecvStream),
}

impl QuicStream {
    pub(crate) fn new(connection: quinn::Connection, role: Role) -> Self {
        Self { connection, role, state: State::Unused }
    }

    pub(crate) fn connection(&self) -> &quinn::Connection {
        &self.connection
    }

    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match &mut self.state {
                State::Open(..) => return Poll::Ready(Ok(())),
                State::Unused => {
                    let (connection, role) = (self.connection.clone(), self.role);
                    self.state = State::Opening(Mutex::new(Box::pin(async move {
                        match role {
                            Role::Client => connection.open_bi().await,
                            Role::Server => connection.accept_bi().await,
                        }
                    })));
                }
                State::Opening(opening) => {
                    let opening =
                        opening.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
                    match ready!(opening.as_mut().poll(cx)) {
                        Ok((send, recv)) => self.state = State::Open(send, recv),
                        Err(error) => {
                            self.state = State::Unused;
                            return Poll::Ready(Err(error.into()));
                        }
                    }
                }
            }
        }
    }
}

impl AsyncRead for QuicStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_open(cx))?;
        match &mut self.state {
            State::Open(_, recv) => AsyncRead::poll_read(Pin::new(recv), cx, buf),
            State::Unused | State::Opening(_) => Poll::Pending,
        }
    }
}

impl AsyncWrite for QuicStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(cx))?;
        match &mut self.state {
            State::Open(send, _) => AsyncWrite::poll_write(Pin::new(send), cx, buf),
            State::Unused | State::Opening(_) => Poll::Pending,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            State::Open(send, _) => AsyncWrite::poll_flush(Pin::new(send), cx),
            State::Unused | State::Opening(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            State::Open(send, _) => AsyncWrite::poll_shutdown(Pin::new(send), cx),
            State::Unused | State::Opening(_) => Poll::Ready(Ok(())),
        }
    }
}
