//! Copies bytes in both directions between two streams, until both have ended.
//!
//! The directions end independently: when one side ends its stream, the end is forwarded, and the other
//! direction continues. A connection without data in transit has no buffer.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

/// Bytes read at once. What the other side does not accept immediately is buffered.
const PIECE: usize = 64 * 1024;
/// Pieces forwarded in one direction before the other one has its turn.
const TURN: usize = 16;

thread_local! {
    /// Shared by all connections of a thread, since no data stays in it between calls.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; PIECE].into_boxed_slice());
}

/// The bytes forwarded so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteCounts {
    /// Bytes from the client to the destination.
    pub sent: u64,
    /// Bytes from the destination to the client.
    pub received: u64,
}

/// How a copy ended.
#[derive(Debug)]
pub enum CopyEnd {
    /// Both sides ended their streams.
    Both,
    /// The client broke the connection.
    Client(io::Error),
    /// The destination broke the connection.
    Destination(io::Error),
    /// No data moved within the idle time.
    Idle,
}

/// A stream that can be copied from and to.
pub trait CopyStream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> CopyStream for T {}

#[derive(Debug, Default)]
struct OneDirection {
    /// Data that was read and is not completely written yet.
    waiting: Vec<u8>,
    /// The length of the part of it that is written.
    written: usize,
    /// The end was read.
    ended: bool,
    /// The end was forwarded.
    done: bool,
    /// The connection is broken, which the end of what has arrived hides.
    broken: Option<io::Error>,
    bytes: u64,
}

/// The operation that failed.
enum CopyFault {
    Reading(io::Error),
    Writing(io::Error),
}

/// When a copy ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyUntil {
    /// Both directions have ended.
    Both,
    /// The destination has sent everything, even if it reads no more: an HTTP server may answer before it
    /// has read the request, and close the connection (RFC 9112 §9.5).
    Destination,
}

/// Copies until both directions end, one side fails, or nothing moves for `idle`.
pub async fn bidirectional(
    client: &mut impl CopyStream,
    destination: &mut impl CopyStream,
    (until, idle): (CopyUntil, Duration),
    counts: &mut ByteCounts,
) -> CopyEnd {
    let (mut out, mut back) = (OneDirection::default(), OneDirection::default());
    let mut last_progress = Instant::now();
    let mut timer = pin!(sleep_until(last_progress + idle));
    let before = *counts;
    poll_fn(|cx| {
        loop {
            let moved = (out.bytes, back.bytes, out.done, back.done);
            let sent = match back.broken {
                Some(_) => Poll::Pending,
                None => out.poll(cx, client, destination),
            };
            let sent = match sent {
                Poll::Ready(Err(CopyFault::Writing(error))) if until == CopyUntil::Destination => {
                    back.broken = Some(error);
                    Poll::Pending
                }
                sent => sent,
            };
            let received = back.poll(cx, destination, client);
            counts.sent = before.sent + out.bytes;
            counts.received = before.received + back.bytes;
            match (sent, received) {
                (Poll::Ready(Err(CopyFault::Reading(error))), _)
                | (_, Poll::Ready(Err(CopyFault::Writing(error)))) => {
                    return Poll::Ready(CopyEnd::Client(error));
                }
                (Poll::Ready(Err(CopyFault::Writing(error))), _)
                | (_, Poll::Ready(Err(CopyFault::Reading(error)))) => {
                    return Poll::Ready(CopyEnd::Destination(error));
                }
                (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => return Poll::Ready(CopyEnd::Both),
                (_, Poll::Ready(Ok(()))) if until == CopyUntil::Destination => {
                    return Poll::Ready(CopyEnd::Both);
                }
                _ => {}
            }
            if (out.bytes, back.bytes, out.done, back.done) != moved {
                last_progress = Instant::now();
            }
            ready!(timer.as_mut().poll(cx));
            // The timer is reset only when it expires, and not with each byte.
            if last_progress + idle <= Instant::now() {
                return Poll::Ready(CopyEnd::Idle);
            }
            timer.as_mut().reset(last_progress + idle);
        }
    })
    .await
}

impl OneDirection {
    /// Forwards the available data. Ready once the end was forwarded.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut impl CopyStream,
        to: &mut impl CopyStream,
    ) -> Poll<Result<(), CopyFault>> {
        for _ in 0..TURN {
            ready!(self.poll_waiting(cx, to)).map_err(CopyFault::Writing)?;
            if self.ended {
                if let Some(error) = self.broken.take() {
                    return Poll::Ready(Err(CopyFault::Reading(error)));
                }
                if !self.done {
                    ready!(Pin::new(&mut *to).poll_shutdown(cx)).map_err(CopyFault::Writing)?;
                    self.done = true;
                }
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_piece(cx, from, to))?;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_waiting(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut impl CopyStream,
    ) -> Poll<io::Result<()>> {
        while self.written < self.waiting.len() {
            let some = ready!(Pin::new(&mut *to).poll_write(cx, &self.waiting[self.written..]))?;
            if some == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += some;
        }
        (self.waiting, self.written) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }

    /// Reads a piece, and writes as much of it as the other side accepts.
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut impl CopyStream,
        to: &mut impl CopyStream,
    ) -> Poll<Result<(), CopyFault>> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut piece = ReadBuf::new(scratch);
            ready!(Pin::new(from).poll_read(cx, &mut piece)).map_err(CopyFault::Reading)?;
            let mut rest = piece.filled();
            self.ended = rest.is_empty();
            self.bytes += rest.len() as u64;
            while !rest.is_empty() {
                match Pin::new(&mut *to).poll_write(cx, rest).map_err(CopyFault::Writing)? {
                    Poll::Ready(0) => {
                        let error = io::ErrorKind::WriteZero.into();
                        return Poll::Ready(Err(CopyFault::Writing(error)));
                    }
                    Poll::Ready(some) => rest = &rest[some..],
                    Poll::Pending => break,
                }
            }
            self.waiting.extend_from_slice(rest);
            Poll::Ready(Ok(()))
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn one_direction_ends_before_the_other() {
        let (mut client, mut near) = duplex(1000);
        let (mut far, mut server) = duplex(1000);
        let copying = tokio::spawn(async move {
            let mut counts = ByteCounts::default();
            (bidirectional(&mut near, &mut far, (CopyUntil::Both, LONG), &mut counts).await, counts)
        });
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut question = String::new();
        server.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "question");
        let answer = vec![7; 1_000_000];
        let expected = answer.clone();
        let answering = tokio::spawn(async move {
            server.write_all(&answer).await.unwrap();
        });
        let mut read = Vec::new();
        client.read_to_end(&mut read).await.unwrap();
        assert!(read == expected);
        answering.await.unwrap();
        let (end, counts) = copying.await.unwrap();
        assert!(matches!(end, CopyEnd::Both), "{end:?}");
        assert_eq!(counts, ByteCounts { sent: 8, received: 1_000_000 });
    }

    #[tokio::test(start_paused = true)]
    async fn idle_copies_end_and_active_ones_continue() {
        let (mut client, mut near) = duplex(1000);
        let (mut far, mut server) = duplex(1000);
        let copying = tokio::spawn(async move {
            let mut counts = ByteCounts::default();
            let idle = (CopyUntil::Both, Duration::from_secs(10));
            (bidirectional(&mut near, &mut far, idle, &mut counts).await, counts)
        });
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(7)).await;
            client.write_all(b"x").await.unwrap();
            server.read_u8().await.unwrap();
        }
        let (end, counts) = copying.await.unwrap();
        assert!(matches!(end, CopyEnd::Idle), "{end:?}");
        assert_eq!(counts.sent, 5);
    }
}
