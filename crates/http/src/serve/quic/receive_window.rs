//! What a connection may receive while it carries tunnels, and how a quiet one stays open.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use quinn::VarInt;
use tokio::time::sleep;

use super::RECEIVE_WINDOW;
use crate::serve::{
    budget::{Held, Share},
    pace::Rate,
};

/// How often a connection with a tunnel is looked at, at least.
const MAX_INTERVAL: Duration = Duration::from_secs(15);

/// The bytes of the connection's share of the budget that must be free for that: responses need some, too.
const SPARE_BYTES: usize = 4 * RECEIVE_WINDOW as usize;

/// The window for what a connection receives. A tunnel that its service does not read can fill the window of its stream,
/// so each adds as much to that of the connection, as far as the server's budget allows: it is then no obstacle for the
/// other requests.
pub(super) struct ReceiveWindow {
    conn: quinn::Connection,
    share: Arc<Share>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tunnels: u64,
    probes: u64,
}

/// A tunnel's part of the window, until it is dropped.
pub(super) struct TunnelWindow {
    window: Arc<ReceiveWindow>,
    held: Option<Held>,
}

impl ReceiveWindow {
    pub(super) fn new(conn: quinn::Connection, share: Arc<Share>) -> Self {
        Self { conn, share, state: Mutex::default() }
    }

    /// Adds the part of a tunnel.
    pub(super) fn open_tunnel(self: &Arc<Self>) -> TunnelWindow {
        let may_grow = self.share.room() >= SPARE_BYTES;
        let held = may_grow.then(|| self.share.bytes(RECEIVE_WINDOW as usize)).flatten();
        if held.is_some() {
            self.change_window(|state| state.tunnels += 1);
        }
        TunnelWindow { window: Arc::clone(self), held }
    }

    fn change_window(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        let window = u64::from(RECEIVE_WINDOW) * (1 + state.tunnels) + state.probes;
        self.conn.set_receive_window(VarInt::from_u64(window).unwrap_or(VarInt::MAX));
    }
}

impl TunnelWindow {
    /// Asks a silent client for a sign of life, again and again: a tunnel may be quiet for longer than either end lets a
    /// connection be idle (RFC 9000 §10.1.2). A client that has vanished is given up by QUIC.
    pub(super) async fn keep_alive(&self, rate: Rate) {
        let received = || self.window.conn.stats().udp_rx.datagrams;
        loop {
            let before = received();
            sleep(rate.step().min(MAX_INTERVAL)).await;
            if received() == before {
                // quinn offers no PING: one byte more of the window has to be acknowledged, too.
                self.window.change_window(|state| state.probes += 1);
            }
        }
    }
}

impl Drop for TunnelWindow {
    fn drop(&mut self) {
        if self.held.is_some() {
            self.window.change_window(|state| state.tunnels -= 1);
        }
    }
}
