//! What programs say to the supervisor of their SCTP sockets: requests at random, cut anywhere, on
//! several connections at once, between which the network delivers, loses and waits.
//!
//! The cuts change nothing; what is kept of a request is no more than has come of it; without the key
//! nothing is done. Each call is answered as the library can read it, with no more than it has room for.
//! Once all sockets are closed, nothing is left.
#![no_main]

use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use arbitrary::Arbitrary;
use bytes::BufMut;
use eyas_sctp::io::Received;
use eyas_sockets::{Input, Output, Stack, StackConfig};
use eyas_supervisor::local::control::give;
use eyas_supervisor::local::{
    MAX_CONTROL, MAX_PEER, Op, REQUEST, RESPONSE, Request, Response, blocks,
};
use eyas_supervisor::{Answer, Call, Calls, Outcome, Refusal, Requests};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<13> = Reach::new([
    "a call that waited and was answered",
    "a call that was given up",
    "a connect that waited and is there",
    "a connect that is refused",
    "a header of another version",
    "a key that is wrong",
    "a message on a one-to-many socket",
    "a message on a one-to-one socket",
    "a message that opens an association",
    "a notification",
    "a socket that was accepted",
    "a socket that was peeled off",
    "an option that is there",
]);

const KEY: u64 = 7;
/// Connections of programs.
const LINES: usize = 3;
/// Steps of one run. More add time and nothing else.
const MAX_STEPS: usize = 200;
/// The most sockets at a time.
const SOCKETS: usize = 12;
/// The most packets on their way; the oldest are lost beyond that.
const MAX_UNDER_WAY: usize = 500;
/// How long the ends of all associations take at most, in virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);
/// No errno is above.
const LAST_ERRNO: i32 = 133;

#[derive(Arbitrary, Debug)]
enum Step {
    Say {
        line: u8,
        said: Said,
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
enum Said {
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
        is_many: bool,
        is_six: bool,
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
    /// Of an association by one of the first numbers that there are.
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
struct Line {
    requests: Requests,
    waiting: Option<Call>,
}

impl Line {
    fn new() -> Self {
        Self { requests: Requests::new(KEY, false), waiting: None }
    }
}

struct World {
    calls: Calls,
    lines: [Line; LINES],
    sockets: BTreeSet<u64>,
    many: BTreeSet<u64>,
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

/// All of a request, as the library sends it.
fn spoken(mut request: Request, parts: [&[u8]; 3]) -> Vec<u8> {
    [request.name, request.control, request.data] = parts.map(|part| part.len() as u32);
    let mut bytes = request.encode().to_vec();
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// The numbers of options that matter, and others.
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
            calls: Calls::new(Stack::new(config, [7; 32], Duration::ZERO)),
            lines: std::array::from_fn(|_| Line::new()),
            sockets: BTreeSet::new(),
            many: BTreeSet::new(),
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
        Request { key: KEY, socket: self.socket(socket), a, b, c, blocks, ..Request::new(op) }
    }

    /// What a program says, as bytes.
    fn bytes(&self, said: &Said) -> Vec<u8> {
        let none: [&[u8]; 3] = [&[]; 3];
        let ask = |op, socket, numbers, waits| self.request(op, socket, numbers, waits);
        match said {
            Said::Raw(bytes) => bytes.clone(),
            Said::Any { op, waits, key, socket, numbers, parts } => {
                let mut request = ask(Op::Send, *socket, *numbers, *waits);
                request.key = if *key { KEY } else { KEY + 1 };
                let mut bytes = spoken(request, [&parts[0], &parts[1], &parts[2]]);
                bytes[4..8].copy_from_slice(&u32::from(*op % 20).to_ne_bytes());
                bytes
            }
            Said::Socket { is_many, is_six } => {
                let domain = if *is_six { 10 } else { 2 };
                let kind = if *is_many { 5 } else { 1 };
                spoken(ask(Op::Socket, 0, [domain, kind, 132], false), none)
            }
            Said::Bind { socket, port } => {
                spoken(ask(Op::Bind, *socket, [0; 3], false), [&name(*port), &[], &[]])
            }
            Said::Listen { socket, backlog } => {
                spoken(ask(Op::Listen, *socket, [i32::from(*backlog), 0, 0], false), none)
            }
            Said::Connect { socket, port, waits } => {
                spoken(ask(Op::Connect, *socket, [0; 3], *waits), [&name(*port), &[], &[]])
            }
            Said::Accept { socket, waits } => {
                spoken(ask(Op::Accept, *socket, [0; 3], *waits), none)
            }
            Said::Send { socket, to, length, control, flags, waits } => {
                let to = to.map(name).unwrap_or_default();
                let request = ask(Op::Send, *socket, [i32::from(*flags), 0, 0], *waits);
                spoken(request, [&to, control, &vec![7; usize::from(*length)]])
            }
            Said::Receive { socket, room, flags, waits } => {
                let numbers = [i32::from(*flags), i32::from(*room), 0];
                spoken(ask(Op::Receive, *socket, numbers, *waits), none)
            }
            Said::GetOption { socket, level, option: number, value } => {
                let (level, number) = option(*level, *number);
                let numbers = [level, number, value.len() as i32];
                spoken(ask(Op::GetOption, *socket, numbers, false), [&name(0), &[], value])
            }
            Said::SetOption { socket, level, option: number, value } => {
                let (level, number) = option(*level, *number);
                spoken(ask(Op::SetOption, *socket, [level, number, 0], true), [&[], &[], value])
            }
            Said::Peeloff { socket, association } => {
                let id = i32::from(*association % 8) + 3;
                let value = [id.to_ne_bytes(), [0; 4]].concat();
                spoken(ask(Op::GetOption, *socket, [132, 102, 8], false), [&[], &[], &value])
            }
            Said::Notifications { socket } => {
                spoken(ask(Op::SetOption, *socket, [132, 11, 0], false), [&[], &[], &[1; 14]])
            }
            Said::Shutdown { socket, how } => {
                spoken(ask(Op::Shutdown, *socket, [i32::from(*how % 4), 0, 0], false), none)
            }
            Said::Cancel => spoken(ask(Op::Cancel, 0, [0; 3], false), none),
        }
    }

    /// Hands bytes to a connection, in two pieces at least, and makes the calls that they are.
    fn hear(&mut self, line: usize, bytes: &[u8], cut: usize) {
        let (first, rest) = bytes.split_at(cut.min(bytes.len()));
        for mut piece in [first, rest] {
            loop {
                let room = self.lines[line].requests.room().remaining_mut();
                let taken = room.min(piece.len());
                self.lines[line].requests.room().put_slice(&piece[..taken]);
                piece = &piece[taken..];
                match self.lines[line].requests.call() {
                    Ok(Some(call)) => {
                        if !self.serve(line, call) {
                            return self.hang_up(line);
                        }
                    }
                    Ok(None) if piece.is_empty() => break,
                    Ok(None) => {}
                    Err(refusal) => {
                        REACH.hit(match refusal {
                            Refusal::Version => "a header of another version",
                            Refusal::Key => "a key that is wrong",
                        });
                        return self.hang_up(line);
                    }
                }
            }
        }
    }

    /// Deals with a call as a connection does; whether the connection goes on.
    fn serve(&mut self, line: usize, call: Call) -> bool {
        assert_eq!(call.request.key, KEY);
        if let Some(waiting) = self.lines[line].waiting.take() {
            self.calls.given_up(&waiting);
            REACH.hit("a call that was given up");
            return call.request.op == Op::Cancel;
        }
        match call.request.op {
            Op::Cancel | Op::Status => {}
            Op::Closed => self.close(call.request.socket),
            op if op != Op::Socket && !self.sockets.contains(&call.request.socket) => {}
            _ => {
                let outcome = self.calls.make(self.now, &call);
                self.settle(line, call, outcome, true);
            }
        }
        self.drain();
        true
    }

    /// What a call came to.
    fn settle(&mut self, line: usize, call: Call, outcome: Outcome, is_first: bool) {
        match outcome {
            Outcome::Done(answer) => {
                if !is_first {
                    REACH.hit("a call that waited and was answered");
                }
                self.check(&call, answer, is_first);
            }
            // Who waits for that is answered the same.
            Outcome::Opens(answer, association) => {
                assert_eq!(call.request.op, Op::Send);
                self.calls.is_opening(self.now, call.request.socket, association);
                REACH.hit("a message that opens an association");
                self.check(&call, answer, is_first);
            }
            Outcome::Failed(errno) => {
                assert!((1..=LAST_ERRNO).contains(&errno), "{errno} of {call:?}");
                if call.request.op == Op::Connect && errno == 111 {
                    REACH.hit("a connect that is refused");
                }
            }
            Outcome::Wait(errno) => {
                assert!([11, 115].contains(&errno), "{errno} of {call:?}");
                match call.request.blocks {
                    blocks::YES => self.lines[line].waiting = Some(call),
                    _ => self.calls.given_up(&call),
                }
            }
        }
    }

    /// An answer is what the library can take.
    fn check(&mut self, call: &Call, answer: Answer, is_first: bool) {
        let request = call.request;
        assert!(answer.peer.len() <= MAX_PEER && answer.control.len() <= MAX_CONTROL);
        let is_many = self.many.contains(&request.socket);
        match request.op {
            Op::Send => assert_eq!(answer.result as usize, call.data.len()),
            Op::Receive => {
                assert_eq!(answer.result as usize, answer.data.len());
                assert!(answer.data.len() <= request.b.max(0) as usize);
                REACH.hit(match (answer.flags & 0x8000 != 0, is_many) {
                    (true, _) => "a notification",
                    (false, true) => "a message on a one-to-many socket",
                    (false, false) => "a message on a one-to-one socket",
                });
            }
            Op::GetOption => {
                assert!(answer.data.len() <= call.data.len());
                REACH.hit("an option that is there");
            }
            Op::Connect if !is_first => REACH.hit("a connect that waited and is there"),
            _ => assert!(answer.data.is_empty()),
        }
        if let Some(socket) = answer.socket {
            assert!(self.sockets.insert(socket) && self.sockets.len() <= 2 * SOCKETS);
            match request.op {
                Op::Socket if request.b == 5 => _ = self.many.insert(socket),
                Op::Socket => {}
                Op::Accept => REACH.hit("a socket that was accepted"),
                Op::GetOption => REACH.hit("a socket that was peeled off"),
                op => panic!("{op:?} makes no socket"),
            }
        }
        let mut response =
            Response::new(answer.result).with_peer(&answer.peer).with_control(&answer.control);
        response.data = answer.data.len() as u32;
        assert_eq!(Response::parse(&response.encode()), Some(response));
        let room = request.c.unsigned_abs() as usize % RESPONSE;
        let mut memory = vec![0; room];
        let given = give(response.control(), room, |at, bytes| {
            memory[at..at + bytes.len()].copy_from_slice(bytes);
        });
        assert!(given.length <= room);
    }

    fn close(&mut self, socket: u64) {
        if !self.sockets.remove(&socket) {
            return;
        }
        self.calls.close(self.now, socket);
        for line in &mut self.lines {
            // What waits for a socket that is gone is told so.
            line.waiting = line.waiting.take().filter(|call| call.request.socket != socket);
        }
        self.drain();
    }

    fn hang_up(&mut self, line: usize) {
        let before = std::mem::replace(&mut self.lines[line], Line::new());
        before.waiting.iter().for_each(|call| self.calls.given_up(call));
    }

    /// Takes out what the stack says, and asks again for those who wait.
    fn drain(&mut self) -> Option<Duration> {
        for turn in 0.. {
            assert!(turn < 20_000, "the stack never comes to rest");
            match self.calls.stack.poll_output(self.now) {
                Output::Transmit(transmit) if transmit.remote.ip() == own() => {
                    if self.wire.len() == MAX_UNDER_WAY {
                        self.wire.pop_front();
                    }
                    self.wire.push_back(Received {
                        local: Some(own()),
                        remote: SocketAddr::new(own(), 9899),
                        ecn: transmit.ecn,
                        contents: transmit.contents,
                        segment_size: transmit.segment_size,
                    });
                }
                Output::Stranger(received) => self.handle(Input::Refused(received)),
                Output::Retry(socket) => {
                    for line in 0..LINES {
                        let waiting = self.lines[line]
                            .waiting
                            .take_if(|call| call.request.socket == socket.0);
                        if let Some(call) = waiting {
                            let outcome = self.calls.make_again(self.now, &call);
                            self.settle(line, call, outcome, false);
                        }
                    }
                }
                Output::Timeout(due) => return due,
                Output::Transmit(_) | Output::Readiness(..) | Output::Closed(_) => {}
            }
        }
        None
    }

    fn handle(&mut self, input: Input) {
        self.calls.stack.handle_input(self.now, input);
    }

    fn deliver(&mut self, most: usize) {
        for _ in 0..most {
            let Some(received) = self.wire.pop_front() else { return };
            self.handle(Input::Packets(received));
            self.drain();
        }
    }

    fn act(&mut self, step: &Step) {
        match step {
            Step::Say { line, said, cut } => {
                let bytes = self.bytes(said);
                same_however_cut(&bytes, usize::from(*cut));
                self.hear(usize::from(*line) % LINES, &bytes, usize::from(*cut));
            }
            Step::Deliver(most) => self.deliver(usize::from(*most)),
            Step::Lose => _ = self.wire.pop_front(),
            Step::Later(time) => {
                self.now += Duration::from_millis((*time).into());
                self.handle(Input::Tick);
            }
            Step::Close(socket) => self.close(self.socket(*socket)),
            Step::HangUp(line) => self.hang_up(usize::from(*line) % LINES),
        }
        self.drain();
    }

    /// All programs end; what they have had goes with them.
    fn end(&mut self) {
        while let Some(socket) = self.sockets.first().copied() {
            self.close(socket);
        }
        let end = self.now + PATIENCE;
        loop {
            self.deliver(usize::MAX);
            let Some(due) = self.drain().filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            self.handle(Input::Tick);
        }
        let status = self.calls.stack.status();
        assert!(status.sockets.is_empty() && status.associations.is_empty(), "{status:?}");
    }
}

/// The calls that bytes are, read in two pieces and one by one.
fn same_however_cut(bytes: &[u8], cut: usize) {
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let (mut requests, mut calls) = (Requests::new(KEY, true), Vec::new());
        for mut piece in pieces {
            while !piece.is_empty() {
                let room = requests.room().remaining_mut();
                assert!(room > 0);
                let taken = room.min(piece.len());
                requests.room().put_slice(&piece[..taken]);
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
    // One by one where that takes no time: headers, and a little behind them.
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
