//! The server's side of a connection's streams.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use super::stops::{Listed, Stops};
use crate::{
    quic_streams::Side,
    serve::{budget::Share, stats::Counters},
};

/// The server's side of a connection.
#[derive(Clone)]
pub(in crate::serve) struct ServerSide {
    pub(super) counters: Arc<Counters>,
    pub(super) share: Arc<Share>,
    /// Once set, new requests are turned away.
    pub(super) closing: Arc<AtomicBool>,
    pub(super) stops: Arc<Stops>,
}

impl Side for ServerSide {
    const IS_CLIENT: bool = false;

    type Kept = Listed;

    fn begins(&self, stream: &quinn::SendStream) -> Listed {
        self.stops.list(stream)
    }

    fn turns_away(&self) -> bool {
        let is_full = !self.share.has_place();
        if is_full {
            Counters::count(&self.counters.requests_refused);
        }
        is_full || self.closing.load(Relaxed)
    }
}
