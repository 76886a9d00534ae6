//! Requests of programs to the supervisor of their SCTP sockets: arbitrary requests, split anywhere, on
//! several connections, with a network that delivers, loses and delays.
//!
//! Splits change nothing; no more of a request is buffered than has arrived; without the key nothing is
//! done. Each answer can be parsed by the library, and fits into its buffers. Once all sockets are closed,
//! nothing is left.
#![no_main]

use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use arbitrary::Arbitrary;
use bytes::BufMut;
use eyas_sctp::io::Received;
use eyas_sockets::{Stack, StackConfig, StackInput, StackOutput};
use eyas_supervisor::local::control::copy_control;
use eyas_supervisor::local::{
    MAX_CONTROL, MAX_PEER, Op, REQUEST, RESPONSE, Request, Response, blocks,
};
use eyas_supervisor::{CallAnswer, SocketCall, StackCalls, CallOutcome, CallRefusal, ProgramRequests};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<13> = Reach::new([
    "a blocking call that is answered",
    "a cancelled call",
    "a blocking connect that succeeds",
    "a refused connect",
    "a header of another version",
    "a wrong key",
    "a message on a one-to-many socket",
    "a message on a one-to-one socket",
    "a message that opens an association",
    "a notification",
    "an accepted socket",
    "a peeled-off socket",
    "a supported option",
]);

const KEY: u64 = 7;
/// The number of connections.
const CONNECTIONS: usize = 3;
/// The maximum steps of one run. More only take longer.
const MAX_STEPS: usize = 200;
/// The maximum number of sockets.
const SOCKETS: usize = 12;
/// The maximum packets in flight; beyond that the oldest are lost.
const MAX_IN_FLIGHT: usize = 500;
/// The time limit for the end of all associations, in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);
/// The highest errno.
const LAST_ERRNO: i32 = 133;

#[derive(Arbitrary, Debug)]
enum Step {
    Send {
        connection: u8,
        message: Message,
        cut: u8,
    },
    Deliver(u8),
    Lose,
    Later(u16),
    Close(u8),
    /// A program closes a connection, and opens a new one.
    HangUp(u8),
}

#[derive(Arbitrary, Debug)]
enum Message {
    Raw(Vec<u8>),
    Any {
        op: u8,
        waits: bool,
        key: bool,
        socket: u8,
        numbers: [i32; 3],
        parts: [Vec<u8>; 3],
    },
    Socket {
        is_one_to_many: bool,
        is_ipv6: bool,
    },
    Bind {
        socket: u8,
        port: u8,
    },
    Listen {
        socket: u8,
        backlog: u8,
    },
    Connect {
        socket: u8,
        port: u8,
        waits: bool,
    },
    Accept {
        socket: u8,
        waits: bool,
    },
    Send {
        socket: u8,
        to: Option<u8>,
        length: u16,
        control: Vec<u8>,
        flags: u16,
        waits: bool,
    },
    Receive {
        socket: u8,
        room: u16,
        flags: u16,
        waits: bool,
    },
    GetOption {
        socket: u8,
        level: u8,
        option: u8,
        value: Vec<u8>,
    },
    SetOption {
        socket: u8,
        level: u8,
        option: u8,
        value: Vec<u8>,
    },
    /// Of an association with one of the first ids.
    Peeloff {
        socket: u8,
        association: u8,
    },
    Notifications {
        socket: u8,
    },
    Shutdown {
        socket: u8,
        how: u8,
    },
    Cancel,
}

/// A connection of a program.
struct Connection {
    requests: ProgramRequests,
    waiting: Option<SocketCall>,
}

impl Connection {
    fn new() -> Self {
        Self { requests: ProgramRequests::new(KEY, false), waiting: None }
    }
}

struct World {
    calls: StackCalls,
    connections: [Connection; CONNECTIONS],
    sockets: BTreeSet<u64>,
    one_to_many: BTreeSet<u64>,
    wire: VecDeque<Received>,
    now: Duration,
}

fn own() -> IpAddr {
    Ipv4Addr::new(10, 0, 0, 1).into()
}

/// A `sockaddr_in` of this host.
fn name(port: u8) -> Vec<u8> {
    let mut name = vec![0; 16];
    name[..2].copy_from_slice(&2_u16.to_ne_bytes());
    name[2..4].copy_from_slice(&(5000 + u16::from(port % 3)).to_be_bytes());
    name[4..8].copy_from_slice(&[10, 0, 0, 1]);
    name
}

/// Returns the bytes of a request, as the library sends it.
fn encode(mut request: Request, parts: [&[u8]; 3]) -> Vec<u8> {
    [request.name, request.control, request.data] = parts.map(|part| part.len() as u32);
    let mut bytes = request.encode().to_vec();
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// Returns the numbers of relevant options, and of others.
fn option(level: u8, option: u8) -> (i32, i32) {
    match level % 8 {
        0 => (1, option.into()),
        1 => (41, option.into()),
        2 => (0, option.into()),
        _ => (132, i32::from(option) % 140),
    }
}

impl World {
    fn new() -> Self {
        let config = StackConfig {
            addresses: vec![own(), Ipv4Addr::LOCALHOST.into()],
            max_sockets: SOCKETS,
            memory: 1 << 20,
            ..StackConfig::default()
        };
        Self {
            calls: StackCalls::new(Stack::new(config, [7; 32], Duration::ZERO)),
            connections: std::array::from_fn(|_| Connection::new()),
            sockets: BTreeSet::new(),
            one_to_many: BTreeSet::new(),
            wire: VecDeque::new(),
            now: Duration::ZERO,
        }
    }

    fn socket(&self, index: u8) -> u64 {
        let index = usize::from(index).checked_rem(self.sockets.len()).unwrap_or_default();
        self.sockets.iter().nth(index).copied().unwrap_or_default()
    }

    fn request(&self, op: Op, socket: u8, [a, b, c]: [i32; 3], waits: bool) -> Request {
        let blocks = if waits { blocks::YES } else { blocks::NO };
        // The number stands for the capability.
        Request { key: KEY, capability: self.socket(socket), a, b, c, blocks, ..Request::new(op) }
    }

    /// Returns the bytes of a message.
    fn bytes(&self, message: &Message) -> Vec<u8> {
        let none: [&[u8]; 3] = [&[]; 3];
        let request = |op, socket, numbers, waits| self.request(op, socket, numbers, waits);
        match message {
            Message::Raw(bytes) => bytes.clone(),
            Message::Any { op, waits, key, socket, numbers, parts } => {
                let mut any = request(Op::Send, *socket, *numbers, *waits);
                any.key = if *key { KEY } else { KEY + 1 };
                let mut bytes = encode(any, [&parts[0], &parts[1], &parts[2]]);
                bytes[4..8].copy_from_slice(&u32::from(*op % 20).to_ne_bytes());
                bytes
            }
            Message::Socket { is_one_to_many, is_ipv6 } => {
                let domain = if *is_ipv6 { 10 } else { 2 };
                let kind = if *is_one_to_many { 5 } else { 1 };
                encode(request(Op::Socket, 0, [domain, kind, 132], false), none)
            }
            Message::Bind { socket, port } => {
                encode(request(Op::Bind, *socket, [0; 3], false), [&name(*port), &[], &[]])
            }
            Message::Listen { socket, backlog } => {
                encode(request(Op::Listen, *socket, [i32::from(*backlog), 0, 0], false), none)
            }
            Message::Connect { socket, port, waits } => {
                encode(request(Op::Connect, *socket, [0; 3], *waits), [&name(*port), &[], &[]])
            }
            Message::Accept { socket, waits } => {
                encode(request(Op::Accept, *socket, [0; 3], *waits), none)
            }
            Message::Send { socket, to, length, control, flags, waits } => {
                let to = to.map(name).unwrap_or_default();
                let send = request(Op::Send, *socket, [i32::from(*flags), 0, 0], *waits);
                encode(send, [&to, control, &vec![7; usize::from(*length)]])
            }
            Message::Receive { socket, room, flags, waits } => {
                let numbers = [i32::from(*flags), i32::from(*room), 0];
                encode(request(Op::Receive, *socket, numbers, *waits), none)
            }
            Message::GetOption { socket, level, option: number, value } => {
                let (level, number) = option(*level, *number);
                let numbers = [level, number, value.len() as i32];
                encode(request(Op::GetOption, *socket, numbers, false), [&name(0), &[], value])
            }
            Message::SetOption { socket, level, option: number, value } => {
                let (level, number) = option(*level, *number);
                encode(request(Op::SetOption, *socket, [level, number, 0], true), [&[], &[], value])
            }
            Message::Peeloff { socket, association } => {
                let id = i32::from(*association % 8) + 3;
                let value = [id.to_ne_bytes(), [0; 4]].concat();
                encode(request(Op::GetOption, *socket, [132, 102, 8], false), [&[], &[], &value])
            }
            Message::Notifications { socket } => {
                encode(request(Op::SetOption, *socket, [132, 11, 0], false), [&[], &[], &[1; 14]])
            }
            Message::Shutdown { socket, how } => {
                encode(request(Op::Shutdown, *socket, [i32::from(*how % 4), 0, 0], false), none)
            }
            Message::Cancel => encode(request(Op::Cancel, 0, [0; 3], false), none),
        }
    }

    /// Passes bytes to a connection, in at least two pieces, and makes the calls that they contain.
    fn receive(&mut self, connection: usize, bytes: &[u8], cut: usize) {
        let (first, rest) = bytes.split_at(cut.min(bytes.len()));
        for mut piece in [first, rest] {
            loop {
                let room = self.connections[connection].requests.buffer().remaining_mut();
                let taken = room.min(piece.len());
                self.connections[connection].requests.buffer().put_slice(&piece[..taken]);
                piece = &piece[taken..];
                match self.connections[connection].requests.call() {
                    Ok(Some(mut call)) => {
                        call.socket = call.request.capability;
                        call.given_back =
                            call.data.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
                        if !self.serve(connection, call) {
                            return self.hang_up(connection);
                        }
                    }
                    Ok(None) if piece.is_empty() => break,
                    Ok(None) => {}
                    Err(refusal) => {
                        REACH.hit(match refusal {
                            CallRefusal::Version => "a header of another version",
                            CallRefusal::Key => "a wrong key",
                        });
                        return self.hang_up(connection);
                    }
                }
            }
        }
    }

    /// Handles a call as a connection does; returns whether the connection stays open.
    fn serve(&mut self, connection: usize, call: SocketCall) -> bool {
        assert_eq!(call.request.key, KEY);
        if let Some(waiting) = self.connections[connection].waiting.take() {
            self.calls.call_cancelled(&waiting);
            REACH.hit("a cancelled call");
            return call.request.op == Op::Cancel;
        }
        match call.request.op {
            Op::Cancel | Op::Status => {}
            Op::Closed => self.close(call.socket),
            op if op != Op::Socket && !self.sockets.contains(&call.socket) => {}
            _ => {
                let outcome = self.calls.call(self.now, &call);
                if call.request.op == Op::GiveBack && matches!(outcome, CallOutcome::Done(_)) {
                    let accepted = call.data.first_chunk().copied().map(u64::from_ne_bytes);
                    accepted.map(|accepted| self.sockets.remove(&accepted));
                }
                self.settle(connection, call, outcome, true);
            }
        }
        self.drain();
        true
    }

    /// Handles the outcome of a call.
    fn settle(&mut self, connection: usize, call: SocketCall, outcome: CallOutcome, is_first: bool) {
        match outcome {
            CallOutcome::Done(answer) => {
                if !is_first {
                    REACH.hit("a blocking call that is answered");
                }
                self.check(&call, answer, is_first);
            }
            // A call that waits for that gets the same answer.
            CallOutcome::Opens(answer, association) => {
                assert_eq!(call.request.op, Op::Send);
                self.calls.is_opening(self.now, call.socket, association);
                REACH.hit("a message that opens an association");
                self.check(&call, answer, is_first);
            }
            CallOutcome::Failed(errno) => {
                assert!((1..=LAST_ERRNO).contains(&errno), "{errno} of {call:?}");
                if call.request.op == Op::Connect && errno == 111 {
                    REACH.hit("a refused connect");
                }
            }
            CallOutcome::Wait(errno) => {
                assert!([11, 115].contains(&errno), "{errno} of {call:?}");
                match call.request.blocks {
                    blocks::YES => self.connections[connection].waiting = Some(call),
                    _ => self.calls.call_cancelled(&call),
                }
            }
        }
    }

    /// Checks that the library accepts an answer.
    fn check(&mut self, call: &SocketCall, answer: CallAnswer, is_first: bool) {
        let request = call.request;
        assert!(answer.peer.len() <= MAX_PEER && answer.control.len() <= MAX_CONTROL);
        let is_one_to_many = self.one_to_many.contains(&call.socket);
        match request.op {
            Op::Send => assert_eq!(answer.result as usize, call.data.len()),
            Op::Receive => {
                assert_eq!(answer.result as usize, answer.data.len());
                assert!(answer.data.len() <= request.b.max(0) as usize);
                REACH.hit(match (answer.flags & 0x8000 != 0, is_one_to_many) {
                    (true, _) => "a notification",
                    (false, true) => "a message on a one-to-many socket",
                    (false, false) => "a message on a one-to-one socket",
                });
            }
            Op::GetOption => {
                assert!(answer.data.len() <= call.data.len());
                REACH.hit("a supported option");
            }
            Op::Connect if !is_first => REACH.hit("a blocking connect that succeeds"),
            _ => assert!(answer.data.is_empty()),
        }
        if let Some(socket) = answer.socket {
            assert!(self.sockets.insert(socket) && self.sockets.len() <= 2 * SOCKETS);
            match request.op {
                Op::Socket if request.b == 5 => _ = self.one_to_many.insert(socket),
                Op::Socket => {}
                Op::Accept => REACH.hit("an accepted socket"),
                Op::GetOption => REACH.hit("a peeled-off socket"),
                op => panic!("{op:?} creates no socket"),
            }
        }
        let mut response =
            Response::new(answer.result).with_peer(&answer.peer).with_control(&answer.control);
        response.data = answer.data.len() as u32;
        assert_eq!(Response::parse(&response.encode()), Some(response));
        let room = request.c.unsigned_abs() as usize % RESPONSE;
        let mut memory = vec![0; room];
        let given = copy_control(response.control(), room, |at, bytes| {
            memory[at..at + bytes.len()].copy_from_slice(bytes);
        });
        assert!(given.length <= room);
    }

    fn close(&mut self, socket: u64) {
        if !self.sockets.remove(&socket) {
            return;
        }
        self.calls.close(self.now, socket);
        for connection in &mut self.connections {
            // Calls that wait for a closed socket are answered.
            connection.waiting = connection.waiting.take().filter(|call| call.socket != socket);
        }
        self.drain();
    }

    fn hang_up(&mut self, connection: usize) {
        let before = std::mem::replace(&mut self.connections[connection], Connection::new());
        before.waiting.iter().for_each(|call| self.calls.call_cancelled(call));
    }

    /// Processes the stack's output, and retries waiting calls.
    fn drain(&mut self) -> Option<Duration> {
        for turn in 0.. {
            assert!(turn < 20_000, "too many outputs");
            match self.calls.stack.poll_output(self.now) {
                StackOutput::Transmit(transmit) if transmit.remote.ip() == own() => {
                    if self.wire.len() == MAX_IN_FLIGHT {
                        self.wire.pop_front();
                    }
                    self.wire.push_back(Received {
                        local: Some(own()),
                        remote: SocketAddr::new(own(), 9899),
                        ecn: transmit.ecn,
                        peer: None,
                        contents: transmit.contents,
                        segment_size: transmit.segment_size,
                    });
                }
                StackOutput::OutOfTheBlue(received) => self.handle(StackInput::Refused(received)),
                StackOutput::Retry(socket) => {
                    for connection in 0..CONNECTIONS {
                        let waiting = self.connections[connection]
                            .waiting
                            .take_if(|call| call.socket == socket.0);
                        if let Some(call) = waiting {
                            let outcome = self.calls.retry(self.now, &call);
                            self.settle(connection, call, outcome, false);
                        }
                    }
                }
                StackOutput::Timeout(due) => return due,
                StackOutput::Transmit(_)
                | StackOutput::Readiness(..)
                | StackOutput::Arrived(_)
                | StackOutput::Closed(_) => {}
            }
        }
        None
    }

    fn handle(&mut self, input: StackInput) {
        self.calls.stack.handle_input(self.now, input);
    }

    fn deliver(&mut self, most: usize) {
        for _ in 0..most {
            let Some(received) = self.wire.pop_front() else { return };
            self.handle(StackInput::Packets(received));
            self.drain();
        }
    }

    fn act(&mut self, step: &Step) {
        match step {
            Step::Send { connection, message, cut } => {
                let bytes = self.bytes(message);
                check_splits(&bytes, usize::from(*cut));
                self.receive(usize::from(*connection) % CONNECTIONS, &bytes, usize::from(*cut));
            }
            Step::Deliver(most) => self.deliver(usize::from(*most)),
            Step::Lose => _ = self.wire.pop_front(),
            Step::Later(time) => {
                self.now += Duration::from_millis((*time).into());
                self.handle(StackInput::Tick);
            }
            Step::Close(socket) => self.close(self.socket(*socket)),
            Step::HangUp(connection) => self.hang_up(usize::from(*connection) % CONNECTIONS),
        }
        self.drain();
    }

    /// Ends all programs, and checks that nothing is left.
    fn end(&mut self) {
        while let Some(socket) = self.sockets.first().copied() {
            self.close(socket);
        }
        let end = self.now + PATIENCE;
        loop {
            self.deliver(usize::MAX);
            let Some(due) = self.drain().filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            self.handle(StackInput::Tick);
        }
        let status = self.calls.stack.status();
        assert!(status.sockets.is_empty() && status.associations.is_empty(), "{status:?}");
    }
}

/// Checks that the calls in these bytes do not depend on how they are split.
fn check_splits(bytes: &[u8], cut: usize) {
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut requests, mut calls) = (ProgramRequests::new(KEY, true), Vec::new());
        for mut piece in pieces {
            while !piece.is_empty() {
                let room = requests.buffer().remaining_mut();
                assert!(room > 0);
                let taken = room.min(piece.len());
                requests.buffer().put_slice(&piece[..taken]);
                piece = &piece[taken..];
                loop {
                    match requests.call() {
                        Ok(Some(call)) => {
                            calls.push((call.request, [call.name, call.control, call.data]));
                        }
                        Ok(None) => break,
                        Err(refusal) => return (calls, Some(refusal)),
                    }
                }
            }
        }
        (calls, None)
    };
    let (first, rest) = bytes.split_at(cut.min(bytes.len()));
    let cut = read(&mut [first, rest].into_iter());
    // Byte by byte if the message is short.
    let pieces = if bytes.len() < 4 * REQUEST { 1 } else { 97 };
    assert_eq!(cut, read(&mut bytes.chunks(pieces)));
}

fuzz_target!(|steps: Vec<Step>| {
    REACH.begin();
    let mut world = World::new();
    for step in steps.iter().take(MAX_STEPS) {
        world.act(step);
    }
    world.end();
});
