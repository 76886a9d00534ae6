//! A stream as datagrams go over it, and in QUIC DATAGRAM frames beside it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use eyas_http::HttpDatagrams;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
use tokio::time::timeout;

use super::capsule::{self, Capsules};
use crate::copy::Duplex;

/// Bytes that wait for the stream. Beyond them it takes no more datagrams.
const ROOM: usize = 32 * 1024;
/// Bytes read at once.
const READ: usize = 16 * 1024;
/// For the peer to take what waits, at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// What an HTTP Datagram of UDP begins with: its context (RFC 9298 §5).
const CONTEXT: [u8; 1] = [0];

/// Datagrams on a stream.
pub(crate) struct CapsuleStream<S> {
    stream: S,
    frames: Option<Frames>,
    capsules: Capsules,
    /// Not taken by the stream yet.
    waiting: BytesMut,
    is_flushed: bool,
}

/// Frames beside a stream.
struct Frames {
    datagrams: HttpDatagrams,
    /// Whether the peer is known to take them.
    are_taken: bool,
}

/// What has happened on a stream.
#[derive(Debug)]
pub(crate) enum Event {
    /// A datagram has come.
    Datagram(Bytes),
    /// There is room for datagrams again.
    Room,
    /// The peer has ended it.
    End,
}

impl<S: Duplex> CapsuleStream<S> {
    /// On this stream, of which `rest` has been read.
    pub(crate) fn new(stream: S, rest: &[u8]) -> Self {
        let mut capsules = Capsules::default();
        capsules.put(rest);
        Self { stream, frames: None, capsules, waiting: BytesMut::new(), is_flushed: true }
    }

    /// With frames beside it, which are sent once the peer has sent one, if it is not known that it takes
    /// them.
    pub(crate) fn with_frames(mut self, datagrams: Option<HttpDatagrams>, are_taken: bool) -> Self {
        self.frames = datagrams.map(|datagrams| Frames { datagrams, are_taken });
        self
    }

    /// Whether it takes another datagram.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < ROOM
    }

    /// Sends a datagram, which waits for the stream if need be.
    pub(crate) fn put(&mut self, payload: &[u8]) {
        let is_sent = match &self.frames {
            Some(Frames { datagrams, are_taken: true }) => datagrams.send(&[&CONTEXT, payload]),
            _ => false,
        };
        if !is_sent {
            capsule::write(&mut self.waiting, payload);
        }
    }

    /// What happens next; what waits is sent meanwhile.
    ///
    /// # Errors
    /// If the stream breaks, or makes no sense.
    pub(crate) async fn next(&mut self) -> io::Result<Event> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Event>> {
        let was_full = !self.has_room();
        self.send(cx)?;
        if was_full && self.has_room() {
            return Poll::Ready(Ok(Event::Room));
        }
        if let Some(frames) = &mut self.frames {
            while let Poll::Ready(datagram) = frames.datagrams.poll_next(cx) {
                frames.are_taken = true;
                if let Some(payload) = capsule::payload(&datagram) {
                    return Poll::Ready(Ok(Event::Datagram(payload)));
                }
            }
        }
        loop {
            if let Some(datagram) = self.capsules.datagram().map_err(io::Error::other)? {
                return Poll::Ready(Ok(Event::Datagram(datagram)));
            }
            let mut scratch = [0; READ];
            let mut read = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(match self.capsules.is_between() {
                    true => Ok(Event::End),
                    false => {
                        let why = "the stream ended in the middle of a capsule";
                        Err(io::Error::new(io::ErrorKind::UnexpectedEof, why))
                    }
                });
            }
            self.capsules.put(read.filled());
        }
    }

    /// Gives the stream as much of what waits as it takes.
    fn send(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while !self.waiting.is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, &self.waiting)? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(some) => self.waiting.advance(some),
                Poll::Pending => return Ok(()),
            }
            self.is_flushed = false;
        }
        if !self.is_flushed {
            self.is_flushed = Pin::new(&mut self.stream).poll_flush(cx)?.is_ready();
        }
        Ok(())
    }

    /// Ends it, if the peer takes what waits and ends it, too, in time: a stream that is dropped before
    /// is broken off.
    pub(crate) async fn end(mut self) {
        let ending = async {
            self.stream.write_all(&self.waiting).await?;
            self.stream.shutdown().await?;
            let mut scratch = [0; 1024];
            while self.stream.read(&mut scratch).await? > 0 {}
            io::Result::Ok(())
        };
        // Who does not listen any more need not know.
        let _ = timeout(FAREWELL, ending).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    #[tokio::test]
    async fn a_stream_that_is_full_takes_no_more_until_its_peer_reads() {
        let (near, mut far) = duplex(1000);
        let mut stream = CapsuleStream::new(near, b"\0\x03\0hi");
        let first = stream.next().await.expect("open");
        assert!(matches!(first, Event::Datagram(it) if &it[..] == b"hi"));
        while stream.has_room() {
            stream.put(&[7; 9000]);
        }
        assert!(stream.waiting.len() < ROOM + 9100);
        let full = stream.waiting.len();
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            far.read_to_end(&mut read).await.expect("reads");
            read.len()
        });
        assert!(matches!(stream.next().await, Ok(Event::Room)));
        stream.end().await;
        assert_eq!(reading.await.expect("no panic"), full);
    }

    #[tokio::test]
    async fn a_stream_ends_between_capsules_or_it_is_broken() {
        for (said, ends_well) in [(&b"\0\x02\0x"[..], true), (b"\0\x02\0", false)] {
            let (near, mut far) = duplex(1000);
            far.write_all(said).await.expect("there is room");
            drop(far);
            let mut stream = CapsuleStream::new(near, b"");
            let mut event = stream.next().await;
            if ends_well {
                assert!(matches!(event, Ok(Event::Datagram(_))));
                event = stream.next().await;
            }
            assert_eq!(matches!(event, Ok(Event::End)), ends_well, "{event:?}");
        }
    }
}
