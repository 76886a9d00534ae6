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

/// Datagrams of a stream that wait to be taken. Beyond them they are lost.
const WAITING: usize = 64;

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

    /// Hands each datagram to its stream, until the connection ends. What belongs to no stream is lost.
    pub(crate) async fn run(self) {
        while let Ok(frame) = self.0.quic.read_datagram().await {
            let Some((quarter, rest)) = varint(&frame) else {
                let why = b"a datagram ends before its stream ID";
                return self.0.quic.close(DATAGRAM_ERROR, why);
            };
            let payload = frame.slice_ref(rest);
            self.0.map(|streams| {
                if let Some(stream) = streams.get(&quarter) {
                    // A receiver that is too slow loses them.
                    let _ = stream.try_send(payload);
                }
            });
        }
    }

    /// Those of a stream that a client has opened.
    pub(crate) fn of(&self, stream: u64) -> StreamDatagrams {
        StreamDatagrams { connection: self.clone(), quarter: stream / 4 }
    }
}

impl Connection {
    fn map<T>(&self, change: impl FnOnce(&mut HashMap<u64, mpsc::Sender<Bytes>>) -> T) -> T {
        change(&mut self.streams.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// That a request may use HTTP Datagrams in QUIC DATAGRAM frames (RFC 9297 §2.1), beside the capsules on
/// its stream.
#[derive(Clone)]
pub struct StreamDatagrams {
    connection: ConnectionDatagrams,
    quarter: u64,
}

impl StreamDatagrams {
    /// Receives the datagrams from now on; earlier ones are lost. A second call takes them from the first.
    pub fn open(&self) -> HttpDatagrams {
        let (sender, arrived) = mpsc::channel(WAITING);
        self.connection.0.map(|streams| streams.insert(self.quarter, sender));
        HttpDatagrams { of: self.clone(), arrived }
    }
}

impl fmt::Debug for StreamDatagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamDatagrams").field("quarter", &self.quarter).finish_non_exhaustive()
    }
}

/// The HTTP Datagrams of one request, in QUIC DATAGRAM frames.
#[derive(Debug)]
pub struct HttpDatagrams {
    of: StreamDatagrams,
    arrived: mpsc::Receiver<Bytes>,
}

impl HttpDatagrams {
    /// Returns the next datagram once there is one.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        match self.arrived.poll_recv(cx) {
            Poll::Ready(Some(datagram)) => Poll::Ready(datagram),
            // The end is that of the stream.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    /// Sends a datagram that consists of these parts, or returns false if no frame takes it. It may be
    /// lost, as may those that wait before it when there are too many.
    pub fn send(&self, parts: &[&[u8]]) -> bool {
        let quic = &self.of.connection.0.quic;
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let most = quic.max_datagram_size().unwrap_or_default();
        let mut frame = BytesMut::with_capacity(length + 8);
        match self.of.quarter {
            quarter @ ..0x40 => frame.put_u8(quarter as u8),
            quarter @ 0x40..0x4000 => frame.put_u16(quarter as u16 | 0x4000),
            // The longest form of a variable-length integer is as good as any (RFC 9000 §16).
            quarter => frame.put_u64(quarter | (0b11 << 62)),
        }
        if frame.len() + length > most {
            return false;
        }
        parts.iter().for_each(|part| frame.put_slice(part));
        quic.send_datagram(frame.freeze()).is_ok()
    }
}

impl Drop for HttpDatagrams {
    fn drop(&mut self) {
        self.arrived.close();
        self.of.connection.0.map(|streams| {
            // Whoever has opened them after this keeps them.
            if streams.get(&self.of.quarter).is_some_and(mpsc::Sender::is_closed) {
                streams.remove(&self.of.quarter);
            }
        });
    }
}
