//! The connection of a client: unencrypted, over TLS, or a stream of a shared connection.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use eyas::sockets;
use eyas_relay::copy::CopyStream;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::report::ClientEnding;

/// How long a client may take to get what was sent to it before its connection is reset.
const DELIVERY_TIME: Duration = Duration::from_secs(5);
/// The most that is read at once before a client's bytes are copied.
const MAX_PIECE: usize = 4 * 1024;
/// How often it is checked whether a client has everything.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// The two directions of a client's stream.
pub(crate) enum ClientStream {
    /// TCP alone.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsStream<TcpStream>>),
    /// A tunnel through HTTP, which is reset unless it is shut down, and a token that is cancelled when the
    /// client gives it up.
    Stream(Box<dyn CopyStream + Send>, CancellationToken),
}

impl ClientStream {
    /// Returns the TCP connection, if it belongs to this client alone.
    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Plain(tcp) => Some(tcp),
            Self::Tls(tls) => Some(tls.get_ref().0),
            Self::Stream(..) => None,
        }
    }

    /// Returns whether the connection is unencrypted.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// Waits until the client has disconnected. Unless it `awaits` an answer, the end of its data does not mean
    /// that it has. A client that sends more data is no longer watched.
    pub(crate) async fn disconnected(&mut self, awaits: bool) {
        match self {
            Self::Stream(_, disconnect) => disconnect.cancelled().await,
            Self::Plain(_) | Self::Tls(_) => {
                let Some(tcp) = self.tcp().filter(|_| awaits) else {
                    return std::future::pending().await;
                };
                if matches!(tcp.peek(&mut [0]).await, Ok(1..)) {
                    std::future::pending().await
                }
            }
        }
    }

    /// Waits until the client has broken its connection.
    pub(crate) async fn failed(&mut self) {
        match self {
            Self::Stream(_, disconnect) => disconnect.cancelled().await,
            Self::Plain(_) | Self::Tls(_) => {
                let Some(tcp) = self.tcp() else { return };
                // Failing to wait does not mean that the connection is broken.
                if tcp.ready(tokio::io::Interest::ERROR).await.is_err() {
                    std::future::pending().await
                }
            }
        }
    }

    /// Has the connection reset if the stream was cut off, so that it does not look complete. The reset
    /// waits until the client has what was sent, which may be a whole answer.
    pub(crate) async fn cut_if_broken(&mut self, ending: &ClientEnding) {
        if let Some(tcp) = self.tcp()
            && matches!(
                ending,
                ClientEnding::Unanswered(_) | ClientEnding::Destination(_) | ClientEnding::Idle
            )
        {
            let delivered = async {
                while sockets::undelivered(tcp).is_some_and(|bytes| bytes > 0) {
                    sleep(CHECK_EVERY).await;
                }
            };
            let _ = timeout(DELIVERY_TIME, delivered).await;
            let _ = SockRef::from(tcp).set_linger(Some(Duration::ZERO));
        }
    }
}

impl ClientStream {
    /// Passes on what has arrived, at most `room` bytes, and returns how many there are. It holds no buffer while
    /// nothing has arrived. Cancel-safe.
    pub(crate) async fn read_piece(
        &mut self,
        room: usize,
        mut receive: impl FnMut(&[u8]),
    ) -> io::Result<usize> {
        poll_fn(|cx| {
            let mut piece = [MaybeUninit::uninit(); MAX_PIECE];
            let mut piece = ReadBuf::uninit(&mut piece[..room.min(MAX_PIECE)]);
            ready!(Pin::new(&mut *self).poll_read(cx, &mut piece))?;
            receive(piece.filled());
            Poll::Ready(Ok(piece.filled().len()))
        })
        .await
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
            Self::Stream(stream, _) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
            Self::Stream(stream, _) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Tls(tls) => Pin::new(tls).poll_flush(cx),
            Self::Stream(stream, _) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
            Self::Stream(stream, _) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
