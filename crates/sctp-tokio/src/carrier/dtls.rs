//! SCTP inside DTLS records inside UDP (RFC 8261): decrypted packets on this side, records on the
//! socket.
//!
//! A server accepts both kinds on one UDP port. Its wire for unencrypted SCTP reads the socket and
//! hands over the records, so the two never mix, and unencrypted packets are never mistaken for
//! protected ones. Each datagram is classified by its contents, because addresses can be forged: a
//! session and an unencrypted association with the same address never receive each other's packets.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use eyas_host::fault::{HostFault, SocketCall};
use eyas_sctp::io::{
    Ecn, Fragmentation, Input, Marking, PeerIdentity, Received, Transmit, Unreachable,
    is_packet_for,
};
use rustls_pki_types::CertificateDer;
use socket2::Socket;
use tokio::sync::Notify;

use super::udp::UdpCarrier;
use super::{Arrivals, ReceiveBuffers};
use crate::dtls::{
    DtlsIdentity, DtlsTrust, MAX_OVERHEAD, Outcome, Role, SessionPath, Sessions, State,
    looks_like_record,
};

/// The maximum number of trains of decrypted packets that wait to be read, and of their bytes; more
/// are lost, as on any path.
const MAX_INBOX: (usize, usize) = (1024, 8 << 20);
/// The maximum number of trains of records that wait for the socket; more are lost.
const MAX_OUTBOX: usize = 1024;
/// The maximum size of a train of records in bytes, and in records: what Linux accepts
/// (`UDP_MAX_SEGMENTS`).
const MAX_TRAIN: (usize, usize) = (64_000, 64);

/// The sessions of a socket, shared by the wire that reads it and the one that sends through it.
#[derive(Debug)]
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    /// Whether there is a session for each path.
    has_paths: bool,
    /// Notified when something was received, or a timer has changed.
    pub(super) arrived: Notify,
    /// Notified when the state of a session may have changed.
    changed: Notify,
}

#[derive(Debug)]
struct Inner {
    sessions: Sessions,
    inbox: VecDeque<Input>,
    inbox_bytes: usize,
    outbox: VecDeque<Train>,
    /// Whether a session ended because this host did not send its handshake, since that was last
    /// told to those who wait.
    has_fault: bool,
}

/// Records that leave together.
#[derive(Debug)]
struct Train {
    path: SessionPath,
    fragmentation: Fragmentation,
    contents: Bytes,
    segment_size: usize,
}

impl Shared {
    pub(super) fn new(role: Role) -> Arc<Self> {
        let has_paths = role.has_paths();
        let (inbox, outbox) = (VecDeque::new(), VecDeque::new());
        let sessions = Sessions::new(role);
        let inner = Inner { sessions, inbox, inbox_bytes: 0, outbox, has_fault: false };
        let (arrived, changed) = (Notify::new(), Notify::new());
        Arc::new(Self { inner: Mutex::new(inner), has_paths, arrived, changed })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses another certificate for the sessions that peers open from now on.
    pub(crate) fn replace_identity(&self, identity: DtlsIdentity) {
        self.lock().sessions.replace_identity(identity);
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().sessions.count()
    }

    /// Removes the records from `arrivals`. The rest is unencrypted, for the SCTP port `port`. No
    /// session begins at an address for which `is_unencrypted` returns true.
    pub(crate) fn divert(
        &self,
        arrivals: &mut Arrivals,
        port: Option<u16>,
        is_unencrypted: impl Fn(SocketAddr) -> bool,
    ) {
        let may_concern_dtls = |input: &Input| match input {
            Input::Packets(received) => {
                segments(received).any(|segment| looks_like_record(&segment))
            }
            input => matches!(input, Input::Unreachable { .. }),
        };
        if !arrivals.iter().any(may_concern_dtls) {
            return;
        }
        let mut inner = self.lock();
        for input in std::mem::take(arrivals) {
            if !may_concern_dtls(&input) {
                arrivals.push(input);
                continue;
            }
            match input {
                Input::Packets(received) => {
                    let (records, packets): (Vec<_>, Vec<_>) =
                        segments(&received).partition(|segment| is_record(segment, port));
                    inner
                        .handle_datagrams(&received, &records, || !is_unencrypted(received.remote));
                    arrivals
                        .extend(packets.into_iter().map(|packet| single_packet(&received, packet)));
                }
                input => {
                    // It may concern either: an unencrypted association checks the quoted packet.
                    inner.report(&input);
                    arrivals.push(input);
                }
            }
        }
        drop(inner);
        self.wake();
    }

    /// Handles everything that a socket without unencrypted traffic received.
    fn handle_arrivals(&self, arrivals: Arrivals) {
        let mut inner = self.lock();
        for input in arrivals {
            match input {
                Input::Packets(received) => {
                    let records: Vec<_> = segments(&received).collect();
                    inner.handle_datagrams(&received, &records, || true);
                }
                input => drop(inner.report(&input)),
            }
        }
        drop(inner);
        self.wake();
    }

    /// Wakes all waiters after something was received.
    fn wake(&self) {
        self.arrived.notify_one();
        self.changed.notify_waiters();
    }

    /// Changes the sessions, and has what they queue sent.
    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let result = change(&mut self.lock());
        self.arrived.notify_one();
        result
    }

    /// Opens a session with a server.
    pub(crate) fn open(
        &self,
        remote: SocketAddr,
        identity: &DtlsIdentity,
        trust: DtlsTrust,
        initial_rto: Option<Duration>,
    ) {
        self.change(|inner| {
            let out = inner.sessions.open(Instant::now(), remote, identity, trust, initial_rto);
            inner.queue(remote.into(), out, Fragmentation::Avoided);
        });
    }

    /// Opens the first session of an association with several paths.
    pub(crate) fn open_first(&self, path: SessionPath) {
        self.change(|inner| {
            let out = inner.sessions.open_path(Instant::now(), path, None);
            inner.queue(path, out, Fragmentation::Avoided);
        });
    }

    /// Waits until the handshake on this path has completed or failed.
    pub(crate) async fn handshake_ended(&self, path: impl Into<SessionPath>) -> State {
        self.state_other_than(path.into(), |state| *state == State::Handshake).await
    }

    /// Waits until the session of this path is over.
    pub(crate) async fn session_ended(&self, path: SessionPath) -> State {
        self.state_other_than(path, |state| !matches!(state, State::Over(_))).await
    }

    async fn state_other_than(&self, path: SessionPath, is_one: impl Fn(&State) -> bool) -> State {
        loop {
            let changed = self.changed.notified();
            let state = self.lock().sessions.state(path);
            if !is_one(&state) {
                return state;
            }
            changed.await;
        }
    }

    /// Returns the certificate of the peer at the other end of a path.
    pub(crate) fn certificate_on(&self, path: SessionPath) -> Option<CertificateDer<'static>> {
        self.lock().sessions.certificate_on(path).cloned()
    }

    /// Returns the certificate of a peer that has a session.
    pub(crate) fn certificate_of(&self, peer: PeerIdentity) -> Option<CertificateDer<'static>> {
        self.lock().sessions.certificate_of(peer).cloned()
    }

    /// Replaces the sessions with an address that does not respond when something is next sent to
    /// it.
    pub(super) fn renew(&self, remote: SocketAddr) {
        self.lock().sessions.renew(Instant::now(), remote);
    }

    /// Closes the sessions with an address that the peer no longer has.
    pub(super) fn close_to(&self, remote: SocketAddr) {
        self.change(|inner| {
            for (path, out) in inner.sessions.close_to(remote) {
                inner.queue(path, out, Fragmentation::Avoided);
            }
        });
    }

    /// Returns whether there is a session for each path.
    pub(super) fn has_paths(&self) -> bool {
        self.has_paths
    }

    /// Returns whether sessions are opened for each path.
    pub(super) fn opens_paths(&self) -> bool {
        self.lock().sessions.opens_paths()
    }

    /// Opens the session of a path if it is missing. Returns whether it is up.
    pub(super) fn open_missing(&self, path: SessionPath, peer: PeerIdentity) -> bool {
        self.change(|inner| {
            let out = inner.sessions.open_missing(Instant::now(), path, peer);
            inner.queue(path, out, Fragmentation::Avoided);
            matches!(inner.sessions.state(path), State::Up(_))
        })
    }
}

impl Inner {
    /// Handles datagrams of a session, or of a client that may open one.
    fn handle_datagrams(
        &mut self,
        from: &Received,
        datagrams: &[Bytes],
        may_open: impl Fn() -> bool,
    ) {
        let (now, path) = (Instant::now(), self.sessions.path(from.local, from.remote));
        let (mut packets, mut peer) = (Vec::new(), None);
        self.sessions.reserve(datagrams.iter().map(Bytes::len).sum());
        for datagram in datagrams {
            let mut out = self.sessions.handle_datagram(now, path, datagram, &may_open);
            if !out.packets.is_empty() && out.peer != peer {
                // A new session has replaced the one before.
                self.receive(from, peer, std::mem::take(&mut packets));
                peer = out.peer;
            }
            packets.append(&mut out.packets);
            self.queue(path, out, Fragmentation::Avoided);
        }
        self.sessions.reserve(0);
        self.receive(from, peer, packets);
    }

    /// Queues decrypted packets, in trains as if the kernel had joined them.
    fn receive(&mut self, from: &Received, peer: Option<PeerIdentity>, mut packets: Vec<BytesMut>) {
        packets.retain(|packet| !packet.is_empty());
        for (contents, segment_size) in trains(packets) {
            let is_full = self.inbox.len() >= MAX_INBOX.0 || self.inbox_bytes >= MAX_INBOX.1;
            if is_full {
                return;
            }
            self.inbox_bytes += contents.len();
            self.inbox.push_back(Input::Packets(Received {
                local: from.local,
                remote: from.remote,
                ecn: from.ecn,
                peer,
                contents,
                segment_size,
            }));
        }
    }

    /// Handles a report from the network, and returns whether it was about a session.
    fn report(&mut self, input: &Input) -> bool {
        match input {
            Input::Unreachable { remote, reason, .. } => {
                self.sessions.report(Instant::now(), *remote, *reason)
            }
            _ => false,
        }
    }

    fn queue(&mut self, path: SessionPath, out: Outcome, fragmentation: Fragmentation) {
        let room = MAX_OUTBOX.saturating_sub(self.outbox.len());
        let trains = trains(out.datagrams).take(room);
        self.outbox.extend(trains.map(|(contents, segment_size)| Train {
            path,
            fragmentation,
            contents,
            segment_size,
        }));
    }

    /// Sends queued records, in order, until the socket is full.
    fn flush(&mut self, udp: &UdpCarrier, socket: &Socket) -> io::Result<()> {
        while let Some(train) = self.outbox.front() {
            let transmit = Transmit {
                local: train.path.local,
                remote: train.path.remote,
                ecn: Ecn::NotCapable,
                marking: Marking::default(),
                fragmentation: train.fragmentation,
                contents: train.contents.clone(),
                segment_size: train.segment_size.max(1),
                peer: None,
            };
            match udp.send(socket, &transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(error)
                    if HostFault::from_error(&error, SocketCall::Send, Some(transmit.remote))
                        .is_some() =>
                {
                    tracing::debug!(remote = %transmit.remote, %error, "cannot send");
                    self.outbox.pop_front();
                    self.sessions.report(Instant::now(), transmit.remote, Unreachable::Local);
                    self.has_fault = true;
                }
                // Lost, as on any path: the handshake and SCTP retransmit.
                Ok(()) | Err(_) => drop(self.outbox.pop_front()),
            }
        }
        Ok(())
    }
}

/// Joins datagrams into trains of equal sizes, of which the last datagram may be shorter. Those that
/// adjoin each other in memory are not copied.
fn trains(datagrams: Vec<BytesMut>) -> impl Iterator<Item = (Bytes, usize)> {
    let mut datagrams = datagrams.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut train = datagrams.next()?;
        let (size, mut count, mut last) = (train.len(), 1, train.len());
        while let Some(next) = datagrams.next_if(|next| {
            last == size
                && next.len() <= size
                && count < MAX_TRAIN.1
                && train.len() + next.len() <= MAX_TRAIN.0
        }) {
            (last, count) = (next.len(), count + 1);
            train.unsplit(next);
        }
        Some((train.freeze(), size))
    })
}

/// Splits a train into its datagrams.
fn segments(received: &Received) -> impl Iterator<Item = Bytes> + use<> {
    let (contents, size) = (received.contents.clone(), received.segment_size.max(1));
    let starts = (0..contents.len()).step_by(size);
    starts.map(move |start| contents.slice(start..contents.len().min(start + size)))
}

/// Returns one of the packets of a train as an input.
fn single_packet(train: &Received, contents: Bytes) -> Input {
    Input::Packets(Received {
        local: train.local,
        remote: train.remote,
        ecn: train.ecn,
        peer: train.peer,
        segment_size: contents.len(),
        contents,
    })
}

/// Returns whether a datagram is a record rather than an SCTP packet for this port. One record in
/// 2⁴⁸ happens to have the port and a correct checksum where an SCTP packet has them. Unencrypted
/// packets always have a checksum: only those inside DTLS omit it (RFC 9653).
fn is_record(datagram: &[u8], port: Option<u16>) -> bool {
    looks_like_record(datagram) && !port.is_some_and(|port| is_packet_for(datagram, port))
}

/// Sends and receives the packets of a UDP socket in records.
#[derive(Debug)]
pub(super) struct DtlsCarrier {
    udp: UdpCarrier,
    shared: Arc<Shared>,
    /// Whether this carrier reads the socket, rather than the wire for unencrypted SCTP.
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
        // A record cannot be discarded once it is created, so make room first.
        inner.flush(&self.udp, socket)?;
        let packets = transmit.contents.chunks(transmit.segment_size.max(1));
        let overhead = packets.len() * usize::from(MAX_OVERHEAD);
        inner.sessions.reserve(transmit.contents.len() + overhead);
        let path = inner.sessions.path(transmit.local, transmit.remote);
        let (path, out) = inner.sessions.send_to(Instant::now(), path, transmit.peer, packets);
        inner.sessions.reserve(0);
        inner.queue(path, out, transmit.fragmentation);
        // What the socket does not accept now is sent before the next packet.
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
        // Datagrams without a session are dropped: no unencrypted packets are expected here.
        self.shared.handle_arrivals(datagrams);
        self.drain_inbox(socket, arrivals);
        received
    }

    /// Removes the ICMP reports that concern a session. Packets are already decrypted and stay.
    pub(super) fn handle_reports(&self, arrivals: &mut Arrivals) {
        let mut inner = self.shared.lock();
        arrivals.retain(|input| !inner.report(input));
        drop(inner);
        self.shared.changed.notify_waiters();
    }

    /// Returns the decrypted packets, and sends queued records.
    pub(super) fn drain_inbox(&self, socket: &Socket, arrivals: &mut Arrivals) {
        let mut inner = self.shared.lock();
        arrivals.extend(inner.inbox.drain(..));
        inner.inbox_bytes = 0;
        // If the socket is full, the next send reports it.
        let _ = inner.flush(&self.udp, socket);
        let has_fault = std::mem::take(&mut inner.has_fault);
        drop(inner);
        if has_fault {
            self.shared.changed.notify_waiters();
        }
    }

    /// Returns whether there is a session for these packets, or will be.
    pub(super) fn can_send(&self, transmit: &Transmit) -> bool {
        let inner = self.shared.lock();
        let path = inner.sessions.path(transmit.local, transmit.remote);
        inner.sessions.can_send(path, transmit.peer)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.shared.lock().sessions.next_timeout()
    }

    pub(super) fn handle_timeout(&self, socket: &Socket, now: Instant) {
        let mut inner = self.shared.lock();
        if inner.sessions.next_timeout().is_none_or(|time| time > now) {
            return;
        }
        for (path, out) in inner.sessions.handle_timeout(now) {
            inner.queue(path, out, Fragmentation::Avoided);
        }
        let _ = inner.flush(&self.udp, socket);
        drop(inner);
        self.shared.changed.notify_waiters();
    }

    /// Sends close_notify to every peer.
    pub(super) fn close(&self, socket: &Socket) {
        let mut inner = self.shared.lock();
        for (path, out) in inner.sessions.close_all() {
            inner.queue(path, out, Fragmentation::Avoided);
        }
        let _ = inner.flush(&self.udp, socket);
    }
}
