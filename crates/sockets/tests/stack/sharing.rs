//! Ports that several sockets share: `SO_REUSEADDR`, `SCTP_REUSE_PORT`, `SO_REUSEPORT`. The
//! outcomes are those of Linux 6.1.

use eyas_sockets::abi::number::poll::POLLIN;
use eyas_sockets::abi::number::{level, option, so, socket};
use eyas_sockets::{Errno, SocketId, SocketName};

use super::pair::{CLIENT, Pair, SERVER};

const PORT: u16 = 5000;
const LOOPBACK: &str = "127.0.0.1";

/// How a socket shares its port.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Alone,
    ReuseAddress,
    SctpReusePort,
    ReusePort,
    ReusePortOf(u32),
}
use Kind::*;

fn created(pair: &mut Pair, kind: Kind, style: i32) -> SocketId {
    let made = pair.socket(1, style);
    let (option_level, name) = match kind {
        Alone => return made,
        ReuseAddress => (level::SOL_SOCKET, so::SO_REUSEADDR),
        SctpReusePort => (level::SOL_SCTP, option::SCTP_REUSE_PORT),
        ReusePort | ReusePortOf(_) => (level::SOL_SOCKET, so::SO_REUSEPORT),
    };
    if let ReusePortOf(user) = kind {
        pair.hosts[1].stack.set_user(made, user);
    }
    let on = 1u32.to_ne_bytes();
    pair.at(1, |stack, now| stack.setsockopt(now, made, option_level, name, &on)).unwrap();
    made
}

fn bound(pair: &mut Pair, kind: Kind, address: &str) -> Result<SocketId, Errno> {
    let made = created(pair, kind, socket::SOCK_STREAM);
    let name = SocketName::new(format!("{address}:{PORT}").parse().unwrap());
    let outcome = pair.at(1, |stack, now| stack.bind(now, made, name.as_bytes()));
    outcome.map(|()| made)
}

fn listening(pair: &mut Pair, kind: Kind, address: &str) -> Result<SocketId, Errno> {
    let made = bound(pair, kind, address)?;
    pair.at(1, |stack, now| stack.listen(now, made, 100)).map(|()| made)
}

#[test]
fn ports_are_shared_as_on_linux() {
    let taken = Err(Errno::EADDRINUSE);
    for (first, second, may_bind, may_listen) in [
        (Alone, ReusePort, taken, taken),
        (ReusePort, Alone, taken, taken),
        (ReuseAddress, ReusePort, taken, taken),
        (ReusePort, ReuseAddress, taken, taken),
        (ReuseAddress, SctpReusePort, Ok(()), taken),
        (SctpReusePort, SctpReusePort, Ok(()), taken),
        (ReusePort, ReusePort, Ok(()), Ok(())),
        (ReusePortOf(7), ReusePortOf(7), Ok(()), Ok(())),
        (ReusePortOf(7), ReusePortOf(8), taken, taken),
    ] {
        let mut pair = Pair::new();
        let one = bound(&mut pair, first, SERVER).unwrap();
        let other = bound(&mut pair, second, SERVER);
        assert_eq!(other.map(drop), may_bind);
        let Ok(other) = other else { continue };
        pair.at(1, |stack, now| stack.listen(now, one, 1)).unwrap();
        assert_eq!(pair.at(1, |stack, now| stack.listen(now, other, 1)), may_listen);
        assert_eq!(bound(&mut pair, Alone, SERVER).map(drop), taken);
    }
}

#[test]
fn a_port_is_shared_at_the_same_addresses_or_at_none_of_them() {
    let mut pair = Pair::new();
    listening(&mut pair, ReusePort, SERVER).unwrap();
    listening(&mut pair, ReusePort, "0.0.0.0").unwrap();
    listening(&mut pair, ReusePort, LOOPBACK).unwrap();
    let both = bound(&mut pair, ReusePort, LOOPBACK).unwrap();
    let more = SocketName::new(format!("{SERVER}:{PORT}").parse().unwrap());
    pair.at(1, |stack, now| stack.bindx(now, both, more.as_bytes(), true)).unwrap();
    let outcome = pair.at(1, |stack, now| stack.listen(now, both, 1));
    assert_eq!(outcome, Err(Errno::EEXIST));
}

#[test]
fn sharing_can_be_enabled_and_disabled_later() {
    let mut pair = Pair::new();
    let on = |on: u32| on.to_ne_bytes();
    let one = listening(&mut pair, Alone, SERVER).unwrap();
    let mut set = |socket, value: u32| {
        let (level, name) = (level::SOL_SOCKET, so::SO_REUSEPORT);
        pair.at(1, |stack, now| stack.setsockopt(now, socket, level, name, &on(value))).unwrap();
    };
    set(one, 1);
    let other = bound(&mut pair, ReusePort, SERVER).unwrap();
    let (level, name) = (level::SOL_SOCKET, so::SO_REUSEPORT);
    pair.at(1, |stack, now| stack.setsockopt(now, other, level, name, &on(0))).unwrap();
    let outcome = pair.at(1, |stack, now| stack.listen(now, other, 1));
    assert_eq!(outcome, Err(Errno::EADDRINUSE));
}

/// Returns the number of connections that wait at a listener.
fn accepted(pair: &mut Pair, listener: SocketId) -> usize {
    let mut count = 0;
    while pair.at(1, |stack, now| stack.accept(now, listener)).is_ok() {
        count += 1;
    }
    count
}

fn connect(pair: &mut Pair, from: &str, count: usize) {
    for _ in 0..count {
        let client = pair.socket(0, socket::SOCK_STREAM);
        let own = SocketName::new(format!("{from}:0").parse().unwrap());
        pair.at(0, |stack, now| stack.bind(now, client, own.as_bytes())).unwrap();
        let name = SocketName::new(format!("{SERVER}:{PORT}").parse().unwrap());
        let id = pair.at(0, |stack, now| stack.connect(now, client, name.as_bytes())).unwrap();
        pair.run_one_second();
        assert_eq!(pair.at(0, |stack, now| stack.connect_result(now, client, id)), Ok(()));
    }
}

#[test]
fn listeners_share_the_connections() {
    for (count, connections) in [(2, 40), (4, 80)] {
        let mut pair = Pair::new();
        let listeners: Vec<_> =
            (0..count).map(|_| listening(&mut pair, ReusePort, SERVER).unwrap()).collect();
        connect(&mut pair, CLIENT, connections);
        let shares: Vec<_> = listeners.iter().map(|one| accepted(&mut pair, *one)).collect();
        assert_eq!(shares.iter().sum::<usize>(), connections);
        // A fair share is 20; all but one in 10,000 seeds give each more than 4.
        assert!(shares.iter().all(|share| *share > 4), "{shares:?}");
    }
}

#[test]
fn the_remaining_listeners_get_all_connections() {
    let mut pair = Pair::new();
    let first = listening(&mut pair, ReusePort, SERVER).unwrap();
    let second = listening(&mut pair, ReusePort, SERVER).unwrap();
    pair.at(1, |stack, now| stack.close(now, second));
    connect(&mut pair, CLIENT, 10);
    assert_eq!(accepted(&mut pair, first), 10);
}

#[test]
fn a_connection_that_no_program_received_is_accepted_again() {
    let mut pair = Pair::new();
    let (client, accepted, listener) = pair.connected(&[0; 14]);
    pair.send_message(0, client, b"hello").unwrap();
    pair.run_one_second();
    let give_back =
        |pair: &mut Pair, from, socket| pair.at(1, |stack, now| stack.unaccept(now, from, socket));
    assert_eq!(give_back(&mut pair, listener, listener), Err(Errno::EINVAL));
    assert_eq!(give_back(&mut pair, accepted, listener), Err(Errno::EINVAL));
    assert_eq!(give_back(&mut pair, listener, accepted), Ok(()));
    assert!(pair.poll(1, listener).has(POLLIN));
    assert_eq!(pair.receive_message(1, accepted, 10, 0).map(drop), Err(Errno::EBADF));
    let (again, _) = pair.at(1, |stack, now| stack.accept(now, listener)).unwrap();
    assert_eq!(pair.receive_message(1, again, 10, 0).unwrap().data, "hello");
    assert!(pair.at(1, |stack, now| stack.accept(now, listener)).is_err());
}

#[test]
fn one_to_many_sockets_share_a_port_as_well() {
    let mut pair = Pair::new();
    let mut sockets = Vec::new();
    for _ in 0..2 {
        let made = created(&mut pair, ReusePort, socket::SOCK_SEQPACKET);
        let name = SocketName::new(format!("{SERVER}:{PORT}").parse().unwrap());
        pair.at(1, |stack, now| stack.bind(now, made, name.as_bytes())).unwrap();
        pair.at(1, |stack, now| stack.listen(now, made, 1)).unwrap();
        sockets.push(made.0);
    }
    connect(&mut pair, CLIENT, 20);
    let status = pair.hosts[1].stack.status();
    for socket in sockets {
        let own = status.associations.iter().filter(|it| it.socket == Some(socket)).count();
        assert!((3..18).contains(&own), "{own} of 20");
    }
}
