//! One bidirectional QUIC stream as a byte stream, opened on first use.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Handle;

use crate::graceful_close::{self, FinishAcknowledgement};

type StreamHalves = (quinn::SendStream, quinn::RecvStream);
type OpeningStream =
    Pin<Box<dyn Future<Output = Result<StreamHalves, quinn::ConnectionError>> + Send>>;

/// Who opens the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamRole {
    /// The client opens it.
    Client,
    /// The server waits for the client's.
    Server,
}

/// A bidirectional stream that is opened, or waited for, at its first use.
///
/// Once it was shut down it may be dropped at once: the connection then stays open in the background
/// until the peer has acknowledged everything ([`graceful_close`]).
pub(crate) struct QuicStream {
    connection: quinn::Connection,
    role: StreamRole,
    state: StreamState,
    /// Whether our side is finished, or will be as soon as the stream is open.
    is_shut_down: bool,
    /// Of a stream that was shut down; created by the first flush.
    acknowledgement: Option<FinishAcknowledgement>,
    runtime: Handle,
}

enum StreamState {
    Unused,
    /// In a mutex that is never locked, only to make the type `Sync`.
    Opening(Mutex<OpeningStream>),
    Open(quinn::SendStream, quinn::RecvStream),
}

impl QuicStream {
    /// Must be called inside a tokio runtime.
    pub(crate) fn new(connection: quinn::Connection, role: StreamRole) -> Self {
        Self {
            connection,
            role,
            state: StreamState::Unused,
            is_shut_down: false,
            acknowledgement: None,
            runtime: Handle::current(),
        }
    }

    pub(crate) fn connection(&self) -> &quinn::Connection {
        &self.connection
    }

    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match &mut self.state {
                StreamState::Open(..) => return Poll::Ready(Ok(())),
                StreamState::Unused => {
                    let (connection, role) = (self.connection.clone(), self.role);
                    self.state = StreamState::Opening(Mutex::new(Box::pin(async move {
                        match role {
                            StreamRole::Client => connection.open_bi().await,
                            StreamRole::Server => connection.accept_bi().await,
                        }
                    })));
                }
                StreamState::Opening(opening) => {
                    let opening =
                        opening.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
                    match ready!(opening.as_mut().poll(cx)) {
                        Ok((mut send, recv)) => {
                            if self.is_shut_down {
                                finish(&mut send)?;
                            }
                            self.state = StreamState::Open(send, recv);
                        }
                        Err(error) => {
                            self.state = StreamState::Unused;
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
            StreamState::Open(_, recv) => AsyncRead::poll_read(Pin::new(recv), cx, buf),
            StreamState::Unused | StreamState::Opening(_) => Poll::Pending,
        }
    }
}

/// Ends our side of a stream that is not finished yet.
fn finish(send: &mut quinn::SendStream) -> io::Result<()> {
    send.finish().map_err(Into::into)
}

impl AsyncWrite for QuicStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_shut_down {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        ready!(self.poll_open(cx))?;
        match &mut self.state {
            StreamState::Open(send, _) => AsyncWrite::poll_write(Pin::new(send), cx, buf),
            StreamState::Unused | StreamState::Opening(_) => Poll::Pending,
        }
    }

    /// After a shutdown, waits until the peer has acknowledged everything. There is nothing to wait
    /// for before it.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        match &this.state {
            StreamState::Open(send, _) if this.is_shut_down => this
                .acknowledgement
                .get_or_insert_with(|| graceful_close::acknowledgement(send))
                .as_mut()
                .poll(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_shut_down {
            return Poll::Ready(Ok(()));
        }
        // A client that has written nothing opens the stream, so that the server reads its end. A
        // server cannot: its side ends once the client has opened the stream.
        if self.role == StreamRole::Client {
            ready!(self.poll_open(cx))?;
        }
        self.is_shut_down = true;
        match &mut self.state {
            StreamState::Open(send, _) => Poll::Ready(finish(send)),
            StreamState::Unused | StreamState::Opening(_) => Poll::Ready(Ok(())),
        }
    }
}

impl Drop for QuicStream {
    fn drop(&mut self) {
        let state = std::mem::replace(&mut self.state, StreamState::Unused);
        if let StreamState::Open(send, recv) = state
            && self.is_shut_down
        {
            graceful_close::quic(&self.runtime, self.connection.clone(), send, recv);
        }
    }
}
