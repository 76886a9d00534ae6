//! Detects responses that the peer has cancelled.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use h3::quic::StreamId;
use quinn::{StoppedError, VarInt};

type Stopped = Pin<Box<dyn Future<Output = Result<Option<VarInt>, StoppedError>> + Send + Sync>>;

/// The requests of a connection, each with a future that completes when the peer cancels the
/// response (RFC 9000 §3.5). h3 owns the streams and reports cancellation only to writes, which do
/// not happen while a service produces nothing.
#[derive(Default)]
pub(in crate::serve) struct Cancellations(Mutex<HashMap<u64, Stopped>>);

impl Cancellations {
    /// Registers a stream until the returned value is dropped.
    pub(super) fn register(self: &Arc<Self>, stream: &quinn::SendStream) -> Registration {
        let id = VarInt::from(stream.id()).into_inner();
        self.with_registered(|registered| registered.insert(id, Box::pin(stream.stopped())));
        Registration { cancellations: Arc::clone(self), id }
    }

    /// Ready when the peer has cancelled the response on this stream.
    pub(super) async fn stopped(&self, id: StreamId) {
        let stopped = self.with_registered(|registered| registered.remove(&id.into_inner()));
        let is_stopped = match stopped {
            Some(stopped) => !matches!(stopped.await, Ok(None)),
            None => false,
        };
        if !is_stopped {
            std::future::pending().await
        }
    }

    fn with_registered<T>(&self, apply: impl FnOnce(&mut HashMap<u64, Stopped>) -> T) -> T {
        apply(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Keeps a stream registered until it is dropped.
pub(in crate::serve) struct Registration {
    cancellations: Arc<Cancellations>,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.cancellations.with_registered(|registered| registered.remove(&self.id));
    }
}
