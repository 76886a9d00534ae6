//! Tests of random creation, connection, peeling off and closing of sockets: nothing panics,
//! readiness is reported correctly, waiting calls are woken or have a timer, and nothing leaks.

use std::collections::BTreeMap;
use std::time::Duration;

use eyas_sockets::abi::number::{msg, option, socket};
use eyas_sockets::{AssocId, Errno, PollReadiness, SocketId, StackOutput};
use proptest::prelude::*;

use super::pair::{CLIENT, Pair, SERVER, name};

#[derive(Clone, Debug)]
enum Call {
    Make { many: bool },
    Bind { socket: usize, port: u16 },
    Listen { socket: usize, backlog: i32 },
    Connect { socket: usize, port: u16 },
    Accept { socket: usize },
    PeelOff { socket: usize, association: usize },
    Send { socket: usize, length: usize },
    SendTo { socket: usize, port: u16, length: usize },
    Receive { socket: usize, room: usize, flags: i32 },
    Shutdown { socket: usize, how: i32 },
    Close { socket: usize },
    Set { socket: usize, name: i32, value: u32 },
    Wait { ms: u64 },
    Cut { cut: bool },
}

fn call() -> impl Strategy<Value = Call> {
    let which = 0usize..12;
    let port = 5000u16..5003;
    prop_oneof![
        3 => any::<bool>().prop_map(|many| Call::Make { many }),
        2 => (which.clone(), port.clone()).prop_map(|(socket, port)| Call::Bind { socket, port }),
        3 => (which.clone(), 0i32..3).prop_map(|(socket, backlog)| Call::Listen { socket, backlog }),
        4 => (which.clone(), port.clone()).prop_map(|(socket, port)| Call::Connect { socket, port }),
        3 => which.clone().prop_map(|socket| Call::Accept { socket }),
        1 => (which.clone(), 0usize..3)
            .prop_map(|(socket, association)| Call::PeelOff { socket, association }),
        4 => (which.clone(), 0usize..70_000).prop_map(|(socket, length)| Call::Send { socket, length }),
        3 => (which.clone(), port, 0usize..9000)
            .prop_map(|(socket, port, length)| Call::SendTo { socket, port, length }),
        5 => (which.clone(), 0usize..50_000, prop_oneof![Just(0), Just(msg::MSG_PEEK)])
            .prop_map(|(socket, room, flags)| Call::Receive { socket, room, flags }),
        1 => (which.clone(), 0i32..4).prop_map(|(socket, how)| Call::Shutdown { socket, how }),
        2 => which.clone().prop_map(|socket| Call::Close { socket }),
        1 => (which, 0i32..40, 0u32..4)
            .prop_map(|(socket, name, value)| Call::Set { socket, name, value }),
        4 => (0u64..1500).prop_map(|ms| Call::Wait { ms }),
        1 => any::<bool>().prop_map(|cut| Call::Cut { cut }),
    ]
}

/// The sockets of one host, as their program sees them.
#[derive(Default)]
struct Program {
    sockets: Vec<SocketId>,
    reported: BTreeMap<SocketId, PollReadiness>,
}

impl Program {
    fn take_outputs(&mut self, pair: &mut Pair, host: usize) -> Result<(), TestCaseError> {
        for output in pair.hosts[host].outputs.drain(..) {
            if let StackOutput::Readiness(socket, readiness) = output {
                self.reported.insert(socket, readiness);
            }
        }
        for socket in &self.sockets {
            let reported = self.reported.get(socket).copied().unwrap_or_default();
            prop_assert_eq!(reported, pair.hosts[host].stack.readiness(*socket), "{:?}", socket);
        }
        Ok(())
    }
}

fn make_call(pair: &mut Pair, host: usize, program: &mut Program, call: &Call) {
    let of = |at: usize| program.sockets.get(at).copied().unwrap_or(SocketId(u64::MAX));
    let peer = if host == 0 { SERVER } else { CLIENT };
    let done: Result<(), Errno> = match *call {
        Call::Make { many } => {
            if program.sockets.len() < 12 {
                let kind = if many { socket::SOCK_SEQPACKET } else { socket::SOCK_STREAM };
                let created = pair.socket(host, kind);
                program.sockets.push(created);
                pair.set(host, created, option::SCTP_EVENTS, &[1; 14]).unwrap();
            }
            Ok(())
        }
        Call::Bind { socket, port } => {
            let name = name(&format!("0.0.0.0:{port}"));
            pair.at(host, |stack, now| stack.bind(now, of(socket), name.as_bytes()))
        }
        Call::Listen { socket, backlog } => {
            pair.at(host, |stack, now| stack.listen(now, of(socket), backlog))
        }
        Call::Connect { socket, port } => {
            let to = name(&format!("{peer}:{port}"));
            pair.at(host, |stack, now| stack.connect(now, of(socket), to.as_bytes())).map(drop)
        }
        Call::Accept { socket } => {
            let accepted = pair.at(host, |stack, now| stack.accept(now, of(socket)));
            accepted.map(|(child, _)| program.sockets.push(child))
        }
        Call::PeelOff { socket, association } => {
            let status = pair.hosts[host].stack.status();
            let status_of_socket = status.sockets.iter().find(|it| it.id == of(socket).0);
            let id = status_of_socket.and_then(|it| it.associations.get(association)).copied();
            let peeled = pair
                .at(host, |stack, now| stack.peeloff(now, of(socket), id.unwrap_or(AssocId(1))));
            peeled.map(|child| program.sockets.push(child))
        }
        Call::Send { socket, length } => {
            pair.send_message(host, of(socket), &vec![1; length]).map(drop)
        }
        Call::SendTo { socket, port, length } => pair
            .send_message_to(host, of(socket), &format!("{peer}:{port}"), &vec![2; length])
            .map(drop),
        Call::Receive { socket, room, flags } => {
            pair.receive_message(host, of(socket), room, flags | msg::MSG_DONTWAIT).map(drop)
        }
        Call::Shutdown { socket, how } => {
            pair.at(host, |stack, now| stack.shutdown(now, of(socket), how))
        }
        Call::Close { socket } => {
            if socket < program.sockets.len() {
                let closed = program.sockets.remove(socket);
                pair.at(host, |stack, now| stack.close(now, closed));
            }
            Ok(())
        }
        Call::Set { socket, name, value } => pair.set(host, of(socket), name, &value.to_ne_bytes()),
        Call::Wait { ms } => {
            pair.run(Duration::from_millis(ms));
            Ok(())
        }
        Call::Cut { cut } => {
            pair.is_cut = cut;
            Ok(())
        }
    };
    // Most calls on random sockets fail.
    let _ = done;
}

proptest! {
    #[test]
    fn no_call_leaks_anything(
        calls in prop::collection::vec((0usize..2, call()), 1..150),
    ) {
        let mut pair = Pair::new();
        let mut programs: [Program; 2] = Default::default();
        for (host, call) in &calls {
            make_call(&mut pair, *host, &mut programs[*host], call);
            for (host, program) in programs.iter_mut().enumerate() {
                program.take_outputs(&mut pair, host)?;
            }
        }
        for (host, program) in programs.iter_mut().enumerate() {
            for socket in program.sockets.drain(..) {
                pair.at(host, |stack, now| stack.close(now, socket));
            }
        }
        // An unanswered shutdown takes as long as RFC 9260 specifies.
        pair.run(Duration::from_secs(1800));
        for host in &pair.hosts {
            let status = host.stack.status();
            prop_assert!(status.sockets.is_empty(), "{:?}", status.sockets);
            prop_assert!(status.associations.is_empty(), "{:?}", status.associations);
        }
    }
}
