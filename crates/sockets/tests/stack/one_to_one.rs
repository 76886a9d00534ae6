//! Compares random calls with a model of the kernel: each call returns the same errno, and
//! afterwards `poll` agrees for every socket.

mod kernel;

use std::collections::{BTreeMap, BTreeSet};

use eyas_sockets::abi::number::{level, msg, so, socket};
use eyas_sockets::{Errno, SocketId};
use proptest::prelude::*;

use super::comparison::{self, outcome_name};
use super::pair::{CLIENT, Pair, SERVER, name};
use kernel::{Id, Kernel};

/// The number of ports that programs choose; assigned ports are above them.
const MAX_PORTS: u16 = 2;
const FIRST: u16 = 5000;
/// The maximum number of unread bytes: the behaviour of a full window is not modelled.
const MAX_UNREAD: usize = 40_000;
/// The maximum number of open sockets.
const MAX_SOCKETS: usize = 6;

#[derive(Clone, Debug)]
enum Call {
    Socket(usize),
    Bind(usize, u16),
    Listen(usize, usize),
    Connect(usize, u16),
    Accept(usize),
    Send(usize, usize),
    Receive(usize, usize),
    Shutdown(usize),
    Close(usize),
    Error(usize),
    Names(usize),
}

fn call() -> impl Strategy<Value = Call> {
    let one = 0..MAX_SOCKETS;
    let port = FIRST..FIRST + MAX_PORTS;
    prop_oneof![
        3 => (0_usize..2).prop_map(Call::Socket),
        3 => (one.clone(), port.clone()).prop_map(|(one, port)| Call::Bind(one, port)),
        3 => (one.clone(), 1_usize..3).prop_map(|(one, backlog)| Call::Listen(one, backlog)),
        6 => (one.clone(), port).prop_map(|(one, port)| Call::Connect(one, port)),
        8 => one.clone().prop_map(Call::Accept),
        9 => (one.clone(), 0_usize..4000).prop_map(|(one, length)| Call::Send(one, length)),
        6 => (one.clone(), 1_usize..5000).prop_map(|(one, room)| Call::Receive(one, room)),
        2 => one.clone().prop_map(Call::Shutdown),
        3 => one.clone().prop_map(Call::Close),
        1 => one.clone().prop_map(Call::Error),
        1 => one.prop_map(Call::Names),
    ]
}

/// Generates calls, half of them on two connected sockets.
fn calls(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Call>> {
    let setup = vec![
        Call::Socket(0),
        Call::Socket(1),
        Call::Bind(1, FIRST),
        Call::Listen(1, 2),
        Call::Connect(0, FIRST),
        Call::Accept(1),
    ];
    comparison::calls(setup, call(), count)
}

/// The stacks and the model, with the mapping of their sockets.
struct Comparison {
    pair: Pair,
    kernel: Kernel,
    sockets: BTreeMap<Id, (usize, SocketId)>,
    /// The outcomes of calls and the results of `poll`.
    seen: BTreeSet<String>,
}

impl Comparison {
    fn new() -> Self {
        let (pair, kernel) = (Pair::new(), Kernel::default());
        Self { pair, kernel, sockets: BTreeMap::new(), seen: BTreeSet::new() }
    }

    /// Returns one of the open sockets.
    fn choose(&self, index: usize) -> Option<(Id, usize, SocketId)> {
        let open = self.kernel.open();
        let id = *open.get(index.checked_rem(open.len())?)?;
        let (host, socket) = self.sockets[&id];
        Some((id, host, socket))
    }

    /// Makes calls on both, and returns the outcomes.
    fn make_all(mut self, calls: &[Call]) -> BTreeSet<String> {
        for call in calls {
            self.make(call);
        }
        self.seen
    }

    /// Makes a call on both, and checks that the results agree.
    fn make(&mut self, call: &Call) {
        match *call {
            Call::Socket(host) if self.kernel.open().len() < MAX_SOCKETS => {
                let (id, created) =
                    (self.kernel.socket(host), self.pair.socket(host, socket::SOCK_STREAM));
                self.sockets.insert(id, (host, created));
            }
            Call::Socket(_) => {}
            Call::Bind(one, _)
            | Call::Listen(one, _)
            | Call::Connect(one, _)
            | Call::Accept(one)
            | Call::Send(one, _)
            | Call::Receive(one, _)
            | Call::Shutdown(one)
            | Call::Close(one)
            | Call::Error(one)
            | Call::Names(one) => {
                if let Some(chosen) = self.choose(one) {
                    self.make_on_socket(call, chosen);
                }
            }
        }
        self.pair.run_one_second();
        for id in self.kernel.open() {
            let (host, socket) = self.sockets[&id];
            let (found, expected) = (self.pair.poll(host, socket).0, self.kernel.poll(id));
            assert_eq!(found, expected, "poll of socket {id} after {call:?}");
            self.seen.insert(format!("poll {:?}", self.pair.poll(host, socket)));
        }
    }

    fn make_on_socket(&mut self, call: &Call, (id, host, socket): (Id, usize, SocketId)) {
        let Self { pair, kernel, seen, .. } = self;
        match *call {
            // Other calls on closed sockets with unread data were not measured.
            Call::Bind(..)
            | Call::Listen(..)
            | Call::Connect(..)
            | Call::Shutdown(_)
            | Call::Names(_)
                if kernel.is_late(id) => {}
            Call::Socket(_) => {}
            Call::Bind(_, port) => {
                let to = name(&format!("0.0.0.0:{port}"));
                let bound = pair.at(host, |stack, now| stack.bind(now, socket, to.as_bytes()));
                assert_eq!(bound, kernel.bind(id, port), "{call:?} on {id}");
            }
            Call::Listen(_, backlog) => {
                let found = pair.at(host, |stack, now| stack.listen(now, socket, backlog as i32));
                let port = self.pair.assigned_port(host, socket);
                assert_eq!(found, self.kernel.listen(id, backlog, port), "{call:?} on {id}");
            }
            Call::Connect(_, port) => self.connect((id, host, socket), port),
            Call::Accept(_) => {
                let found = pair.at(host, |stack, now| stack.accept(now, socket));
                let expected = kernel.accept(id);
                seen.insert(format!("accept {}", outcome_name(&found)));
                assert_eq!(outcome_name(&found), outcome_name(&expected), "{call:?} on {id}");
                if let (Ok((created, _)), Ok(accepted)) = (found, expected) {
                    self.sockets.insert(accepted, (host, created));
                }
            }
            Call::Send(_, length) if kernel.unread() + length <= MAX_UNREAD => {
                let found = pair.send_message(host, socket, &vec![7; length]).map(drop);
                seen.insert(format!("send {}", outcome_name(&found)));
                assert_eq!(found, kernel.send(id, length), "{call:?} on {id}");
            }
            Call::Send(..) => {}
            Call::Receive(_, room) => {
                let found = pair.receive_message(host, socket, room, msg::MSG_DONTWAIT);
                let found = found.map(|got| (got.data.len(), got.flags & msg::MSG_EOR != 0));
                seen.insert(format!("receive {}", outcome_name(&found)));
                assert_eq!(found, kernel.receive(id, room), "{call:?} on {id}");
            }
            Call::Shutdown(_) => {
                let found = pair.at(host, |stack, now| stack.shutdown(now, socket, 1));
                assert_eq!(found, kernel.shutdown(id), "{call:?} on {id}");
            }
            Call::Close(_) => {
                pair.at(host, |stack, now| stack.close(now, socket));
                kernel.close(id);
                self.sockets.remove(&id);
            }
            Call::Error(_) => {
                let found = pair.at(host, |stack, now| {
                    stack.getsockopt(now, socket, level::SOL_SOCKET, so::SO_ERROR, &[0; 4])
                });
                let expected = kernel.error(id).map_or(0, |Errno(errno)| errno);
                assert_eq!(found, Ok(expected.to_ne_bytes().to_vec()), "{call:?} on {id}");
            }
            Call::Names(_) => {
                let stack = &pair.hosts[host].stack;
                let has_peer = stack.getpeername(socket).is_ok();
                let expected = (kernel.peer_name(id), kernel.port(id).unwrap_or(0));
                let found = (has_peer, self.pair.assigned_port(host, socket));
                assert_eq!(found, expected, "{call:?} on {id}");
            }
        }
    }

    /// A blocking connect: the network becomes idle before it returns.
    fn connect(&mut self, (id, host, socket): (Id, usize, SocketId), port: u16) {
        let there = [SERVER, CLIENT][host];
        let to = name(&format!("{there}:{port}"));
        let started = self.pair.at(host, |stack, now| stack.connect(now, socket, to.as_bytes()));
        let found = match started {
            Ok(association) => {
                self.pair.run_one_second();
                self.pair.at(host, |stack, now| stack.connect_result(now, socket, association))
            }
            Err(error) => Err(error),
        };
        let assigned_port = self.pair.assigned_port(host, socket);
        let expected = self.kernel.connect(id, port, assigned_port);
        self.seen.insert(format!("connect {}", outcome_name(&found)));
        assert_eq!(found, expected, "connect of {id} to {port}");
    }
}

proptest! {
    #[test]
    fn calls_behave_as_in_the_kernel(calls in calls(1..80)) {
        Comparison::new().make_all(&calls);
    }
}

#[test]
fn random_calls_cover_the_interesting_states() {
    let expected = [
        "accept done",
        "accept EAGAIN",
        "connect done",
        "connect ECONNREFUSED",
        "connect EISCONN",
        "receive done",
        "receive ECONNRESET",
        "receive ENOTCONN",
        "send done",
        "send ECONNRESET",
        "send EPIPE",
        "poll OUT|ERR",
        "poll IN|OUT|RDHUP",
        "poll IN|HUP",
        "poll IN|RDHUP",
    ];
    let make = |calls: &[Call]| Comparison::new().make_all(calls);
    comparison::check_coverage(&calls(40..80), 200, make, &expected);
}
