//! Two ends in one thread; packets go from one queue to the other.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use crate::command::{Answer, Failure, Start};
use crate::end::End;

/// Both ends, and what is under way between them.
pub struct Pair<E> {
    pub client: E,
    pub server: E,
    to_server: VecDeque<Bytes>,
    to_client: VecDeque<Bytes>,
}

impl<E: End> Pair<E> {
    /// Sets an association up.
    pub fn connect() -> Result<Self, Failure> {
        let now = Instant::now();
        let (client, server) = (E::client(now), E::server(now));
        let mut pair =
            Self { client, server, to_server: VecDeque::new(), to_client: VecDeque::new() };
        while !(pair.client.is_up() && pair.server.is_up()) {
            if !pair.turn(Instant::now()) && !(pair.client.is_up() && pair.server.is_up()) {
                return Err("the handshake stands still".into());
            }
        }
        // What the handshake leaves to be said.
        while pair.turn(Instant::now()) {}
        Ok(pair)
    }

    /// Carries what there is to carry, once each way; whether there was something.
    pub fn turn(&mut self, now: Instant) -> bool {
        self.client.tick(now);
        self.client.transmit(now, &mut self.to_server);
        let mut moved = !self.to_server.is_empty();
        for packet in self.to_server.drain(..) {
            self.server.handle(now, packet);
        }
        self.server.tick(now);
        self.server.transmit(now, &mut self.to_client);
        moved |= !self.to_client.is_empty();
        for packet in self.to_client.drain(..) {
            self.client.handle(now, packet);
        }
        moved
    }
}

/// Carries messages of one size from the client to the server.
pub fn transfer<E: End>(size: usize, bytes: u64) -> Result<Answer, Failure> {
    let mut pair = Pair::<E>::connect()?;
    let message = Bytes::from(vec![0x5a; size]);
    let count = bytes.div_ceil(size as u64);
    let start = Start::now();
    let (mut sent, mut received) = (0, 0);
    while received < count {
        let now = Instant::now();
        while sent < count && pair.client.send(now, &message) {
            sent += 1;
        }
        let moved = pair.turn(now);
        while let Some(length) = pair.server.receive() {
            if length != size {
                return Err(format!("a message of {length} bytes").into());
            }
            received += 1;
        }
        if !moved {
            // Only a timer can help: let it come.
            let due = [pair.client.timeout(), pair.server.timeout()].into_iter().flatten().min();
            let due = due.ok_or("the transfer stands still")?;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
    Ok(start.answer(count, count * size as u64))
}
