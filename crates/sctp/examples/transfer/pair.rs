//! Two endpoints whose packets reach each other at once.

use std::time::Duration;

use crate::side::{CLIENT, SERVER, Side, config};

/// Both sides.
pub(crate) struct Pair {
    pub(crate) client: Side,
    pub(crate) server: Side,
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self { client: Side::new(CLIENT, &config()), server: Side::new(SERVER, &config()) }
    }

    /// Transfers all pending packets once in each direction; returns whether there were any.
    pub(crate) fn turn(&mut self, now: Duration) -> Result<bool, String> {
        self.client.drain(now)?;
        let mut moved = !self.client.packets.is_empty();
        for transmit in self.client.packets.drain(..) {
            self.server.handle(now, CLIENT, transmit);
        }
        self.server.drain(now)?;
        moved |= !self.server.packets.is_empty();
        for transmit in self.server.packets.drain(..) {
            self.client.handle(now, SERVER, transmit);
        }
        Ok(moved)
    }
}
