//! Random calls on one-to-many sockets beside a model of the kernel: each gets the same errno and the
//! same length, and `poll`, `FIONREAD` and the list of associations say the same of every socket after
//! each of them.

mod kernel;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use eyas_sockets::abi::control::{HEADER, SndRcvInfo, header};
use eyas_sockets::abi::number::{cmsg, flag, level, msg, option, socket};
use eyas_sockets::{AssocId, Errno, Outgoing, Sent, SocketId};
use proptest::prelude::*;

use super::beside::{self, word};
use super::pair::{CLIENT, Pair, SERVER, name};
use kernel::{EVENTS, Got, Id, Kernel, Link, To};

/// Ports that programs choose; those that they are given are above.
const PORTS: u16 = 3;
const FIRST: u16 = 5000;
/// More is not sent while so much waits: what a full window does is not modelled.
const MOST: usize = 40_000;
/// So many are open at once.
const SOCKETS: usize = 6;
/// Bytes of one message: it fits in one packet, so that it fails in one piece.
const LENGTHS: std::ops::Range<usize> = 1..1300;
/// How long the network has after each call to come to rest. No number of such times is a whole number
/// of seconds below seven, so no association ends for want of traffic just then.
const REST: Duration = Duration::from_millis(700);

#[derive(Clone, Debug)]
enum Call {
    Socket { host: usize, hears: bool, autoclose: Option<u8> },
    Bind(usize, u16),
    Listen(usize),
    Connect(usize, u16),
    Send(usize, u16, usize),
    Answer { socket: usize, link: usize, length: usize },
    Finish(usize, usize),
    Abort { socket: usize, link: usize, reason: usize },
    Receive(usize, usize),
    Peel(usize, usize),
    Close(usize),
    Wait(u8),
}

fn call() -> impl Strategy<Value = Call> {
    let one = 0..SOCKETS;
    let port = FIRST..FIRST + PORTS;
    let link = 0_usize..3;
    // One side alone has patience with an end: at both they would end at once, in either order.
    let patience = prop_oneof![3 => Just(None), 1 => (2_u8..7).prop_map(Some)];
    prop_oneof![
        3 => (0_usize..2, any::<bool>(), patience).prop_map(|(host, hears, patience)| {
            Call::Socket { host, hears, autoclose: patience.filter(|_| host == 0) }
        }),
        3 => (one.clone(), port.clone()).prop_map(|(one, port)| Call::Bind(one, port)),
        3 => one.clone().prop_map(Call::Listen),
        2 => (one.clone(), port.clone()).prop_map(|(one, port)| Call::Connect(one, port)),
        9 => (one.clone(), port, LENGTHS).prop_map(|(one, to, length)| Call::Send(one, to, length)),
        6 => (one.clone(), link.clone(), prop_oneof![1 => Just(0), 9 => LENGTHS])
            .prop_map(|(socket, link, length)| Call::Answer { socket, link, length }),
        2 => (one.clone(), link.clone()).prop_map(|(one, link)| Call::Finish(one, link)),
        1 => (one.clone(), link.clone(), 0_usize..40)
            .prop_map(|(socket, link, reason)| Call::Abort { socket, link, reason }),
        12 => (one.clone(), 1_usize..1500).prop_map(|(one, room)| Call::Receive(one, room)),
        2 => (one.clone(), link).prop_map(|(one, link)| Call::Peel(one, link)),
        2 => one.prop_map(Call::Close),
        2 => (1_u8..12).prop_map(Call::Wait),
    ]
}

/// Calls, half of them on sockets that listen at each other's ports.
fn calls(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Call>> {
    let socket = |host| Call::Socket { host, hears: true, autoclose: None };
    let begun = vec![
        socket(0),
        socket(1),
        socket(1),
        Call::Bind(0, FIRST),
        Call::Bind(1, FIRST),
        Call::Bind(2, FIRST + 1),
        Call::Listen(0),
        Call::Listen(1),
        Call::Listen(2),
    ];
    beside::calls(begun, call(), count)
}

/// Both, and what of the one is what of the other.
struct Beside {
    pair: Pair,
    kernel: Kernel,
    sockets: BTreeMap<Id, (usize, SocketId)>,
    /// By host, what the stack calls each association.
    names: BTreeMap<(usize, Link), AssocId>,
    /// Which calls were answered how, and what `poll` said.
    seen: BTreeSet<String>,
}

impl Beside {
    fn new() -> Self {
        let (pair, kernel) = (Pair::new(), Kernel::default());
        Self {
            pair,
            kernel,
            sockets: BTreeMap::new(),
            names: BTreeMap::new(),
            seen: BTreeSet::new(),
        }
    }

    /// One of the associations of a socket.
    fn link(&self, id: Id, index: usize) -> Option<Link> {
        let links = self.kernel.links(id);
        links.get(index % links.len().max(1)).copied()
    }

    fn rest(&mut self) {
        self.pair.run(REST);
        self.kernel.wait(REST);
    }

    /// Makes calls on both, and gives what was seen of them.
    fn make_all(mut self, calls: &[Call]) -> BTreeSet<String> {
        for call in calls {
            self.make(call);
        }
        self.seen
    }

    /// Makes a call on both; what they answer is to be the same, and what they say afterwards.
    fn make(&mut self, call: &Call) {
        match *call {
            Call::Socket { host, hears, autoclose } if self.sockets.len() < SOCKETS => {
                self.socket(host, hears, autoclose);
            }
            Call::Socket { .. } => {}
            Call::Wait(times) => (0..times).for_each(|_| self.rest()),
            Call::Bind(one, _)
            | Call::Listen(one)
            | Call::Connect(one, _)
            | Call::Send(one, ..)
            | Call::Answer { socket: one, .. }
            | Call::Finish(one, _)
            | Call::Abort { socket: one, .. }
            | Call::Receive(one, _)
            | Call::Peel(one, _)
            | Call::Close(one) => {
                let open = self.kernel.open();
                let chosen = one.checked_rem(open.len()).map(|index| open[index]);
                if let Some(id) = chosen {
                    self.on(call, id);
                }
            }
        }
        self.rest();
        self.compare(call);
    }

    fn socket(&mut self, host: usize, hears: bool, autoclose: Option<u8>) {
        let made = self.pair.socket(host, socket::SOCK_SEQPACKET);
        if hears {
            self.pair.set(host, made, option::SCTP_EVENTS, &EVENTS).unwrap();
        }
        if let Some(seconds) = autoclose {
            let seconds = u32::from(seconds).to_ne_bytes();
            self.pair.set(host, made, option::SCTP_AUTOCLOSE, &seconds).unwrap();
        }
        let patience = autoclose.map(|seconds| Duration::from_secs(seconds.into()));
        let id = self.kernel.socket(host, hears, patience);
        self.sockets.insert(id, (host, made));
    }

    fn on(&mut self, call: &Call, id: Id) {
        let (host, socket) = self.sockets[&id];
        match *call {
            // What a socket that was peeled off does besides was not measured.
            Call::Bind(..) | Call::Listen(_) | Call::Connect(..) | Call::Send(..)
                if self.kernel.is_peeled(id) => {}
            Call::Bind(_, port) => {
                let to = name(&format!("0.0.0.0:{port}"));
                let bound = self.pair.at(host, |stack, now| stack.bind(now, socket, to.as_bytes()));
                assert_eq!(bound, self.kernel.bind(id, port), "{call:?} on {id}");
            }
            Call::Listen(_) => {
                let found = self.pair.at(host, |stack, now| stack.listen(now, socket, 1));
                let given = self.pair.given(host, socket);
                self.kernel.listen(id, given);
                assert_eq!(found, Ok(()), "{call:?} on {id}");
            }
            Call::Connect(_, port) => self.connect(id, port),
            Call::Send(_, port, length) if self.kernel.unread() + length <= MOST => {
                let to = format!("{}:{port}", [SERVER, CLIENT][host]);
                let found = self.pair.say_to(host, socket, &to, &vec![7; length]);
                let given = self.pair.given(host, socket);
                let wanted = self.kernel.send(id, To::Port(port), length, given);
                self.same("send", call, found.map(|sent| sent.length), wanted.map(|()| length));
            }
            Call::Answer { link, length, .. } if self.kernel.unread() + length <= MOST => {
                let Some(link) = self.link(id, link) else { return };
                let found = self.say(id, link, 0, length);
                let wanted = match length {
                    0 => Err(Errno::EINVAL),
                    _ => self.kernel.send(id, To::Link(link), length, 0),
                };
                self.same("answer", call, found.map(|sent| sent.length), wanted.map(|()| length));
            }
            Call::Send(..) | Call::Answer { .. } => {}
            Call::Finish(_, link) => {
                let Some(link) = self.link(id, link) else { return };
                let found = self.say(id, link, flag::SCTP_EOF, 0).map(drop);
                let wanted = self.kernel.finish(id, link);
                self.same("finish", call, found, wanted);
            }
            Call::Abort { link, reason, .. } => {
                let Some(link) = self.link(id, link) else { return };
                let found = self.say(id, link, flag::SCTP_ABORT, reason).map(drop);
                let wanted = self.kernel.abort(id, link, reason);
                self.same("abort", call, found, wanted);
            }
            Call::Receive(_, room) => self.receive(call, id, room),
            Call::Peel(_, link) => self.peel(call, id, link),
            Call::Close(_) => {
                self.pair.at(host, |stack, now| stack.close(now, socket));
                self.kernel.close(id);
                self.sockets.remove(&id);
            }
            Call::Socket { .. } | Call::Wait(_) => {}
        }
    }

    fn same<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        call: &Call,
        found: Result<T, Errno>,
        wanted: Result<T, Errno>,
    ) {
        self.seen.insert(format!("{what} {}", word(&found)));
        assert_eq!(found, wanted, "{call:?}");
    }

    /// A message to an association by its number.
    fn say(&mut self, id: Id, link: Link, flags: u16, length: usize) -> Result<Sent, Errno> {
        let (host, socket) = self.sockets[&id];
        let AssocId(association) = self.names[&(host, link)];
        let info = SndRcvInfo { flags, association, ..SndRcvInfo::default() };
        let mut control = header(level::SOL_SCTP, cmsg::SCTP_SNDRCV, SndRcvInfo::LENGTH).to_vec();
        control.extend_from_slice(&info.encode());
        assert_eq!(control.len(), HEADER + SndRcvInfo::LENGTH);
        let message = Outgoing {
            data: Bytes::from(vec![7; length]),
            control: &control,
            ..Outgoing::default()
        };
        self.pair.at(host, |stack, now| stack.send(now, socket, message))
    }

    /// A connect that blocks: the network comes to rest before it returns.
    fn connect(&mut self, id: Id, port: u16) {
        let (host, socket) = self.sockets[&id];
        let to = name(&format!("{}:{port}", [SERVER, CLIENT][host]));
        let begun = self.pair.at(host, |stack, now| stack.connect(now, socket, to.as_bytes()));
        let given = self.pair.given(host, socket);
        let wanted = self.kernel.connect(id, port, given);
        let found = begun.and_then(|association| {
            self.rest();
            self.pair.at(host, |stack, now| stack.connect_result(now, socket, association))
        });
        self.same("connect", &Call::Connect(id, port), found, wanted);
    }

    fn receive(&mut self, call: &Call, id: Id, room: usize) {
        let (host, socket) = self.sockets[&id];
        let found = self.pair.hear(host, socket, room, msg::MSG_DONTWAIT).map(|got| Got {
            length: got.data.len(),
            is_whole: got.flags & msg::MSG_EOR != 0,
            is_notification: got.flags & msg::MSG_NOTIFICATION != 0,
        });
        let wanted = self.kernel.receive(id, room);
        let what = match found {
            Ok(Got { is_notification: true, .. }) => "receive of a notification",
            _ => "receive",
        };
        self.same(what, call, found, wanted);
    }

    fn peel(&mut self, call: &Call, id: Id, index: usize) {
        let (host, socket) = self.sockets[&id];
        let link = self.link(id, index);
        let association = link.map_or(AssocId(99), |link| self.names[&(host, link)]);
        let found = self.pair.at(host, |stack, now| stack.peeloff(now, socket, association));
        let wanted = self.kernel.peel(id, link.unwrap_or(Link::MAX));
        if let (Ok(made), Ok(child)) = (found, wanted) {
            self.sockets.insert(child, (host, made));
        }
        self.same("peeloff", call, found.map(drop), wanted.map(drop));
    }

    /// What both say of each socket.
    fn compare(&mut self, call: &Call) {
        for id in self.kernel.open() {
            let (host, socket) = self.sockets[&id];
            let listed = self.pair.get(host, socket, option::SCTP_GET_ASSOC_ID_LIST, &[0; 256]);
            let listed: Vec<AssocId> = listed
                .unwrap()
                .chunks_exact(4)
                .skip(1)
                .map(|id| AssocId(i32::from_ne_bytes(id.try_into().unwrap())))
                .collect();
            let links = self.kernel.links(id);
            assert_eq!(listed.len(), links.len(), "associations of {id} after {call:?}");
            for (link, association) in links.into_iter().zip(listed) {
                let known = *self.names.entry((host, link)).or_insert(association);
                assert_eq!(known, association, "an association of {id} after {call:?}");
            }
            let readable =
                self.pair.at(host, |stack, now| stack.bytes_readable(now, socket)).unwrap();
            assert_eq!(readable, self.kernel.readable(id), "FIONREAD of {id} after {call:?}");
            let (found, wanted) = (self.pair.poll(host, socket), self.kernel.poll(id));
            assert_eq!(found.0, wanted, "poll of {id} after {call:?}: {found:?}");
            self.seen.insert(format!("poll {found:?}"));
            assert_eq!(
                self.pair.given(host, socket),
                self.kernel.port(id).unwrap_or(0),
                "{call:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn calls_on_many_are_answered_as_the_kernel_would(calls in calls(1..50)) {
        Beside::new().make_all(&calls);
    }
}

#[test]
fn random_calls_on_many_cover_the_interesting_states() {
    let wanted = [
        "abort done",
        "answer done",
        "answer EINVAL",
        "connect done",
        "connect EADDRNOTAVAIL",
        "connect ECONNREFUSED",
        "connect EISCONN",
        "finish done",
        "peeloff done",
        "peeloff EINVAL",
        "poll IN|OUT",
        "poll OUT",
        "receive done",
        "receive EAGAIN",
        "receive of a notification done",
        "send done",
        "send EADDRNOTAVAIL",
    ];
    let make = |calls: &[Call]| Beside::new().make_all(calls);
    beside::reach(&calls(40..80), 80, make, &wanted);
}
