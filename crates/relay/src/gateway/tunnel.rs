//! Connections that have become something else: bytes both ways, unread.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead as _, AsyncWrite, DuplexStream, ReadBuf, duplex, join};
use tokio_util::io::StreamReader;

use super::request_body::Upload;
use super::shared::Shared;
use super::stats::Counters;
use crate::copy::{Duplex, Passed, Until, both_ways};

/// Bytes that wait for the client's window.
const WAITING: usize = 64 * 1024;

/// Passes on what both sides say once both have switched, until one breaks, both have ended, or nothing
/// has moved for long.
pub(super) fn open(shared: &Arc<Shared>, client: OnUpgrade, upstream: OnUpgrade) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) else { return };
        pass(&shared, TokioIo::new(client), TokioIo::new(upstream)).await;
    });
}

/// The same for a client that speaks by the body of its request, and hears what this gives.
pub(super) fn open_on_stream(
    shared: &Arc<Shared>,
    client: Upload,
    upstream: OnUpgrade,
) -> Download {
    let shared = Arc::clone(shared);
    let (near, far) = duplex(WAITING);
    let ended = Arc::<AtomicBool>::default();
    let hears = Ending { inner: near, ended: Arc::clone(&ended) };
    tokio::spawn(async move {
        let says = StreamReader::new(client.into_data_stream().map_err(io::Error::other));
        let Ok(upstream) = upstream.await else { return };
        pass(&shared, join(says, hears), TokioIo::new(upstream)).await;
    });
    Download { far, ended }
}

async fn pass(shared: &Shared, mut client: impl Duplex, mut upstream: impl Duplex) {
    let counters = &shared.counters;
    Counters::count(&counters.tunnels_begun);
    counters.tunnels.fetch_add(1, Relaxed);
    let until = (Until::Both, shared.limits.tunnel_idle_time);
    let mut passed = Passed::default();
    let end = both_ways(&mut client, &mut upstream, until, &mut passed).await;
    tracing::debug!(?end, ?passed, "a tunnel has ended");
    counters.tunnels.fetch_sub(1, Relaxed);
}

/// What the client of a tunnel on a stream hears. It ends well only if the upstream has ended well.
#[derive(Debug)]
pub(super) struct Download {
    far: DuplexStream,
    ended: Arc<AtomicBool>,
}

impl Download {
    /// The next bytes.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Option<Bytes>>> {
        let mut piece = BytesMut::zeroed(WAITING / 4);
        let mut room = ReadBuf::new(&mut piece);
        let read = ready!(Pin::new(&mut self.far).poll_read(cx, &mut room));
        let length = room.filled().len();
        match (read, length) {
            (Ok(()), 1..) => {
                piece.truncate(length);
                Poll::Ready(Some(Some(piece.freeze())))
            }
            (Ok(()), 0) if self.ended.load(Relaxed) => Poll::Ready(None),
            _ => Poll::Ready(Some(None)),
        }
    }
}

/// A writer that takes note of a proper end.
struct Ending {
    inner: DuplexStream,
    ended: Arc<AtomicBool>,
}

impl AsyncWrite for Ending {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ended.store(true, Relaxed);
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
