//! Responses that the peer has cancelled.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use h3::quic::StreamId;
use quinn::{StoppedError, VarInt};

type Stopped = Pin<Box<dyn Future<Output = Result<Option<VarInt>, StoppedError>> + Send + Sync>>;

/// The requests of a connection, each with what tells that its peer stops the response (RFC 9000
/// §3.5). h3 keeps the streams to itself and says so only to who writes, which a response does not do
/// while its service is silent.
#[derive(Default)]
pub(in crate::serve) struct Stops(Mutex<HashMap<u64, Stopped>>);

impl Stops {
    /// Registers a stream until the returned value is dropped.
    pub(super) fn list(self: &Arc<Self>, stream: &quinn::SendStream) -> Listed {
        let id = VarInt::from(stream.id()).into_inner();
        self.map(|listed| listed.insert(id, Box::pin(stream.stopped())));
        Listed { stops: Arc::clone(self), id }
    }

    /// Ready when the peer has cancelled the response on this stream.
    pub(super) async fn stopped(&self, id: StreamId) {
        let stopped = self.map(|listed| listed.remove(&id.into_inner()));
        let is_stopped = match stopped {
            Some(stopped) => !matches!(stopped.await, Ok(None)),
            None => false,
        };
        if !is_stopped {
            std::future::pending().await
        }
    }

    fn map<T>(&self, change: impl FnOnce(&mut HashMap<u64, Stopped>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A stream that is known, until this is dropped.
pub(in crate::serve) struct Listed {
    stops: Arc<Stops>,
    id: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.stops.map(|listed| listed.remove(&self.id));
    }
}
