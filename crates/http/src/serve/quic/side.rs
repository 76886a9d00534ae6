//! What the server wants of the streams of a connection.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use crate::{quic_streams::Side, serve::activity::Activity};

/// The server's side of a connection.
#[derive(Clone)]
pub(in crate::serve) struct ServerSide {
    pub(super) activity: Arc<Activity>,
    /// Once set, new requests are turned away.
    pub(super) closing: Arc<AtomicBool>,
}

impl Side for ServerSide {
    const IS_CLIENT: bool = false;

    fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    fn moved(&self, bytes: usize) {
        self.activity.moved(bytes);
    }
}
