//! Two stacks connected by a simulated wire, in virtual time.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use eyas_sockets::abi::number::{level, option, socket};
use eyas_sockets::io::{Received, Transmit};
use eyas_sockets::{
    Errno, PollReadiness, ReceiveResult, SendRequest, SendResult, SocketId, SocketName, Stack,
    StackConfig, StackInput, StackOutput,
};

/// The delay of a packet.
const DELAY: Duration = Duration::from_millis(1);
/// The maximum number of steps of one wait; more indicate an endless loop.
const MAX_STEPS: usize = 200_000;

pub(crate) const CLIENT: &str = "10.0.0.1";
pub(crate) const SERVER: &str = "10.0.0.2";

/// A host: its stack, and the outputs of the stack.
pub(crate) struct Host {
    pub(crate) stack: Stack,
    pub(crate) outputs: Vec<StackOutput>,
    due: Option<Duration>,
}

/// Both hosts; 0 is the client.
pub(crate) struct Pair {
    pub(crate) now: Duration,
    pub(crate) hosts: [Host; 2],
    wire: VecDeque<(Duration, usize, Received)>,
    /// Whether packets are lost.
    pub(crate) is_cut: bool,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let host = |address: &str, seed: u8| {
            let loopback: IpAddr = "127.0.0.1".parse().unwrap();
            let addresses = vec![address.parse().unwrap(), loopback];
            let config = StackConfig { addresses, ..StackConfig::default() };
            let stack = Stack::new(config, [seed; 32], Duration::ZERO);
            Host { stack, outputs: Vec::new(), due: None }
        };
        let hosts = [host(CLIENT, 1), host(SERVER, 2)];
        Self { now: Duration::ZERO, hosts, wire: VecDeque::new(), is_cut: false }
    }

    /// Makes a call at one of the hosts, and processes its immediate outputs.
    pub(crate) fn at<T>(&mut self, host: usize, call: impl FnOnce(&mut Stack, Duration) -> T) -> T {
        let outcome = call(&mut self.hosts[host].stack, self.now);
        self.drain(host);
        outcome
    }

    fn drain(&mut self, host: usize) {
        for _ in 0..MAX_STEPS {
            match self.hosts[host].stack.poll_output(self.now) {
                StackOutput::Transmit(transmit) if !self.is_cut => self.transmit(host, transmit),
                StackOutput::Transmit(_) => {}
                StackOutput::Timeout(due) => {
                    self.hosts[host].due = due;
                    return;
                }
                other => self.hosts[host].outputs.push(other),
            }
        }
        panic!("the outputs of a stack never end");
    }

    fn transmit(&mut self, host: usize, transmit: Transmit) {
        let own: IpAddr = if host == 0 { CLIENT } else { SERVER }.parse().unwrap();
        let to_itself = transmit.remote.ip() == own || transmit.remote.ip().is_loopback();
        let from = if transmit.remote.ip().is_loopback() { transmit.remote.ip() } else { own };
        let received = Received {
            local: Some(transmit.remote.ip()),
            remote: SocketAddr::new(transmit.local.unwrap_or(from), 9899),
            ecn: transmit.ecn,
            peer: None,
            contents: transmit.contents,
            segment_size: transmit.segment_size,
        };
        let to = if to_itself { host } else { 1 - host };
        self.wire.push_back((self.now + DELAY, to, received));
    }

    /// Advances time until `duration` is over or nothing is due.
    pub(crate) fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        for _ in 0..MAX_STEPS {
            let arrival = self.wire.front().map(|(at, ..)| *at);
            let timers = self.hosts.iter().filter_map(|host| host.due);
            let Some(next) = timers.chain(arrival).min().filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            while let Some((at, ..)) = self.wire.front()
                && *at <= self.now
            {
                let (_, to, received) = self.wire.pop_front().unwrap();
                self.at(to, |stack, now| stack.handle_input(now, StackInput::Packets(received)));
            }
            for host in 0..2 {
                if self.hosts[host].due.is_some_and(|due| due <= self.now) {
                    self.at(host, |stack, now| stack.handle_input(now, StackInput::Tick));
                }
            }
        }
        panic!("time does not advance");
    }

    pub(crate) fn run_one_second(&mut self) {
        self.run(Duration::from_secs(1));
    }

    /// Returns the port of a socket; 0 if it has none yet.
    pub(crate) fn assigned_port(&self, host: usize, socket: SocketId) -> u16 {
        let name = self.hosts[host].stack.getsockname(socket).unwrap();
        u16::from_be_bytes([name.as_bytes()[2], name.as_bytes()[3]])
    }

    pub(crate) fn socket(&mut self, host: usize, kind: i32) -> SocketId {
        let created = self.at(host, |stack, _| stack.socket(socket::AF_INET, kind, 132)).unwrap();
        // Nagle's algorithm would only slow the tests down.
        self.set(host, created, option::SCTP_NODELAY, &1u32.to_ne_bytes()).unwrap();
        created
    }

    pub(crate) fn set(
        &mut self,
        host: usize,
        socket: SocketId,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        self.at(host, |stack, now| stack.setsockopt(now, socket, level::SOL_SCTP, name, value))
    }

    pub(crate) fn get(
        &mut self,
        host: usize,
        socket: SocketId,
        name: i32,
        value: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        self.at(host, |stack, now| stack.getsockopt(now, socket, level::SOL_SCTP, name, value))
    }

    /// Returns a socket of this type that listens at the server.
    pub(crate) fn listener(&mut self, kind: i32, port: u16, backlog: i32) -> SocketId {
        let created = self.socket(1, kind);
        let name = name(&format!("0.0.0.0:{port}"));
        self.at(1, |stack, now| stack.bind(now, created, name.as_bytes())).unwrap();
        self.at(1, |stack, now| stack.listen(now, created, backlog)).unwrap();
        created
    }

    /// Returns a connected pair of one-to-one sockets: that of the client, that of the server, and
    /// the listener.
    pub(crate) fn connected(&mut self, events: &[u8]) -> (SocketId, SocketId, SocketId) {
        let listener = self.listener(socket::SOCK_STREAM, 5000, 5);
        let client = self.socket(0, socket::SOCK_STREAM);
        self.set(1, listener, option::SCTP_EVENTS, events).unwrap();
        self.set(0, client, option::SCTP_EVENTS, events).unwrap();
        let to = name(&format!("{SERVER}:5000"));
        self.at(0, |stack, now| stack.connect(now, client, to.as_bytes())).unwrap();
        self.run_one_second();
        let (server, _) = self.at(1, |stack, now| stack.accept(now, listener)).unwrap();
        (client, server, listener)
    }

    pub(crate) fn send_message(
        &mut self,
        host: usize,
        socket: SocketId,
        data: &[u8],
    ) -> Result<SendResult, Errno> {
        let data = Bytes::copy_from_slice(data);
        self.at(host, |stack, now| {
            stack.send(now, socket, SendRequest { data, ..SendRequest::default() })
        })
    }

    pub(crate) fn send_message_to(
        &mut self,
        host: usize,
        socket: SocketId,
        to: &str,
        data: &[u8],
    ) -> Result<SendResult, Errno> {
        let (data, to) = (Bytes::copy_from_slice(data), name(to));
        let message = SendRequest { data, name: to.as_bytes(), ..SendRequest::default() };
        self.at(host, |stack, now| stack.send(now, socket, message))
    }

    pub(crate) fn receive_message(
        &mut self,
        host: usize,
        socket: SocketId,
        room: usize,
        flags: i32,
    ) -> Result<ReceiveResult, Errno> {
        self.at(host, |stack, now| stack.receive(now, socket, room, flags))
    }

    pub(crate) fn poll(&self, host: usize, socket: SocketId) -> PollReadiness {
        self.hosts[host].stack.readiness(socket)
    }
}

pub(crate) fn name(address: &str) -> SocketName {
    SocketName::new(address.parse().unwrap())
}
