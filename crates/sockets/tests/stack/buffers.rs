//! Buffers of any size, and a peer that reads when it likes: a full one says `EAGAIN`, `poll` says so
//! before, and no byte is lost.

use eyas_sockets::abi::number::{level, msg, so, socket};
use eyas_sockets::{Errno, SocketId};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::pair::{Pair, SERVER};
use eyas_sockets::abi::number::poll::POLLOUT;

/// The least and the most that the kernel gives (`net.core.wmem_max`, `rmem_max`), twice what is asked for.
const LEAST: [i32; 2] = [4608, 2304];
const MOST: i32 = 2 * 212_992;
/// Bytes of the longest message.
const LONGEST: usize = 60_000;
/// The least that is asked for as a receive buffer: through less it takes minutes, in virtual time.
const LEAST_WINDOW: i32 = 8000;
/// Seconds without anything new after which nothing more is expected.
const PATIENCE: u32 = 200;
const NAMES: [i32; 2] = [so::SO_SNDBUF, so::SO_RCVBUF];

#[derive(Clone, Debug)]
enum Call {
    Send(usize),
    /// Until it would wait.
    Fill(usize),
    Receive(usize),
    /// All that there is.
    Drain,
    Wait,
    /// `SO_SNDBUF`, while messages are under way.
    Resize(i32),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => (1..LONGEST).prop_map(Call::Send),
        3 => (1_usize..20_000).prop_map(|length| Call::Fill(length.max(200))),
        4 => (1_usize..30_000).prop_map(Call::Receive),
        1 => Just(Call::Drain),
        3 => Just(Call::Wait),
        1 => (0..MOST).prop_map(Call::Resize),
    ]
}

/// What a socket of a host says of its buffers, after this was asked for.
fn sized(pair: &mut Pair, host: usize, socket: SocketId, which: usize, asked: i32) -> i32 {
    let (level, name) = (level::SOL_SOCKET, NAMES[which]);
    let value = asked.to_ne_bytes();
    pair.at(host, |stack, now| stack.setsockopt(now, socket, level, name, &value)).unwrap();
    let got = pair.at(host, |stack, now| stack.getsockopt(now, socket, level, name, &[0; 4]));
    i32::from_ne_bytes(got.unwrap().try_into().unwrap())
}

/// What the kernel makes of a size.
fn given(which: usize, asked: i32) -> i32 {
    asked.saturating_mul(2).clamp(LEAST[which], MOST)
}

/// A sender whose buffer is of a known size, and its peer.
struct Flow {
    pair: Pair,
    sockets: [SocketId; 2],
    to: Option<String>,
    buffer: usize,
    window: usize,
    sent: usize,
    heard: usize,
    was_full: bool,
}

impl Flow {
    /// `is_many`: over one-to-many sockets, whose association the first message opens.
    fn new(is_many: bool, buffers: [i32; 2]) -> Self {
        let mut pair = Pair::new();
        let (sockets, to) = if is_many {
            let listener = pair.listener(socket::SOCK_SEQPACKET, 5000, 5);
            let sender = pair.socket(0, socket::SOCK_SEQPACKET);
            sized(&mut pair, 1, listener, 1, buffers[1]);
            ([sender, listener], Some(format!("{SERVER}:5000")))
        } else {
            let (client, server, _) = pair.connected(&[0; 14]);
            ([client, server], None)
        };
        let buffer = sized(&mut pair, 0, sockets[0], 0, buffers[0]);
        assert_eq!(buffer, given(0, buffers[0]), "SO_SNDBUF of {}", buffers[0]);
        let window = if is_many { given(1, buffers[1]) } else { 212_992 };
        let (buffer, window) = (buffer as usize, window as usize);
        Self { pair, sockets, to, buffer, window, sent: 0, heard: 0, was_full: false }
    }

    /// Whether the message was taken.
    fn send(&mut self, length: usize) -> bool {
        let socket = self.sockets[0];
        let shows_room = self.pair.poll(0, socket).has(POLLOUT);
        // Every byte says where it stands.
        let data: Vec<u8> = (self.sent..self.sent + length).map(byte_at).collect();
        let outcome = match &self.to {
            Some(to) => self.pair.say_to(0, socket, &to.clone(), &data),
            None => self.pair.say(0, socket, &data),
        };
        match outcome {
            Ok(sent) => {
                assert!(shows_room && length <= self.buffer, "taken without room");
                assert_eq!(sent.length, length, "taken whole");
                self.sent += length;
                let most = MOST as usize + self.window + 2 * LONGEST;
                assert!(self.sent - self.heard <= most, "more is under way than there is room for");
                true
            }
            Err(Errno::EMSGSIZE) => {
                assert!(length > self.buffer, "{length} fit {}", self.buffer);
                false
            }
            Err(Errno::EAGAIN) => {
                assert!(!shows_room, "poll showed room for {length}");
                assert!(self.sent - self.heard >= self.buffer, "full before it was");
                self.was_full = true;
                false
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Whether there was something.
    fn receive(&mut self, room: usize) -> bool {
        match self.pair.hear(1, self.sockets[1], room, msg::MSG_DONTWAIT) {
            Ok(part) => {
                assert!(!part.data.is_empty() && part.data.len() <= room);
                let expected = self.heard..self.heard + part.data.len();
                assert!(part.data.iter().copied().eq(expected.map(byte_at)), "mixed up");
                self.heard += part.data.len();
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
            Call::Wait => self.pair.second(),
            Call::Resize(asked) => {
                let got = sized(&mut self.pair, 0, self.sockets[0], 0, asked);
                assert_eq!(got, given(0, asked), "SO_SNDBUF of {asked}");
                self.buffer = got as usize;
            }
        }
    }

    /// Once the peer reads, all arrives, and there is room again.
    fn finish(&mut self) {
        let mut silent = 0;
        while self.heard < self.sent && silent < PATIENCE {
            silent += 1;
            while self.receive(1 << 20) {
                silent = 0;
            }
            self.pair.second();
        }
        self.pair.second();
        assert_eq!(self.heard, self.sent, "all arrives");
        assert!(self.pair.poll(0, self.sockets[0]).has(POLLOUT), "there is room again");
    }
}

fn byte_at(place: usize) -> u8 {
    (place % 251) as u8
}

proptest! {
    #[test]
    fn a_full_buffer_is_reported_and_loses_nothing(
        is_many in any::<bool>(),
        buffers in [0..MOST, LEAST_WINDOW..MOST],
        calls in prop::collection::vec(call(), 1..40),
    ) {
        let mut flow = Flow::new(is_many, buffers);
        calls.iter().for_each(|call| flow.make(call));
        flow.finish();
    }
}

/// Buffers that are never full would show nothing.
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
