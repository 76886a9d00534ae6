//! dcsctp, unmodified: it formats every packet as hexadecimal text for the log, even if logging is disabled.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dcsctp::api::{
    DcSctpSocket, Message, Options, PpId, SendOptions, SocketEvent, SocketState, SocketTime,
    StreamId,
};
use rival_sctp::command::{self, Failure, Measurement, Start, resident};
use rival_sctp::end::{End, PACKET, WINDOW};
use rival_sctp::memory::Pair;

/// A socket with its time origin.
struct Node {
    socket: Box<dyn DcSctpSocket>,
    created: Instant,
}

fn options() -> Options {
    Options {
        mtu: PACKET,
        max_receiver_window_buffer_size: WINDOW,
        max_send_buffer_size: WINDOW,
        per_stream_send_queue_limit: WINDOW,
        ..Options::default()
    }
}

impl Node {
    fn new(name: &str, now: Instant) -> Self {
        let socket = dcsctp::new_socket(name, &options());
        Self { socket, created: now }
    }

    fn time(&self, now: Instant) -> SocketTime {
        SocketTime::zero() + now.saturating_duration_since(self.created)
    }
}

impl End for Node {
    fn client(now: Instant) -> Self {
        let mut node = Self::new("client", now);
        node.socket.connect();
        node
    }

    fn server(now: Instant) -> Self {
        Self::new("server", now)
    }

    fn handle(&mut self, now: Instant, packet: Bytes) {
        let time = self.time(now);
        self.socket.advance_time(time);
        self.socket.handle_input(&packet);
    }

    fn tick(&mut self, now: Instant) {
        let time = self.time(now);
        if self.socket.poll_timeout() <= time {
            self.socket.advance_time(time);
        }
    }

    fn timeout(&self) -> Option<Instant> {
        let at = self.socket.poll_timeout();
        let after = at - SocketTime::zero();
        (after < Duration::MAX).then(|| self.created + after)
    }

    fn transmit(&mut self, _: Instant, packets: &mut VecDeque<Bytes>) {
        while let Some(event) = self.socket.poll_event() {
            if let SocketEvent::SendPacket(packet) = event {
                packets.push_back(packet.into());
            }
        }
    }

    fn is_established(&mut self) -> bool {
        self.socket.state() == SocketState::Connected
    }

    fn send(&mut self, _: Instant, message: &Bytes) -> bool {
        let stream = StreamId(0);
        if self.socket.buffered_amount(stream) + message.len() > WINDOW / 2 {
            return false;
        }
        let message = Message::new(stream, PpId(53), message.to_vec());
        self.socket.send(message, &SendOptions::default()).is_ok()
    }

    fn receive(&mut self) -> Option<usize> {
        self.socket.get_next_message().map(|message| message.payload.len())
    }

    fn is_dry(&mut self) -> bool {
        let metrics = self.socket.get_metrics();
        self.socket.buffered_amount(StreamId(0)) == 0
            && metrics.is_none_or(|metrics| metrics.unack_data_count == 0)
    }
}

/// Opens associations one after another, and sends one message on each.
fn associations(count: usize) -> Result<Measurement, Failure> {
    let message = Bytes::from_static(&[0x5a; 64]);
    let mut pairs = Vec::with_capacity(count);
    let before = resident();
    let start = Start::now();
    for _ in 0..count {
        pairs.push(Pair::<Node>::connect()?);
    }
    let mut measurement = start.finish(count as u64, 0);
    for pair in &mut pairs {
        let now = Instant::now();
        pair.client.send(now, &message);
        while pair.turn(now) {}
        pair.server.receive().ok_or("a message was lost")?;
    }
    measurement.memory = (resident() - before) / count as f64;
    Ok(measurement)
}

fn main() -> Result<(), Failure> {
    command::main::<Node>(associations)
}
