//! A long path with losses, in virtual time: the same packets in every run.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use eyas_sctp::config::CongestionControlKind;
use eyas_sctp::io::Transmit;

use crate::side::{CLIENT, SERVER, Side, config};

/// The rate in bytes per second.
const RATE: f64 = 100e6 / 8.0;
const ONE_WAY: Duration = Duration::from_millis(50);
/// One in this many packets is lost.
const LOSS: u64 = 1000;
/// The bytes that the bottleneck queues: the link's capacity during one round trip.
const QUEUE: f64 = RATE * 0.1;
/// The headers of IPv4 and UDP, in bytes.
const HEADERS: usize = 28;
pub(crate) const RUN: Duration = Duration::from_secs(60);
pub(crate) const MESSAGE: usize = 16_384;
/// The send and receive buffer, in bytes: several bandwidth-delay products.
const BUFFER: usize = 16 << 20;

/// One direction of the path.
pub(crate) struct Direction {
    /// Packets with their arrival times.
    packets: VecDeque<(Duration, Transmit)>,
    /// The time at which the bottleneck's queue will be empty.
    free_at: Duration,
    random: u64,
}

impl Direction {
    pub(crate) fn new(seed: u64) -> Self {
        Self { packets: VecDeque::new(), free_at: Duration::ZERO, random: seed }
    }

    /// Accepts packets, and loses some.
    pub(crate) fn take(&mut self, now: Duration, transmit: &Transmit) {
        let mut rest = transmit.contents.clone();
        while !rest.is_empty() {
            let contents = rest.split_to(transmit.segment_size.min(rest.len()));
            let waiting = self.free_at.saturating_sub(now).as_secs_f64() * RATE;
            if waiting > QUEUE || self.draw().is_multiple_of(LOSS) {
                continue;
            }
            let took = Duration::from_secs_f64((contents.len() + HEADERS) as f64 / RATE);
            self.free_at = self.free_at.max(now) + took;
            let segment_size = contents.len();
            let packet = Transmit { contents, segment_size, ..transmit.clone() };
            self.packets.push_back((self.free_at + ONE_WAY, packet));
        }
    }

    /// The next packet that has arrived.
    pub(crate) fn arrived(&mut self, now: Duration) -> Option<Transmit> {
        self.packets.front().filter(|(at, _)| *at <= now)?;
        self.packets.pop_front().map(|(_, packet)| packet)
    }

    /// The arrival time of the next packet.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.packets.front().map(|(at, _)| *at)
    }

    /// The next number from xorshift64.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 8
    }
}

/// The share of the link that messages achieve, from 0 to 1, as JSON.
pub(crate) fn share(controller: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut config = config();
    config.send_buffer = BUFFER;
    config.receive_buffer = BUFFER;
    let kind = CongestionControlKind::from_name(controller);
    let kind = kind.ok_or_else(|| format!("no controller is called {controller}"))?;
    config.congestion_control = kind.into();
    let (mut client, mut server) = (Side::new(CLIENT, &config), Side::new(SERVER, &config));
    let (mut there, mut back) = (Direction::new(0x9e37_79b9), Direction::new(0x7f4a_7c15));
    let message = Bytes::from(vec![0x5a; MESSAGE]);
    let mut now = Duration::ZERO;
    let mut bytes = 0;
    let ours = client.connect(now)?;
    while now < RUN {
        while client.up.is_some() && client.send(now, ours, &message)? {}
        client.drain(now)?;
        for transmit in client.packets.drain(..) {
            there.take(now, &transmit);
        }
        server.drain(now)?;
        for transmit in server.packets.drain(..) {
            back.take(now, &transmit);
        }
        let ends = [client.timeout, server.timeout].into_iter().flatten();
        let next = [&there, &back].into_iter().filter_map(Direction::next);
        now = ends.chain(next).min().ok_or("the transfer stalled")?.max(now);
        while let Some(packet) = there.arrived(now) {
            server.handle(now, CLIENT, packet);
        }
        while let Some(packet) = back.arrived(now) {
            client.handle(now, SERVER, packet);
        }
        while let Some(length) = server.up.and_then(|theirs| server.receive(now, theirs)) {
            bytes += length;
        }
    }
    Ok(share_of(bytes))
}

/// The ratio of these bytes to the link's capacity, as JSON.
pub(crate) fn share_of(bytes: usize) -> String {
    let share = bytes as f64 / (RATE * RUN.as_secs_f64());
    format!("{{\"share\": {share:.4}, \"bytes\": {bytes}}}")
}
