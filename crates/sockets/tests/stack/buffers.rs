//! Tests of buffers of any size with a peer that reads at random times: a full one returns
//! `EAGAIN`, `poll` agrees, and no byte is lost.

use eyas_sockets::abi::number::{level, msg, so, socket};
use eyas_sockets::{Errno, SocketId};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::pair::{Pair, SERVER};
use eyas_sockets::abi::number::poll::POLLOUT;

/// The minimum and maximum in the kernel (`net.core.wmem_max`, `rmem_max`), which doubles the
/// requested size.
const MIN_SIZES: [i32; 2] = [4608, 2304];
const MAX_SIZE: i32 = 2 * 212_992;
/// The length of the longest message.
const MAX_MESSAGE: usize = 60_000;
/// The minimum of requested receive buffers: with less, transfers take minutes in virtual time.
const MIN_WINDOW: i32 = 8000;
/// The number of seconds without progress after which nothing more is expected.
const MAX_SILENT_SECONDS: u32 = 200;
const NAMES: [i32; 2] = [so::SO_SNDBUF, so::SO_RCVBUF];

#[derive(Clone, Debug)]
enum Call {
    Send(usize),
    /// Until it would block.
    Fill(usize),
    Receive(usize),
    /// Until it would block.
    Drain,
    Wait,
    /// `SO_SNDBUF`, while messages are in flight.
    Resize(i32),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => (1..MAX_MESSAGE).prop_map(Call::Send),
        3 => (1_usize..20_000).prop_map(|length| Call::Fill(length.max(200))),
        4 => (1_usize..30_000).prop_map(Call::Receive),
        1 => Just(Call::Drain),
        3 => Just(Call::Wait),
        1 => (0..MAX_SIZE).prop_map(Call::Resize),
    ]
}

/// Requests a buffer size, and returns the actual one.
fn set_buffer_size(
    pair: &mut Pair,
    host: usize,
    socket: SocketId,
    which: usize,
    requested: i32,
) -> i32 {
    let (level, name) = (level::SOL_SOCKET, NAMES[which]);
    let value = requested.to_ne_bytes();
    pair.at(host, |stack, now| stack.setsockopt(now, socket, level, name, &value)).unwrap();
    let got = pair.at(host, |stack, now| stack.getsockopt(now, socket, level, name, &[0; 4]));
    i32::from_ne_bytes(got.unwrap().try_into().unwrap())
}

/// Returns the size that the kernel uses for a requested one.
fn actual_size(which: usize, requested: i32) -> i32 {
    requested.saturating_mul(2).clamp(MIN_SIZES[which], MAX_SIZE)
}

/// A sender with a buffer of known size, and its peer.
struct Flow {
    pair: Pair,
    sockets: [SocketId; 2],
    to: Option<String>,
    buffer: usize,
    window: usize,
    sent: usize,
    received: usize,
    was_full: bool,
}

impl Flow {
    /// Creates a flow, with `is_many` over one-to-many sockets, whose association the first message
    /// opens.
    fn new(is_many: bool, buffers: [i32; 2]) -> Self {
        let mut pair = Pair::new();
        let (sockets, to) = if is_many {
            let listener = pair.listener(socket::SOCK_SEQPACKET, 5000, 5);
            let sender = pair.socket(0, socket::SOCK_SEQPACKET);
            set_buffer_size(&mut pair, 1, listener, 1, buffers[1]);
            ([sender, listener], Some(format!("{SERVER}:5000")))
        } else {
            let (client, server, _) = pair.connected(&[0; 14]);
            ([client, server], None)
        };
        let buffer = set_buffer_size(&mut pair, 0, sockets[0], 0, buffers[0]);
        assert_eq!(buffer, actual_size(0, buffers[0]), "SO_SNDBUF of {}", buffers[0]);
        let window = if is_many { actual_size(1, buffers[1]) } else { 212_992 };
        let (buffer, window) = (buffer as usize, window as usize);
        Self { pair, sockets, to, buffer, window, sent: 0, received: 0, was_full: false }
    }

    /// Sends a message, and returns whether it was accepted.
    fn send(&mut self, length: usize) -> bool {
        let socket = self.sockets[0];
        let shows_room = self.pair.poll(0, socket).has(POLLOUT);
        // Every byte depends on its position.
        let data: Vec<u8> = (self.sent..self.sent + length).map(byte_at).collect();
        let outcome = match &self.to {
            Some(to) => self.pair.send_message_to(0, socket, &to.clone(), &data),
            None => self.pair.send_message(0, socket, &data),
        };
        match outcome {
            Ok(sent) => {
                assert!(shows_room && length <= self.buffer, "accepted without space");
                assert_eq!(sent.length, length, "accepted completely");
                self.sent += length;
                let max_in_flight = MAX_SIZE as usize + self.window + 2 * MAX_MESSAGE;
                assert!(
                    self.sent - self.received <= max_in_flight,
                    "more is in flight than the buffers hold"
                );
                true
            }
            Err(Errno::EMSGSIZE) => {
                assert!(length > self.buffer, "{length} fit {}", self.buffer);
                false
            }
            Err(Errno::EAGAIN) => {
                assert!(!shows_room, "poll reported space for {length}");
                assert!(
                    self.sent - self.received >= self.buffer,
                    "EAGAIN before the buffer was full"
                );
                self.was_full = true;
                false
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Receives data, and returns whether there was any.
    fn receive(&mut self, room: usize) -> bool {
        match self.pair.receive_message(1, self.sockets[1], room, msg::MSG_DONTWAIT) {
            Ok(part) => {
                assert!(!part.data.is_empty() && part.data.len() <= room);
                let expected = self.received..self.received + part.data.len();
                assert!(part.data.iter().copied().eq(expected.map(byte_at)), "wrong data");
                self.received += part.data.len();
                true
            }
            Err(error) => {
                assert_eq!(error, Errno::EAGAIN);
                false
            }
        }
    }

    fn make(&mut self, call: &Call) {
        match *call {
            Call::Send(length) => _ = self.send(length),
            Call::Fill(length) => while self.send(length) {},
            Call::Receive(room) => _ = self.receive(room),
            Call::Drain => while self.receive(1 << 20) {},
            Call::Wait => self.pair.run_one_second(),
            Call::Resize(requested) => {
                let got = set_buffer_size(&mut self.pair, 0, self.sockets[0], 0, requested);
                assert_eq!(got, actual_size(0, requested), "SO_SNDBUF of {requested}");
                self.buffer = got as usize;
            }
        }
    }

    /// Reads everything, and checks that it arrives and that the buffer has space afterwards.
    fn finish(&mut self) {
        let mut silent = 0;
        while self.received < self.sent && silent < MAX_SILENT_SECONDS {
            silent += 1;
            while self.receive(1 << 20) {
                silent = 0;
            }
            self.pair.run_one_second();
        }
        self.pair.run_one_second();
        assert_eq!(self.received, self.sent, "all arrives");
        assert!(self.pair.poll(0, self.sockets[0]).has(POLLOUT), "the buffer has space again");
    }
}

fn byte_at(position: usize) -> u8 {
    (position % 251) as u8
}

proptest! {
    #[test]
    fn a_full_buffer_is_reported_and_loses_nothing(
        is_many in any::<bool>(),
        buffers in [0..MAX_SIZE, MIN_WINDOW..MAX_SIZE],
        calls in prop::collection::vec(call(), 1..40),
    ) {
        let mut flow = Flow::new(is_many, buffers);
        calls.iter().for_each(|call| flow.make(call));
        flow.finish();
    }
}

/// Checks that buffers do fill, since the test would be useless otherwise.
#[test]
fn random_calls_fill_buffers() {
    let mut runner = TestRunner::deterministic();
    let strategy = prop::collection::vec(call(), 20..40);
    let full = (0..20).filter(|case| {
        let mut flow = Flow::new(case % 2 == 0, [20_000, 20_000]);
        let calls = strategy.new_tree(&mut runner).unwrap().current();
        calls.iter().for_each(|call| flow.make(call));
        flow.finish();
        flow.was_full
    });
    assert!(full.count() > 10);
}
