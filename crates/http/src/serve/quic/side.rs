//! The server's side of a connection's streams.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use super::cancellations::{Cancellations, Registration};
use crate::{
    quic_streams::Side,
    serve::{budget::Share, stats::Counters},
};

/// The server's side of a connection.
#[derive(Clone)]
pub(in crate::serve) struct ServerSide {
    pub(super) counters: Arc<Counters>,
    pub(super) share: Arc<Share>,
    /// Set when new requests must be rejected.
    pub(super) closing: Arc<AtomicBool>,
    pub(super) cancellations: Arc<Cancellations>,
}

impl Side for ServerSide {
    const IS_CLIENT: bool = false;

    type RequestGuard = Registration;

    fn request_started(&self, stream: &quinn::SendStream) -> Registration {
        self.cancellations.register(stream)
    }

    fn rejects_requests(&self) -> bool {
        let is_full = !self.share.has_request_slot();
        if is_full {
            Counters::count(&self.counters.requests_refused);
        }
        is_full || self.closing.load(Relaxed)
    }
}
