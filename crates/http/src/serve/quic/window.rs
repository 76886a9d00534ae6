//! Limits how much a connection may have in flight.

use std::sync::{Arc, Mutex, PoisonError};

use crate::serve::{
    budget::{Held, Share},
    piece::Flow,
};

/// Bytes of responses that a new connection may have sent without an acknowledgement.
pub(super) const INITIAL_WINDOW: u64 = 64 * 1024;

/// The maximum of that: enough for 300 Mbit/s over 100 ms.
const MAX_WINDOW: u64 = 4 * 1024 * 1024;

/// The approximate number of bytes in the STREAM frame of a full packet.
const FRAME_PAYLOAD: u64 = 1024;

/// The window for data that quinn buffers until the peer acknowledges it. Like a congestion window,
/// it opens as data is acknowledged, and only as far as the server's budget allows.
pub(super) struct SendWindow {
    conn: quinn::Connection,
    share: Arc<Share>,
    state: Mutex<State>,
}

struct State {
    size: u64,
    /// Bytes sent since it was last enlarged.
    sent: u64,
    held: Vec<Held>,
}

impl SendWindow {
    pub(super) fn new(conn: quinn::Connection, share: Arc<Share>) -> Self {
        let state = State { size: INITIAL_WINDOW, sent: 0, held: Vec::new() };
        Self { conn, share, state: Mutex::new(state) }
    }

    /// Returns approximately what the connection has sent since all of a response was passed to
    /// quinn. The peer has room for everything that quinn holds, but the path may be slow; quinn
    /// does not report the progress of a single stream.
    pub(super) fn sent_behind(&self, flow: &Flow) -> u64 {
        if !flow.has_ended() {
            return 0;
        }
        self.conn.stats().frame_tx.stream * FRAME_PAYLOAD
    }

    /// Records that quinn has accepted bytes.
    pub(super) fn sent(&self, bytes: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.sent += bytes as u64;
        // At most the window can be in flight: anything beyond it was acknowledged.
        if state.size >= MAX_WINDOW || state.sent < state.size + state.size / 2 {
            return;
        }
        state.sent = 0;
        if let Some(held) = self.share.bytes(state.size as usize) {
            state.held.push(held);
            state.size *= 2;
            self.conn.set_send_window(state.size);
        }
    }
}
