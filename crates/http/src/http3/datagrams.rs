//! HTTP Datagrams in QUIC DATAGRAM frames (RFC 9297 §2.1): each belongs to the stream of a request.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use eyas_h3::{datagram, stream::StreamId};
use tokio::sync::mpsc;

use super::transport::QuicConnection;

/// The longest beginning of a frame: a quarter of a stream's identifier, in bytes.
const MAX_HEADER_BYTES: usize = 8;

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
        while let Ok(frame) = QuicConnection::read_datagram(&self.0.quic).await {
            let (stream, payload) = match datagram::parse(&frame) {
                Ok(parsed) => parsed,
                Err(fault) => {
                    let reason = fault.to_string();
                    return QuicConnection::close(&self.0.quic, fault.code(), &reason);
                }
            };
            self.0.with_streams(|streams| {
                if let Some(stream) = streams.get(&stream.0) {
                    // Dropped if the receiver is too slow.
                    let _ = stream.try_send(payload);
                }
            });
        }
    }

    /// Returns the datagrams of a stream that a client has opened.
    pub(crate) fn for_stream(&self, stream: u64) -> StreamDatagrams {
        StreamDatagrams { connection: self.clone(), stream }
    }
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
    stream: u64,
}

impl StreamDatagrams {
    /// Starts to receive datagrams; earlier ones are lost. A second call redirects them from the
    /// first receiver to the new one.
    pub fn open(&self) -> HttpDatagrams {
        let (sender, queue) = mpsc::channel(QUEUE_LENGTH);
        self.connection.0.with_streams(|streams| streams.insert(self.stream, sender));
        HttpDatagrams { of: self.clone(), queue }
    }
}

impl fmt::Debug for StreamDatagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamDatagrams").field("stream", &self.stream).finish_non_exhaustive()
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
        let max = quic.max_datagram_bytes().unwrap_or_default();
        let mut frame = Vec::with_capacity(MAX_HEADER_BYTES + length);
        datagram::write_header(StreamId(self.of.stream), &mut frame);
        if frame.len() + length > max {
            return false;
        }
        parts.iter().for_each(|part| frame.extend_from_slice(part));
        QuicConnection::send_datagram(quic, frame.into())
    }
}

impl Drop for HttpDatagrams {
    fn drop(&mut self) {
        self.queue.close();
        self.of.connection.0.with_streams(|streams| {
            // A receiver opened later remains registered.
            if streams.get(&self.of.stream).is_some_and(mpsc::Sender::is_closed) {
                streams.remove(&self.of.stream);
            }
        });
    }
}
