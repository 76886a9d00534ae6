//! A long path with packet loss, in virtual time: the link of `transfer link` of eyas-sctp, with the same losses.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::command::Failure;
use crate::end::End;

/// Bytes per second.
const RATE: f64 = 100e6 / 8.0;
const ONE_WAY: Duration = Duration::from_millis(50);
/// One out of this many packets is lost.
const LOSS: u64 = 1000;
/// The queue of the bottleneck, in bytes: the bandwidth-delay product.
const QUEUE: f64 = RATE * 0.1;
/// The headers of IPv4 and UDP, in bytes.
const HEADERS: usize = 28;
const RUN: Duration = Duration::from_secs(60);
const MESSAGE: usize = 16_384;

/// One direction of the path.
struct Direction {
    /// Packets with the time at which they arrive.
    packets: VecDeque<(Duration, Bytes)>,
    /// When the queue of the bottleneck will be empty.
    free_at: Duration,
    random: u64,
}

impl Direction {
    fn new(seed: u64) -> Self {
        Self { packets: VecDeque::new(), free_at: Duration::ZERO, random: seed }
    }

    /// Queues or drops a packet.
    fn enqueue(&mut self, now: Duration, packet: Bytes) {
        let waiting = self.free_at.saturating_sub(now).as_secs_f64() * RATE;
        if waiting > QUEUE || self.draw().is_multiple_of(LOSS) {
            return;
        }
        let transmission = Duration::from_secs_f64((packet.len() + HEADERS) as f64 / RATE);
        self.free_at = self.free_at.max(now) + transmission;
        self.packets.push_back((self.free_at + ONE_WAY, packet));
    }

    /// Returns the next packet that has arrived.
    fn dequeue(&mut self, now: Duration) -> Option<Bytes> {
        self.packets.front().filter(|(at, _)| *at <= now)?;
        self.packets.pop_front().map(|(_, packet)| packet)
    }

    /// Returns a random number (xorshift64).
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 8
    }
}

/// Returns the messages' share of the link, from 0 to 1, as JSON.
pub fn share<E: End>() -> Result<String, Failure> {
    let start = Instant::now();
    let (mut client, mut server) = (E::client(start), E::server(start));
    let (mut forward, mut backward) = (Direction::new(0x9e37_79b9), Direction::new(0x7f4a_7c15));
    let message = Bytes::from(vec![0x5a; MESSAGE]);
    let (mut now, mut bytes, mut packets) = (Duration::ZERO, 0, VecDeque::new());
    while now < RUN {
        let at = start + now;
        client.tick(at);
        server.tick(at);
        while client.is_established() && client.send(at, &message) {}
        client.transmit(at, &mut packets);
        packets.drain(..).for_each(|packet| forward.enqueue(now, packet));
        while let Some(length) = server.receive() {
            bytes += length;
        }
        server.transmit(at, &mut packets);
        packets.drain(..).for_each(|packet| backward.enqueue(now, packet));
        let timers = [client.timeout(), server.timeout()].into_iter().flatten();
        let timers = timers.map(|at| at.saturating_duration_since(start));
        let arrivals =
            [&forward, &backward].into_iter().filter_map(|it| it.packets.front().map(|it| it.0));
        // Timers that are due have been handled: only the passage of time can change that.
        let next = timers.chain(arrivals).min().ok_or("the transfer has stalled")?;
        now = next.max(now + Duration::from_micros(1));
        while let Some(packet) = forward.dequeue(now) {
            server.handle(start + now, packet);
        }
        while let Some(packet) = backward.dequeue(now) {
            client.handle(start + now, packet);
        }
    }
    let share = bytes as f64 / (RATE * RUN.as_secs_f64());
    Ok(format!("{{\"share\": {share:.4}, \"bytes\": {bytes}}}"))
}
