//! One end on a UDP socket: one system call for each packet, as the stack's own examples do.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

use crate::command::{Answer, Failure, Start};
use crate::end::{End, PACKET, WINDOW};

/// Packets that are read before what they caused is sent.
const BATCH: usize = 64;
/// How long the receiver stays for what is still to be acknowledged.
const LINGER: Duration = Duration::from_millis(500);
/// The longest wait.
const IDLE: Duration = Duration::from_millis(100);

struct Carrier<E> {
    end: E,
    socket: UdpSocket,
    peer: Option<SocketAddr>,
    packets: VecDeque<Bytes>,
    buffer: Vec<u8>,
}

fn socket(local: SocketAddr) -> Result<UdpSocket, Failure> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, None)?;
    socket.set_recv_buffer_size(WINDOW)?;
    socket.set_send_buffer_size(WINDOW)?;
    socket.set_nonblocking(true)?;
    socket.bind(&local.into())?;
    Ok(socket.into())
}

impl<E: End> Carrier<E> {
    fn new(end: E, socket: UdpSocket) -> Self {
        Self { end, socket, peer: None, packets: VecDeque::new(), buffer: vec![0; PACKET + 1] }
    }

    /// Reads, lets the end answer, writes; whether there was something to do.
    fn turn(&mut self) -> Result<bool, Failure> {
        let now = Instant::now();
        let mut moved = false;
        for _ in 0..BATCH {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((length, from)) => {
                    if self.peer.is_none() {
                        self.socket.connect(from)?;
                        self.peer = Some(from);
                    }
                    self.end.handle(now, Bytes::copy_from_slice(&self.buffer[..length]));
                    moved = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.end.tick(now);
        self.end.transmit(now, &mut self.packets);
        while let Some(packet) = self.packets.front() {
            match self.socket.send(packet) {
                Ok(_) => moved = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
            self.packets.pop_front();
        }
        Ok(moved)
    }

    /// Until the socket can be read, or a timer is due.
    fn wait(&self) -> Result<(), Failure> {
        let due = self.end.timeout().map_or(IDLE, |at| at.saturating_duration_since(Instant::now()));
        let wanted = if self.packets.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let mut sockets = [PollFd::new(&self.socket, wanted)];
        poll(&mut sockets, Some(&Timespec::try_from(due.min(IDLE))?))?;
        Ok(())
    }
}

/// Waits for an association and takes its messages.
pub fn receive<E: End>(address: SocketAddr, size: usize, bytes: u64) -> Result<Answer, Failure> {
    let mut carrier = Carrier::new(E::server(Instant::now()), socket(address)?);
    println!("ready");
    let count = bytes.div_ceil(size as u64);
    let mut start = Start::now();
    let mut received = 0;
    let mut answer = None;
    let mut over = None;
    while over.is_none_or(|over| Instant::now() < over) {
        let moved = carrier.turn()?;
        while let Some(length) = carrier.end.receive() {
            if length != size {
                return Err(format!("a message of {length} bytes").into());
            }
            if received == 0 {
                start = Start::now();
            }
            received += 1;
        }
        if received == count && answer.is_none() {
            answer = Some(start.answer(count, count * size as u64));
            over = Some(Instant::now() + LINGER);
        }
        if !moved {
            carrier.wait()?;
        }
    }
    answer.ok_or_else(|| "nothing came".into())
}

/// Opens an association and sends messages until all are acknowledged.
pub fn send<E: End>(address: SocketAddr, size: usize, bytes: u64) -> Result<Answer, Failure> {
    let local = if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let mut carrier = Carrier::new(E::client(Instant::now()), socket(local.parse()?)?);
    carrier.socket.connect(address)?;
    carrier.peer = Some(address);
    while !carrier.end.is_up() {
        if !carrier.turn()? {
            carrier.wait()?;
        }
    }
    let message = Bytes::from(vec![0x5a; size]);
    let count = bytes.div_ceil(size as u64);
    let start = Start::now();
    let mut sent = 0;
    while sent < count || !carrier.end.is_dry() {
        let now = Instant::now();
        while sent < count && carrier.end.send(now, &message) {
            sent += 1;
        }
        if !carrier.turn()? {
            carrier.wait()?;
        }
    }
    Ok(start.answer(count, count * size as u64))
}
