//! Compares random calls on one-to-many sockets with a model of the kernel: each call returns the
//! same errno and length, and afterwards `poll`, `FIONREAD` and the list of associations agree for
//! every socket.

mod kernel;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use eyas_sockets::abi::control::{HEADER, SndRcvInfo, header};
use eyas_sockets::abi::number::{cmsg, flag, level, msg, option, socket};
use eyas_sockets::{AssocId, Errno, SendRequest, SendResult, SocketId};
use proptest::prelude::*;

use super::comparison::{self, outcome_name};
use super::pair::{CLIENT, Pair, SERVER, name};
use kernel::{EVENTS, Id, Kernel, Link, ReceivedPart, To};

/// The number of ports that programs choose; assigned ports are above them.
const MAX_PORTS: u16 = 3;
const FIRST: u16 = 5000;
/// The maximum number of unread bytes: the behaviour of a full window is not modelled.
const MAX_UNREAD: usize = 40_000;
/// The maximum number of open sockets.
const MAX_SOCKETS: usize = 6;
/// The length of a message: it fits in one packet, so that it fails as a whole.
const LENGTHS: std::ops::Range<usize> = 1..1300;
/// The time after each call for the network to become idle. Its multiples are not whole seconds
/// below seven, so autoclose does not expire at the same moment.
const REST: Duration = Duration::from_millis(700);

#[derive(Clone, Debug)]
enum Call {
    Socket { host: usize, notifies: bool, autoclose: Option<u8> },
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
    let one = 0..MAX_SOCKETS;
    let port = FIRST..FIRST + MAX_PORTS;
    let link = 0_usize..3;
    // Only one side has autoclose: with both, either side could close first.
    let autoclose = prop_oneof![3 => Just(None), 1 => (2_u8..7).prop_map(Some)];
    prop_oneof![
        3 => (0_usize..2, any::<bool>(), autoclose).prop_map(|(host, notifies, autoclose)| {
            Call::Socket { host, notifies, autoclose: autoclose.filter(|_| host == 0) }
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

/// Generates calls, half of them on sockets that listen at each other's ports.
fn calls(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Call>> {
    let socket = |host| Call::Socket { host, notifies: true, autoclose: None };
    let setup = vec![
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
    comparison::calls(setup, call(), count)
}

/// The stacks and the model, with the mapping of their objects.
struct Comparison {
    pair: Pair,
    kernel: Kernel,
    sockets: BTreeMap<Id, (usize, SocketId)>,
    /// The identifier of each association in the stack, by host.
    names: BTreeMap<(usize, Link), AssocId>,
    /// The outcomes of calls and the results of `poll`.
    seen: BTreeSet<String>,
}

impl Comparison {
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

    /// Returns one of the associations of a socket.
    fn link(&self, id: Id, index: usize) -> Option<Link> {
        let links = self.kernel.links(id);
        links.get(index % links.len().max(1)).copied()
    }

    fn rest(&mut self) {
        self.pair.run(REST);
        self.kernel.wait(REST);
    }

    /// Makes calls on both, and returns the outcomes.
    fn make_all(mut self, calls: &[Call]) -> BTreeSet<String> {
        for call in calls {
            self.make(call);
        }
        self.seen
    }

    /// Makes a call on both, and checks that the results and the states afterwards agree.
    fn make(&mut self, call: &Call) {
        match *call {
            Call::Socket { host, notifies, autoclose } if self.sockets.len() < MAX_SOCKETS => {
                self.socket(host, notifies, autoclose);
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
                    self.make_on_socket(call, id);
                }
            }
        }
        self.rest();
        self.compare(call);
    }

    fn socket(&mut self, host: usize, notifies: bool, autoclose: Option<u8>) {
        let created = self.pair.socket(host, socket::SOCK_SEQPACKET);
        if notifies {
            self.pair.set(host, created, option::SCTP_EVENTS, &EVENTS).unwrap();
        }
        if let Some(seconds) = autoclose {
            let seconds = u32::from(seconds).to_ne_bytes();
            self.pair.set(host, created, option::SCTP_AUTOCLOSE, &seconds).unwrap();
        }
        let autoclose = autoclose.map(|seconds| Duration::from_secs(seconds.into()));
        let id = self.kernel.socket(host, notifies, autoclose);
        self.sockets.insert(id, (host, created));
    }

    fn make_on_socket(&mut self, call: &Call, id: Id) {
        let (host, socket) = self.sockets[&id];
        match *call {
            // Other calls on peeled-off sockets were not measured.
            Call::Bind(..) | Call::Listen(_) | Call::Connect(..) | Call::Send(..)
                if self.kernel.is_peeled(id) => {}
            Call::Bind(_, port) => {
                let to = name(&format!("0.0.0.0:{port}"));
                let bound = self.pair.at(host, |stack, now| stack.bind(now, socket, to.as_bytes()));
                assert_eq!(bound, self.kernel.bind(id, port), "{call:?} on {id}");
            }
            Call::Listen(_) => {
                let found = self.pair.at(host, |stack, now| stack.listen(now, socket, 1));
                let assigned_port = self.pair.assigned_port(host, socket);
                self.kernel.listen(id, assigned_port);
                assert_eq!(found, Ok(()), "{call:?} on {id}");
            }
            Call::Connect(_, port) => self.connect(id, port),
            Call::Send(_, port, length) if self.kernel.unread() + length <= MAX_UNREAD => {
                let to = format!("{}:{port}", [SERVER, CLIENT][host]);
                let found = self.pair.send_message_to(host, socket, &to, &vec![7; length]);
                let assigned_port = self.pair.assigned_port(host, socket);
                let expected = self.kernel.send(id, To::Port(port), length, assigned_port);
                self.assert_same(
                    "send",
                    call,
                    found.map(|sent| sent.length),
                    expected.map(|()| length),
                );
            }
            Call::Answer { link, length, .. } if self.kernel.unread() + length <= MAX_UNREAD => {
                let Some(link) = self.link(id, link) else { return };
                let found = self.send_message(id, link, 0, length);
                let expected = match length {
                    0 => Err(Errno::EINVAL),
                    _ => self.kernel.send(id, To::Link(link), length, 0),
                };
                self.assert_same(
                    "answer",
                    call,
                    found.map(|sent| sent.length),
                    expected.map(|()| length),
                );
            }
            Call::Send(..) | Call::Answer { .. } => {}
            Call::Finish(_, link) => {
                let Some(link) = self.link(id, link) else { return };
                let found = self.send_message(id, link, flag::SCTP_EOF, 0).map(drop);
                let expected = self.kernel.finish(id, link);
                self.assert_same("finish", call, found, expected);
            }
            Call::Abort { link, reason, .. } => {
                let Some(link) = self.link(id, link) else { return };
                let found = self.send_message(id, link, flag::SCTP_ABORT, reason).map(drop);
                let expected = self.kernel.abort(id, link, reason);
                self.assert_same("abort", call, found, expected);
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

    fn assert_same<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        call: &Call,
        found: Result<T, Errno>,
        expected: Result<T, Errno>,
    ) {
        self.seen.insert(format!("{what} {}", outcome_name(&found)));
        assert_eq!(found, expected, "{call:?}");
    }

    /// Sends a message to an association by its identifier.
    fn send_message(
        &mut self,
        id: Id,
        link: Link,
        flags: u16,
        length: usize,
    ) -> Result<SendResult, Errno> {
        let (host, socket) = self.sockets[&id];
        let AssocId(association) = self.names[&(host, link)];
        let info = SndRcvInfo { flags, association, ..SndRcvInfo::default() };
        let mut control = header(level::SOL_SCTP, cmsg::SCTP_SNDRCV, SndRcvInfo::LENGTH).to_vec();
        control.extend_from_slice(&info.encode());
        assert_eq!(control.len(), HEADER + SndRcvInfo::LENGTH);
        let message = SendRequest {
            data: Bytes::from(vec![7; length]),
            control: &control,
            ..SendRequest::default()
        };
        self.pair.at(host, |stack, now| stack.send(now, socket, message))
    }

    /// A blocking connect: the network becomes idle before it returns.
    fn connect(&mut self, id: Id, port: u16) {
        let (host, socket) = self.sockets[&id];
        let to = name(&format!("{}:{port}", [SERVER, CLIENT][host]));
        let started = self.pair.at(host, |stack, now| stack.connect(now, socket, to.as_bytes()));
        let assigned_port = self.pair.assigned_port(host, socket);
        let expected = self.kernel.connect(id, port, assigned_port);
        let found = started.and_then(|association| {
            self.rest();
            self.pair.at(host, |stack, now| stack.connect_result(now, socket, association))
        });
        self.assert_same("connect", &Call::Connect(id, port), found, expected);
    }

    fn receive(&mut self, call: &Call, id: Id, room: usize) {
        let (host, socket) = self.sockets[&id];
        let found = self.pair.receive_message(host, socket, room, msg::MSG_DONTWAIT).map(|got| {
            ReceivedPart {
                length: got.data.len(),
                is_whole: got.flags & msg::MSG_EOR != 0,
                is_notification: got.flags & msg::MSG_NOTIFICATION != 0,
            }
        });
        let expected = self.kernel.receive(id, room);
        let what = match found {
            Ok(ReceivedPart { is_notification: true, .. }) => "receive of a notification",
            _ => "receive",
        };
        self.assert_same(what, call, found, expected);
    }

    fn peel(&mut self, call: &Call, id: Id, index: usize) {
        let (host, socket) = self.sockets[&id];
        let link = self.link(id, index);
        let association = link.map_or(AssocId(99), |link| self.names[&(host, link)]);
        let found = self.pair.at(host, |stack, now| stack.peeloff(now, socket, association));
        let expected = self.kernel.peel(id, link.unwrap_or(Link::MAX));
        if let (Ok(created), Ok(child)) = (found, expected) {
            self.sockets.insert(child, (host, created));
        }
        self.assert_same("peeloff", call, found.map(drop), expected.map(drop));
    }

    /// Compares the state of each socket.
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
            let (found, expected) = (self.pair.poll(host, socket), self.kernel.poll(id));
            assert_eq!(found.0, expected, "poll of {id} after {call:?}: {found:?}");
            self.seen.insert(format!("poll {found:?}"));
            assert_eq!(
                self.pair.assigned_port(host, socket),
                self.kernel.port(id).unwrap_or(0),
                "{call:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn calls_on_one_to_many_sockets_behave_as_in_the_kernel(calls in calls(1..50)) {
        Comparison::new().make_all(&calls);
    }
}

#[test]
fn random_calls_on_one_to_many_sockets_cover_the_interesting_states() {
    let expected = [
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
    let make = |calls: &[Call]| Comparison::new().make_all(calls);
    comparison::check_coverage(&calls(40..80), 80, make, &expected);
}
