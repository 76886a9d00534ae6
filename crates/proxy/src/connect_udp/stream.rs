//! Datagrams on a stream of capsules, and in QUIC DATAGRAM frames beside it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use eyas_http::HttpDatagrams;
use eyas_relay::copy::CopyStream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
use tokio::time::timeout;

use super::capsule::{self, CapsuleReader};

/// The limit on data that waits for the stream, in bytes. Beyond it there is no room for datagrams.
const MAX_WAITING: usize = 32 * 1024;
/// Bytes read at once.
const READ: usize = 16 * 1024;
/// The time for the peer to read the waiting data at the end.
const SHUTDOWN_TIME: Duration = Duration::from_secs(2);

/// The context before the payload of an HTTP Datagram (RFC 9298 §5).
const CONTEXT: [u8; 1] = [0];

/// Datagrams on a stream.
pub(crate) struct CapsuleStream<S> {
    stream: S,
    frames: Option<DatagramFrames>,
    capsules: CapsuleReader,
    /// Data that is not written to the stream yet.
    waiting: BytesMut,
    is_flushed: bool,
}

/// Frames beside a stream.
struct DatagramFrames {
    datagrams: HttpDatagrams,
    /// Whether the peer is known to accept them.
    are_accepted: bool,
}

/// An event of a stream.
#[derive(Debug)]
pub(crate) enum CapsuleEvent {
    /// A datagram arrived.
    Datagram(Bytes),
    /// There is room for datagrams again.
    Room,
    /// The peer ended the stream.
    End,
}

impl<S: CopyStream> CapsuleStream<S> {
    /// Uses this stream, of which `rest` has been read.
    pub(crate) fn new(stream: S, rest: &[u8]) -> Self {
        let mut capsules = CapsuleReader::default();
        capsules.receive(rest);
        Self { stream, frames: None, capsules, waiting: BytesMut::new(), is_flushed: true }
    }

    /// Uses frames beside the stream as well. If it is not known that the peer accepts them, they are sent only
    /// once the peer has sent one.
    pub(crate) fn with_frames(
        mut self,
        datagrams: Option<HttpDatagrams>,
        are_accepted: bool,
    ) -> Self {
        self.frames = datagrams.map(|datagrams| DatagramFrames { datagrams, are_accepted });
        self
    }

    /// Returns whether there is room for another datagram.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < MAX_WAITING
    }

    /// Sends a datagram, or queues it for the stream.
    pub(crate) fn send_datagram(&mut self, payload: &[u8]) {
        let is_sent = match &self.frames {
            Some(DatagramFrames { datagrams, are_accepted: true }) => {
                datagrams.send(&[&CONTEXT, payload])
            }
            _ => false,
        };
        if !is_sent {
            capsule::write(&mut self.waiting, payload);
        }
    }

    /// Waits for the next event, and sends queued data meanwhile.
    ///
    /// # Errors
    /// If the stream breaks or is invalid.
    pub(crate) async fn next(&mut self) -> io::Result<CapsuleEvent> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<CapsuleEvent>> {
        let was_full = !self.has_room();
        self.send(cx)?;
        if was_full && self.has_room() {
            return Poll::Ready(Ok(CapsuleEvent::Room));
        }
        if let Some(frames) = &mut self.frames {
            while let Poll::Ready(datagram) = frames.datagrams.poll_next(cx) {
                frames.are_accepted = true;
                if let Some(payload) = capsule::payload(&datagram) {
                    return Poll::Ready(Ok(CapsuleEvent::Datagram(payload)));
                }
            }
        }
        loop {
            if let Some(datagram) = self.capsules.datagram().map_err(io::Error::other)? {
                return Poll::Ready(Ok(CapsuleEvent::Datagram(datagram)));
            }
            let mut scratch = [0; READ];
            let mut read = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(match self.capsules.is_at_boundary() {
                    true => Ok(CapsuleEvent::End),
                    false => {
                        let why = "the stream ended in the middle of a capsule";
                        Err(io::Error::new(io::ErrorKind::UnexpectedEof, why))
                    }
                });
            }
            self.capsules.receive(read.filled());
        }
    }

    /// Writes as much queued data as the stream accepts.
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

    /// Shuts the stream down: writes the queued data, and waits for the peer's end. If the peer is too slow, the
    /// stream is dropped, which resets it.
    pub(crate) async fn end(mut self) {
        let ending = async {
            self.stream.write_all(&self.waiting).await?;
            self.stream.shutdown().await?;
            let mut scratch = [0; 1024];
            while self.stream.read(&mut scratch).await? > 0 {}
            io::Result::Ok(())
        };
        // A peer that has left does not need an end.
        let _ = timeout(SHUTDOWN_TIME, ending).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    //= rfc9297 §4
    //# 64 datagrams of a stream and 96 KiB of a client's capsules wait; more are lost
    #[tokio::test]
    async fn a_full_stream_has_no_room_until_its_peer_reads() {
        let (near, mut far) = duplex(1000);
        let mut stream = CapsuleStream::new(near, b"\0\x03\0hi");
        let first = stream.next().await.expect("open");
        assert!(matches!(first, CapsuleEvent::Datagram(it) if &it[..] == b"hi"));
        while stream.has_room() {
            stream.send_datagram(&[7; 9000]);
        }
        assert!(stream.waiting.len() < MAX_WAITING + 9100);
        let full = stream.waiting.len();
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            far.read_to_end(&mut read).await.expect("reads");
            read.len()
        });
        assert!(matches!(stream.next().await, Ok(CapsuleEvent::Room)));
        stream.end().await;
        assert_eq!(reading.await.expect("no panic"), full);
    }

    //= rfc9297 §3.3
    //# the end of a stream within a capsule is an error
    #[tokio::test]
    async fn a_stream_ends_between_capsules_or_it_is_broken() {
        for (sent, is_complete) in [(&b"\0\x02\0x"[..], true), (b"\0\x02\0", false)] {
            let (near, mut far) = duplex(1000);
            far.write_all(sent).await.expect("there is room");
            drop(far);
            let mut stream = CapsuleStream::new(near, b"");
            let mut event = stream.next().await;
            if is_complete {
                assert!(matches!(event, Ok(CapsuleEvent::Datagram(_))));
                event = stream.next().await;
            }
            assert_eq!(matches!(event, Ok(CapsuleEvent::End)), is_complete, "{event:?}");
        }
    }
}
