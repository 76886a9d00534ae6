//! Two ends in one thread, with queues of packets between them.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use crate::command::{Failure, Measurement, Start};
use crate::end::End;

/// Both ends, and the packets in flight between them.
pub struct Pair<E> {
    pub client: E,
    pub server: E,
    to_server: VecDeque<Bytes>,
    to_client: VecDeque<Bytes>,
}

impl<E: End> Pair<E> {
    /// Opens an association.
    pub fn connect() -> Result<Self, Failure> {
        let now = Instant::now();
        let (client, server) = (E::client(now), E::server(now));
        let mut pair =
            Self { client, server, to_server: VecDeque::new(), to_client: VecDeque::new() };
        while !(pair.client.is_established() && pair.server.is_established()) {
            if !pair.turn(Instant::now())
                && !(pair.client.is_established() && pair.server.is_established())
            {
                return Err("the handshake has stalled".into());
            }
        }
        // The last packets of the handshake.
        while pair.turn(Instant::now()) {}
        Ok(pair)
    }

    /// Transfers the pending packets once in each direction; returns whether there were any.
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

/// Sends messages of one size from the client to the server.
pub fn transfer<E: End>(size: usize, bytes: u64) -> Result<Measurement, Failure> {
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
                return Err(format!("unexpected message of {length} bytes").into());
            }
            received += 1;
        }
        if !moved {
            // Nothing happens until the next timer expires.
            let due = [pair.client.timeout(), pair.server.timeout()].into_iter().flatten().min();
            let due = due.ok_or("the transfer has stalled")?;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
    Ok(start.finish(count, count * size as u64))
}
