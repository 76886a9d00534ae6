//! SCTP inside DTLS records inside UDP (RFC 8261): clear packets on this side, records on the
//! socket.
//!
//! A server accepts both kinds on one UDP port. Its wire for clear SCTP reads the socket and hands
//! over what is a record, so the two never mix, and clear packets are never mistaken for protected
//! ones. Each datagram is judged by its contents, because addresses can be forged: a session at an
//! address takes nothing from a clear association there, nor the other way round.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas_sctp::io::{Ecn, Fragmentation, Input, Received, Transmit, is_packet_for};
use socket2::Socket;
use tokio::sync::Notify;

use super::udp::UdpCarrier;
use super::{Arrivals, ReceiveBuffers};
use crate::sctp::dtls::{Identity, Outcome, Role, Sessions, State, Trust, looks_like_record};

/// Packets taken out of records that nobody has read yet; more are lost, as on any path.
const MAX_INBOX: usize = 1024;
/// Records that the socket did not take yet; more are lost.
const MAX_OUTBOX: usize = 1024;

/// The sessions of a socket, shared by those that read it and those that send through it.
#[derive(Debug)]
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    /// Something came in, or a timer has moved.
    pub(super) arrived: Notify,
    /// A session came further.
    changed: Notify,
}

#[derive(Debug)]
struct Inner {
    sessions: Sessions,
    inbox: VecDeque<Input>,
    outbox: VecDeque<(SocketAddr, Bytes, Fragmentation)>,
}

impl Shared {
    pub(super) fn new(role: Role) -> Arc<Self> {
        let (inbox, outbox) = (VecDeque::new(), VecDeque::new());
        let inner = Inner { sessions: Sessions::new(role), inbox, outbox };
        let (arrived, changed) = (Notify::new(), Notify::new());
        Arc::new(Self { inner: Mutex::new(inner), arrived, changed })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().sessions.count()
    }

    /// Takes the records out of `arrivals`. What is left is in clear, for the SCTP port `port`. No
    /// session begins with who `is_in_clear`.
    pub(crate) fn divert(
        &self,
        arrivals: &mut Arrivals,
        port: Option<u16>,
        is_in_clear: impl Fn(SocketAddr) -> bool,
    ) {
        let can_be_for_here = |input: &Input| match input {
            Input::Packets(received) => segments(received).any(|one| looks_like_record(&one)),
            input => matches!(input, Input::Unreachable { .. }),
        };
        if !arrivals.iter().any(can_be_for_here) {
            return;
        }
        let mut inner = self.lock();
        for input in std::mem::take(arrivals) {
            if !can_be_for_here(&input) {
                arrivals.push(input);
                continue;
            }
            match input {
                Input::Packets(received) => {
                    let (records, clear): (Vec<_>, Vec<_>) =
                        segments(&received).partition(|one| is_record(one, port));
                    inner.handle(&received, &records, || !is_in_clear(received.remote));
                    arrivals.extend(clear.into_iter().map(|one| alone(&received, one)));
                }
                input => {
                    // It may be about either: the association in clear looks at what is quoted.
                    inner.report(&input);
                    arrivals.push(input);
                }
            }
        }
        drop(inner);
        self.wake();
    }

    /// Takes in all of what came in at a socket where nothing is in clear.
    fn handle(&self, arrivals: Arrivals) {
        let mut inner = self.lock();
        for input in arrivals {
            match input {
                Input::Packets(received) => {
                    let records: Vec<_> = segments(&received).collect();
                    inner.handle(&received, &records, || true);
                }
                input => drop(inner.report(&input)),
            }
        }
        drop(inner);
        self.wake();
    }

    /// Wakes those that wait, for something came in.
    fn wake(&self) {
        self.arrived.notify_one();
        self.changed.notify_waiters();
    }

    /// Opens a session with a server.
    pub(crate) fn open(
        &self,
        remote: SocketAddr,
        own: &Identity,
        trust: Trust,
        initial_rto: Option<Duration>,
    ) {
        let mut inner = self.lock();
        let out = inner.sessions.open(Instant::now(), remote, own, trust, initial_rto);
        inner.take_out(remote, out, Fragmentation::Avoided);
        drop(inner);
        self.arrived.notify_one();
    }

    /// Waits until the handshake with this peer is over, one way or the other.
    pub(crate) async fn handshaken(&self, remote: SocketAddr) -> State {
        loop {
            let changed = self.changed.notified();
            match self.lock().sessions.state(remote) {
                State::Handshake => {}
                state => return state,
            }
            changed.await;
        }
    }
}

impl Inner {
    /// Takes in datagrams, of a session or of somebody who may open one.
    fn handle(&mut self, from: &Received, datagrams: &[Bytes], may_open: impl Fn() -> bool) {
        let (now, remote) = (Instant::now(), from.remote);
        for datagram in datagrams {
            let out = self.sessions.handle_datagram(now, remote, datagram, &may_open);
            let room = MAX_INBOX.saturating_sub(self.inbox.len());
            let packets = out.packets.iter().filter(|packet| !packet.is_empty()).take(room);
            self.inbox.extend(packets.map(|packet| alone(from, packet.clone())));
            self.take_out(remote, out, Fragmentation::Avoided);
        }
    }

    /// Handles a report from the network, and returns whether it was about a session.
    fn report(&mut self, input: &Input) -> bool {
        match input {
            Input::Unreachable { remote, reason, .. } => self.sessions.report(*remote, *reason),
            _ => false,
        }
    }

    fn take_out(&mut self, remote: SocketAddr, out: Outcome, fragmentation: Fragmentation) {
        let room = MAX_OUTBOX.saturating_sub(self.outbox.len());
        let datagrams = out.datagrams.into_iter().take(room);
        self.outbox.extend(datagrams.map(|one| (remote, one, fragmentation)));
    }

    /// Sends what waits, in order, until the socket is full.
    fn flush(&mut self, udp: &UdpCarrier, socket: &Socket) -> io::Result<()> {
        while let Some((remote, datagram, fragmentation)) = self.outbox.front() {
            let transmit = Transmit {
                local: None,
                remote: *remote,
                ecn: Ecn::NotCapable,
                fragmentation: *fragmentation,
                contents: datagram.clone(),
                segment_size: datagram.len().max(1),
            };
            match udp.send(socket, &transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                // Lost, as on any path: the handshake and SCTP repeat themselves.
                Ok(()) | Err(_) => drop(self.outbox.pop_front()),
            }
        }
        Ok(())
    }
}

/// Returns the datagrams of a train.
fn segments(received: &Received) -> impl Iterator<Item = Bytes> + use<> {
    let (contents, size) = (received.contents.clone(), received.segment_size.max(1));
    let starts = (0..contents.len()).step_by(size);
    starts.map(move |start| contents.slice(start..contents.len().min(start + size)))
}

/// Returns one of the packets of a train.
fn alone(train: &Received, contents: Bytes) -> Input {
    Input::Packets(Received {
        local: train.local,
        remote: train.remote,
        ecn: train.ecn,
        segment_size: contents.len(),
        contents,
    })
}

/// Returns whether a datagram is a record rather than an SCTP packet for this port. Of records, one
/// in 2⁴⁸ names the port and has a correct checksum where SCTP has its own. Unencrypted packets
/// always have one: only those inside DTLS omit it (RFC 9653).
fn is_record(datagram: &[u8], port: Option<u16>) -> bool {
    looks_like_record(datagram) && !port.is_some_and(|port| is_packet_for(datagram, port))
}

/// One end of a UDP socket whose packets travel in records.
#[derive(Debug)]
pub(super) struct DtlsCarrier {
    udp: UdpCarrier,
    shared: Arc<Shared>,
    /// Whether nobody else reads the socket.
    reads: bool,
}

impl DtlsCarrier {
    pub(super) fn new(udp: UdpCarrier, shared: Arc<Shared>, reads: bool) -> Self {
        Self { udp, shared, reads }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn reads(&self) -> bool {
        self.reads
    }

    pub(super) fn send(&self, socket: &Socket, transmit: &Transmit) -> io::Result<()> {
        let mut inner = self.shared.lock();
        // A record once made cannot be taken back: there must be room first.
        inner.flush(&self.udp, socket)?;
        let packets = transmit.contents.chunks(transmit.segment_size.max(1));
        let out = inner.sessions.send(Instant::now(), transmit.remote, packets);
        inner.take_out(transmit.remote, out, transmit.fragmentation);
        // What the socket does not take now goes before the next packet.
        let _ = inner.flush(&self.udp, socket);
        Ok(())
    }

    /// Reads the socket, if it is this wire's own.
    pub(super) fn receive(
        &self,
        socket: &Socket,
        buffers: &mut ReceiveBuffers,
        arrivals: &mut Arrivals,
    ) -> io::Result<()> {
        let mut datagrams = Arrivals::new();
        let received = self.udp.receive(socket, buffers, &mut datagrams);
        // What belongs to no session is nobody's: in clear nothing is taken in here.
        self.shared.handle(datagrams);
        self.take_inbox(socket, arrivals);
        received
    }

    /// Reads the socket's error queue, which may concern a handshake. Packets are already decrypted
    /// and stay.
    pub(super) fn take_reports(&self, arrivals: &mut Arrivals) {
        let mut inner = self.shared.lock();
        arrivals.retain(|input| !inner.report(input));
        drop(inner);
        self.shared.changed.notify_waiters();
    }

    /// Takes out what came in, and sends what is to be sent.
    pub(super) fn take_inbox(&self, socket: &Socket, arrivals: &mut Arrivals) {
        let mut inner = self.shared.lock();
        arrivals.extend(inner.inbox.drain(..));
        // A full socket says so again when there is something to send.
        let _ = inner.flush(&self.udp, socket);
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.shared.lock().sessions.next_timeout()
    }

    pub(super) fn handle_timeout(&self, socket: &Socket, now: Instant) {
        let mut inner = self.shared.lock();
        if inner.sessions.next_timeout().is_none_or(|time| time > now) {
            return;
        }
        for (remote, out) in inner.sessions.handle_timeout(now) {
            inner.take_out(remote, out, Fragmentation::Avoided);
        }
        let _ = inner.flush(&self.udp, socket);
        drop(inner);
        self.shared.changed.notify_waiters();
    }

    /// Says goodbye to every peer.
    pub(super) fn close(&self, socket: &Socket) {
        let mut inner = self.shared.lock();
        for (remote, out) in inner.sessions.close_all() {
            inner.take_out(remote, out, Fragmentation::Avoided);
        }
        let _ = inner.flush(&self.udp, socket);
    }
}
