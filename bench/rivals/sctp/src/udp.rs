//! One end on a UDP socket, with one system call per packet, like the stacks' own examples.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

use crate::command::{Failure, Measurement, Start};
use crate::end::{End, PACKET, WINDOW};

/// The maximum number of packets to read before sending.
const BATCH: usize = 64;
/// How long the receiver stays, so that it can acknowledge the last data.
const LINGER: Duration = Duration::from_millis(500);
/// The maximum time to wait.
const IDLE: Duration = Duration::from_millis(100);

struct Driver<E> {
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

impl<E: End> Driver<E> {
    fn new(end: E, socket: UdpSocket) -> Self {
        Self { end, socket, peer: None, packets: VecDeque::new(), buffer: vec![0; PACKET + 1] }
    }

    /// Reads packets, handles them, and sends packets; returns whether there were any.
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

    /// Waits until the socket is readable, or a timer expires.
    fn wait(&self) -> Result<(), Failure> {
        let due =
            self.end.timeout().map_or(IDLE, |at| at.saturating_duration_since(Instant::now()));
        let events =
            if self.packets.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let mut sockets = [PollFd::new(&self.socket, events)];
        poll(&mut sockets, Some(&Timespec::try_from(due.min(IDLE))?))?;
        Ok(())
    }
}

/// Waits for an association and receives its messages.
pub fn receive<E: End>(
    address: SocketAddr,
    size: usize,
    bytes: u64,
) -> Result<Measurement, Failure> {
    let mut driver = Driver::new(E::server(Instant::now()), socket(address)?);
    println!("ready");
    let count = bytes.div_ceil(size as u64);
    let mut start = Start::now();
    let mut received = 0;
    let mut measurement = None;
    let mut deadline = None;
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let moved = driver.turn()?;
        while let Some(length) = driver.end.receive() {
            if length != size {
                return Err(format!("unexpected message of {length} bytes").into());
            }
            if received == 0 {
                start = Start::now();
            }
            received += 1;
        }
        if received == count && measurement.is_none() {
            measurement = Some(start.finish(count, count * size as u64));
            deadline = Some(Instant::now() + LINGER);
        }
        if !moved {
            driver.wait()?;
        }
    }
    measurement.ok_or_else(|| "no messages arrived".into())
}

/// Opens an association and sends messages until all are acknowledged.
pub fn send<E: End>(address: SocketAddr, size: usize, bytes: u64) -> Result<Measurement, Failure> {
    let local = if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let mut driver = Driver::new(E::client(Instant::now()), socket(local.parse()?)?);
    driver.socket.connect(address)?;
    driver.peer = Some(address);
    while !driver.end.is_established() {
        if !driver.turn()? {
            driver.wait()?;
        }
    }
    let message = Bytes::from(vec![0x5a; size]);
    let count = bytes.div_ceil(size as u64);
    let start = Start::now();
    let mut sent = 0;
    while sent < count || !driver.end.is_dry() {
        let now = Instant::now();
        while sent < count && driver.end.send(now, &message) {
            sent += 1;
        }
        if !driver.turn()? {
            driver.wait()?;
        }
    }
    Ok(start.finish(count, count * size as u64))
}
