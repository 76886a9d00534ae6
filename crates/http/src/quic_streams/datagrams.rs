//! HTTP Datagrams in QUIC DATAGRAM frames (RFC 9297 §2.1): each belongs to the stream of a request.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::{BufMut as _, Bytes, BytesMut};
use quinn::VarInt;
use tokio::sync::mpsc;

use super::connect::varint;

/// H3_DATAGRAM_ERROR (RFC 9297 §5.2).
const DATAGRAM_ERROR: VarInt = VarInt::from_u32(0x33);

/// The largest quarter of a stream ID (RFC 9297 §2.1).
const MAX_QUARTER_ID: u64 = (1 << 60) - 1;

/// The maximum number of datagrams queued for a stream; further ones are dropped.
const QUEUE_LENGTH: usize = 64;

/// The datagrams of one connection.
#[derive(Clone)]
pub(crate) struct ConnectionDatagrams(Arc<Connection>);

struct Connection {
    quic: quinn::Connection,
    streams: Mutex<HashMap<u64, mpsc::Sender<Bytes>>>,
}

impl ConnectionDatagrams {
    pub(crate) fn new(quic: quinn::Connection) -> Self {
        Self(Arc::new(Connection { quic, streams: Mutex::default() }))
    }

    /// Passes each datagram to its stream until the connection ends. Those that belong to no stream
    /// are dropped.
    pub(crate) async fn run(self) {
        while let Ok(frame) = self.0.quic.read_datagram().await {
            let Some((quarter_id, rest)) = stream(&frame) else {
                let why = b"a datagram without a valid stream ID";
                return self.0.quic.close(DATAGRAM_ERROR, why);
            };
            let payload = frame.slice_ref(rest);
            self.0.with_streams(|streams| {
                if let Some(stream) = streams.get(&quarter_id) {
                    // Dropped if the receiver is too slow.
                    let _ = stream.try_send(payload);
                }
            });
        }
    }

    /// Returns the datagrams of a stream that a client has opened.
    pub(crate) fn of(&self, stream: u64) -> StreamDatagrams {
        StreamDatagrams { connection: self.clone(), quarter_id: stream / 4 }
    }
}

/// Returns a quarter of the stream ID that a frame begins with, and the rest of the frame.
fn stream(frame: &[u8]) -> Option<(u64, &[u8])> {
    varint(frame).filter(|(quarter_id, _)| *quarter_id <= MAX_QUARTER_ID)
}

impl Connection {
    fn with_streams<T>(
        &self,
        apply: impl FnOnce(&mut HashMap<u64, mpsc::Sender<Bytes>>) -> T,
    ) -> T {
        apply(&mut self.streams.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Indicates that a request may use HTTP Datagrams in QUIC DATAGRAM frames (RFC 9297 §2.1), in
/// addition to capsules on its stream.
#[derive(Clone)]
pub struct StreamDatagrams {
    connection: ConnectionDatagrams,
    quarter_id: u64,
}

impl StreamDatagrams {
    /// Starts to receive datagrams; earlier ones are lost. A second call redirects them from the
    /// first receiver to the new one.
    pub fn open(&self) -> HttpDatagrams {
        let (sender, queue) = mpsc::channel(QUEUE_LENGTH);
        self.connection.0.with_streams(|streams| streams.insert(self.quarter_id, sender));
        HttpDatagrams { of: self.clone(), queue }
    }
}

impl fmt::Debug for StreamDatagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamDatagrams").field("quarter", &self.quarter_id).finish_non_exhaustive()
    }
}

/// The HTTP Datagrams of one request, in QUIC DATAGRAM frames.
#[derive(Debug)]
pub struct HttpDatagrams {
    of: StreamDatagrams,
    queue: mpsc::Receiver<Bytes>,
}

impl HttpDatagrams {
    /// Returns the next datagram once there is one.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        match self.queue.poll_recv(cx) {
            Poll::Ready(Some(datagram)) => Poll::Ready(datagram),
            // Only the end of the stream ends the datagrams.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// Sends a datagram that consists of these parts. Returns false if it does not fit into a
    /// frame. Datagrams can be lost, and the oldest queued ones are dropped when there are too
    /// many.
    pub fn send(&self, parts: &[&[u8]]) -> bool {
        let quic = &self.of.connection.0.quic;
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let max = quic.max_datagram_size().unwrap_or_default();
        let mut frame = BytesMut::with_capacity(length + 8);
        match self.of.quarter_id {
            quarter_id @ ..0x40 => frame.put_u8(quarter_id as u8),
            quarter_id @ 0x40..0x4000 => frame.put_u16(quarter_id as u16 | 0x4000),
            // Variable-length integers need not be minimal (RFC 9000 §16).
            quarter_id => frame.put_u64(quarter_id | (0b11 << 62)),
        }
        if frame.len() + length > max {
            return false;
        }
        parts.iter().for_each(|part| frame.put_slice(part));
        quic.send_datagram(frame.freeze()).is_ok()
    }
}

impl Drop for HttpDatagrams {
    fn drop(&mut self) {
        self.queue.close();
        self.of.connection.0.with_streams(|streams| {
            // A receiver opened later remains registered.
            if streams.get(&self.of.quarter_id).is_some_and(mpsc::Sender::is_closed) {
                streams.remove(&self.of.quarter_id);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= rfc9297 §2.1
    //# a datagram frame is a quarter of the stream ID and the datagram; more than 2^60-1:
    //# H3_DATAGRAM_ERROR
    #[test]
    fn a_frame_begins_with_a_quarter_of_a_stream_id() {
        for (frame, expected) in [
            (&b"\x07hello"[..], Some((7, &b"hello"[..]))),
            (b"\x40\x07", Some((7, b""))),
            (b"\xcf\xff\xff\xff\xff\xff\xff\xffx", Some((MAX_QUARTER_ID, b"x"))),
            (b"\xd0\0\0\0\0\0\0\0x", None),
            (b"\xff\xff\xff\xff\xff\xff\xff\xffx", None),
            (b"\xc0\0\0", None),
            (b"\x40", None),
            (b"", None),
        ] {
            assert_eq!(stream(frame), expected, "{frame:?}");
        }
    }
}
