//! Messages from one side to the other, as fast as possible.

use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::measure::{Answer, Start};
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

/// Carries messages of one size from the client to the server.
pub(crate) fn transfer(size: usize, bytes: u64) -> Result<Answer, Box<dyn std::error::Error>> {
    let epoch = Instant::now();
    let mut pair = Pair::new();
    let ours = pair.client.connect(epoch.elapsed())?;
    while pair.turn(epoch.elapsed())? {}
    let theirs = pair.server.up.ok_or("the association did not come up")?;
    let message = Bytes::from(vec![0x5a; size]);
    let count = bytes.div_ceil(size as u64);
    let start = Start::now();
    let (mut sent, mut received) = (0, 0);
    while received < count {
        let now = epoch.elapsed();
        while sent < count && pair.client.send(now, ours, &message)? {
            sent += 1;
        }
        let moved = pair.turn(now)?;
        while let Some(length) = pair.server.receive(now, theirs) {
            if length != size {
                return Err(format!("a message of {length} bytes").into());
            }
            received += 1;
        }
        if !moved {
            // Only a timer can make progress: advance to it.
            let due = [pair.client.timeout, pair.server.timeout].into_iter().flatten().min();
            let due = due.ok_or("the transfer stands still")?;
            std::thread::sleep(due.saturating_sub(epoch.elapsed()));
        }
    }
    Ok(start.answer(count, count * size as u64))
}
