//! Connections that stay open in the background after they were shut down and dropped, so that what
//! was written arrives.
//!
//! QUIC has no kernel below it, and closing a connection discards what is in flight (RFC 9000 §10.2).
//! So a stream that was shut down keeps its connection open until the peer has acknowledged
//! everything.
//!
//! A kernel delivers what was written to a TCP socket that is closed, unless something from the peer
//! is unread or arrives later: then it resets the connection, and what was not delivered is lost
//! (RFC 1122 §4.2.2.13). With TLS there nearly always is something, such as the session tickets that
//! follow a handshake and the peer's close_notify. So the socket is read until the peer has ended.

#[cfg(feature = "quic")]
use std::future::Future;
use std::io;
use std::mem::MaybeUninit;
#[cfg(feature = "quic")]
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::Handle;

use crate::sockets;

/// How many connections of a process may linger; beyond it, a connection is closed when it is dropped,
/// as Linux resets connections beyond `tcp_max_orphans`.
const MAX_LINGERING: usize = 1024;
/// How long a TCP socket is read after it was dropped. Unless the peer sends even later, the kernel
/// delivers the rest.
const TCP_LINGER: Duration = Duration::from_secs(30);
/// How many bytes are discarded once the peer's kernel has everything, so that a peer that never ends
/// is reset, as by a kernel, instead of being read for [`TCP_LINGER`]. What was in flight fits in it.
const MAX_DISCARDED: usize = 1024 * 1024;
/// How long a peer may accept nothing over QUIC before its connection is closed. A peer that does not
/// respond at all is given up earlier, by the idle timeout.
#[cfg(feature = "quic")]
const MAX_STALL: Duration = Duration::from_secs(60);

static LINGERING: AtomicUsize = AtomicUsize::new(0);

/// A place among the connections that linger.
struct LingerPlace;

impl LingerPlace {
    fn acquire() -> Option<Self> {
        let take = |taken| (taken < MAX_LINGERING).then_some(taken + 1);
        let place = LINGERING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        if place.is_err() {
            tracing::debug!("too many connections linger: one is closed at once");
        }
        place.ok().map(|_| Self)
    }
}

impl Drop for LingerPlace {
    fn drop(&mut self) {
        LINGERING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads a socket that was shut down and discards what arrives: until the peer has ended, or goes on
/// sending though it has everything.
pub(crate) fn tcp(runtime: &Handle, socket: TcpStream) {
    let Some(place) = LingerPlace::acquire() else { return };
    runtime.spawn(async move {
        let _place = place;
        let _ = tokio::time::timeout(TCP_LINGER, discard(&socket)).await;
    });
}

async fn discard(socket: &TcpStream) {
    let mut since_delivery = 0;
    while since_delivery < MAX_DISCARDED {
        // What is always readable never waits.
        tokio::task::coop::consume_budget().await;
        if socket.readable().await.is_err() {
            return;
        }
        match read_some(socket) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => return,
            Ok(_) if sockets::undelivered(socket).is_some_and(|bytes| bytes > 0) => {}
            Ok(length) => since_delivery += length,
        }
    }
    // A kernel resets an MPTCP connection only if something is unread when it is closed: what arrives
    // later fills a window that nobody opens, and the peer waits.
    let _ = socket.peek(&mut [0]).await;
    tracing::debug!("a peer that has everything goes on sending: its connection is reset");
}

/// Reads and discards what has arrived. The buffer is not in the future, of which each connection that lingers has one,
/// and nobody reads it, so that nothing has to be in it before.
fn read_some(socket: &TcpStream) -> io::Result<usize> {
    socket.try_read_buf(&mut &mut [MaybeUninit::<u8>::uninit(); 16 * 1024][..])
}

/// Resolves once the peer has acknowledged everything that was written to a finished stream.
#[cfg(feature = "quic")]
pub(crate) type FinishAcknowledgement = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

/// Waits for the acknowledgement of everything that was written to a finished stream.
#[cfg(feature = "quic")]
pub(crate) fn acknowledgement(send: &quinn::SendStream) -> FinishAcknowledgement {
    let stopped = send.stopped();
    Box::pin(async move {
        match stopped.await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(io::Error::new(
                io::ErrorKind::ConnectionReset,
                "the peer stopped reading before it had everything",
            )),
            Err(error) => Err(io::Error::new(io::ErrorKind::ConnectionReset, error)),
        }
    })
}

/// Keeps a QUIC connection open until the peer has acknowledged everything that was written, or
/// accepts nothing for too long. What the peer still sends is read and discarded: one that was stopped
/// in the middle of writing might not read what it has.
#[cfg(feature = "quic")]
pub(crate) fn quic(
    runtime: &Handle,
    connection: quinn::Connection,
    send: quinn::SendStream,
    mut recv: quinn::RecvStream,
) {
    if connection.close_reason().is_some() {
        return;
    }
    let Some(place) = LingerPlace::acquire() else { return };
    runtime.spawn(async move {
        let _place = place;
        let discard = async {
            while let Ok(Some(_)) = recv.read_chunk(usize::MAX, false).await {}
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = acknowledgement(&send) => {}
            () = stalled(&connection) => tracing::debug!("a lingering connection has stalled"),
            () = discard => {}
        }
    });
}

/// Resolves once nothing of the stream could be sent for [`MAX_STALL`].
#[cfg(feature = "quic")]
async fn stalled(connection: &quinn::Connection) {
    let sent = || connection.stats().frame_tx.stream;
    let mut before = sent();
    loop {
        tokio::time::sleep(MAX_STALL).await;
        if sent() == before {
            return;
        }
        before = sent();
    }
}
