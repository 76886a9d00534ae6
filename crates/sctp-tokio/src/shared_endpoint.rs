//! One protocol endpoint, shared by the task that moves its packets and by its associations.
//!
//! A caller holds the lock only for its own call and then wakes the task, which takes what is ready
//! to be sent. So data that several callers send at the same time shares packets.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas_sctp::config::{ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::{Endpoint, Status};
use eyas_sctp::event::{Event, LossReason, PathChange};
use eyas_sctp::identifier::AssociationId;
use eyas_sctp::io::{Input, Output, Transmit};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::Notify;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::SctpError;
use super::carrier::{Arrivals, Wire};
use super::ports::Ports;
use super::slot::{Slot, Stage, Wakers};

/// The maximum number of trains that wait to be sent; the protocol keeps the rest.
pub(super) const MAX_OUTBOX: usize = 64;
/// The maximum number of incoming associations not accepted yet; more are aborted.
const MAX_BACKLOG: usize = 1024;

/// A protocol endpoint with its sockets.
#[derive(Debug)]
pub(super) struct SharedEndpoint {
    state: Mutex<State>,
    /// Wakes the task when there is something to do.
    pub(super) wake: Notify,
    start: Instant,
    pub(super) wires: Vec<Wire>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) endpoint: Endpoint,
    pub(super) slots: HashMap<AssociationId, Slot>,
    ports: Ports,
    backlog: VecDeque<AssociationId>,
    accepting: Wakers,
    /// Associations whose watchers wait until more of a stream has been sent.
    sending: Vec<AssociationId>,
    /// The changes of paths that the task has not seen yet.
    path_changes: Vec<(SocketAddr, PathChange)>,
    /// Whether associations can still be opened or accepted.
    has_handle: bool,
    /// The number of endpoints whose packets arrive at the sockets of this one.
    dependents: usize,
    /// Whether the task has ended, and with it the sockets.
    is_over: bool,
}

/// What to do after the outputs were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The outbox is full; there may be more.
    Full,
    /// Nothing is due before this time.
    Wait(Option<Duration>),
    /// The endpoint is no longer needed.
    Over,
}

/// Keeps an endpoint open for new associations; once it is dropped, the endpoint ends with the last
/// association.
#[derive(Debug)]
pub(super) struct EndpointHandle(pub(super) Arc<SharedEndpoint>);

impl Drop for EndpointHandle {
    fn drop(&mut self) {
        self.0.lock().has_handle = false;
        self.0.wake.notify_one();
    }
}

/// Keeps an endpoint alive for another one whose packets arrive at its sockets, but not open for
/// new associations.
#[derive(Debug)]
pub(super) struct ReaderGuard(Arc<SharedEndpoint>);

impl ReaderGuard {
    pub(super) fn new(handle: &EndpointHandle) -> Self {
        handle.0.lock().dependents += 1;
        Self(Arc::clone(&handle.0))
    }
}

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        self.0.lock().dependents -= 1;
        self.0.wake.notify_one();
    }
}

impl SharedEndpoint {
    /// Creates an endpoint without a task.
    pub(super) fn new(config: EndpointConfig, wires: Vec<Wire>) -> io::Result<Self> {
        let ports = Ports::new(config.listen_port);
        let endpoint = Endpoint::new(config, seed()?, Duration::ZERO);
        let state = State {
            endpoint,
            slots: HashMap::new(),
            ports,
            backlog: VecDeque::new(),
            accepting: Wakers::default(),
            sending: Vec::new(),
            path_changes: Vec::new(),
            has_handle: true,
            dependents: 0,
            is_over: false,
        };
        let (wake, start) = (Notify::new(), Instant::now());
        Ok(Self { state: Mutex::new(state), wake, start, wires })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the endpoint's time.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Converts an endpoint's time to an instant.
    pub(super) fn instant(&self, time: Duration) -> Instant {
        self.start.checked_add(time).unwrap_or(self.start)
    }

    /// Passes DTLS records among the datagrams received on this wire to their sessions.
    pub(super) fn divert(&self, wire: usize, arrivals: &mut Arrivals) {
        if let Some(sessions) = self.wires[wire].dtls_sessions() {
            let port = self.lock().endpoint.config().listen_port;
            sessions.divert(arrivals, port, |remote| self.lock().endpoint.has_path_to(remote));
        }
    }

    /// Adapts the sessions below to a path that has failed or is gone.
    pub(super) fn follow(&self, (remote, change): (SocketAddr, PathChange)) {
        match change {
            PathChange::Inactive => self.wires.iter().for_each(|wire| wire.renew_sessions(remote)),
            PathChange::Removed if !self.lock().endpoint.has_path_to(remote) => {
                self.wires.iter().for_each(|wire| wire.close_sessions(remote));
            }
            _ => {}
        }
    }

    /// Returns the current state of all associations.
    pub(super) fn statuses(&self) -> Vec<Status> {
        let state = self.lock();
        let ids = state.endpoint.associations();
        ids.into_iter().filter_map(|id| state.endpoint.status(id)).collect()
    }

    /// Calls the protocol, and sends the resulting packets.
    pub(super) fn call<T>(&self, action: impl FnOnce(&mut Endpoint, Duration) -> T) -> T {
        let result = action(&mut self.lock().endpoint, self.now());
        self.wake.notify_one();
        result
    }

    /// Opens an association; `opened` is dropped when it ends.
    pub(super) fn connect(
        &self,
        mut options: ConnectOptions,
        opened: TaskTrackerToken,
    ) -> Result<AssociationId, SctpError> {
        let mut state = self.lock();
        if state.is_over {
            return Err(SctpError::Closed);
        }
        if options.local_port == 0 {
            options.local_port = self.local_port_for(&state, &options);
        }
        let id = state.endpoint.connect(self.now(), &options)?;
        let mut slot = Slot::new(Stage::Opening);
        slot.opened = Some(opened);
        if let Some(status) = state.endpoint.status(id) {
            slot.ports = Some((status.local_port, status.remote_port));
            state.ports.add(status.local_port, status.remote_port);
        }
        state.slots.insert(id, slot);
        drop(state);
        self.wake.notify_one();
        Ok(id)
    }

    /// Returns our SCTP port for a peer with UDP encapsulation: the number of our UDP port, which
    /// no other program on this host can use. If we already use it for this peer, returns 0, which
    /// leaves the choice to the protocol. Two programs with the same port would look like one that
    /// restarted (RFC 9260 §5.2), because the peer identifies associations only by addresses and
    /// SCTP ports (RFC 6951 §5.4).
    fn local_port_for(&self, state: &State, options: &ConnectOptions) -> u16 {
        let Some(remote) = options.remotes.first().copied() else { return 0 };
        let wire = self.wires.iter().find(|wire| wire.can_reach(remote));
        let port = wire.map_or(0, |wire| wire.local().port());
        if state.ports.is_used(port, options.remote_port) { 0 } else { port }
    }

    /// Returns the next association opened by a peer.
    pub(super) fn poll_accept(&self, cx: &mut std::task::Context<'_>) -> Option<AssociationId> {
        let mut state = self.lock();
        if let Some(id) = state.backlog.pop_front() {
            return Some(id);
        }
        state.accepting.add(cx.waker());
        None
    }
}

impl State {
    /// Passes received packets to the protocol; from shared sockets, only our own.
    pub(super) fn handle_input(&mut self, now: Duration, input: Input, is_shared: bool) {
        if let Input::Packets(received) = &input {
            let is_foreign = is_shared && !self.ports.is_ours(received);
            if is_foreign || self.ports.is_late_init_ack(received) {
                return;
            }
        }
        self.endpoint.handle_input(now, input);
    }

    /// Takes the pending outputs.
    pub(super) fn drain(&mut self, now: Duration, outbox: &mut VecDeque<Transmit>) -> Next {
        let next = self.poll(now, outbox);
        for id in std::mem::take(&mut self.sending) {
            if let Some(slot) = self.slots.get_mut(&id) {
                slot.watchers.wake();
            }
        }
        next
    }

    /// Takes the changes of paths since the last call.
    pub(super) fn take_path_changes(&mut self) -> Vec<(SocketAddr, PathChange)> {
        std::mem::take(&mut self.path_changes)
    }

    /// Makes the watchers of this association check it again after more was sent.
    pub(super) fn recheck(&mut self, id: AssociationId) {
        if !self.sending.contains(&id) {
            self.sending.push(id);
        }
    }

    fn poll(&mut self, now: Duration, outbox: &mut VecDeque<Transmit>) -> Next {
        while outbox.len() < MAX_OUTBOX {
            match self.endpoint.poll_output(now) {
                Output::Transmit(transmit) => outbox.push_back(transmit),
                Output::Event(id, event) => self.handle_event(now, id, event),
                Output::Timeout(time) => {
                    let is_needed =
                        self.has_handle || self.dependents > 0 || !self.slots.is_empty();
                    return if is_needed { Next::Wait(time) } else { Next::Over };
                }
                Output::TransmitStructs(_) => {
                    debug_assert!(false, "this endpoint is configured to encode packets");
                }
            }
        }
        Next::Full
    }

    fn handle_event(&mut self, now: Duration, id: AssociationId, event: Event) {
        if let Event::Up { by_peer: true, .. } = event
            && !self.slots.contains_key(&id)
        {
            self.handle_new(now, id);
        }
        if let Event::Path { remote, change, .. } = event {
            self.path_changes.push((remote, change));
        }
        if matches!(event, Event::Up { .. }) {
            // Its first paths were confirmed by the handshake.
            let paths = self.endpoint.status(id).into_iter().flat_map(|status| status.paths);
            let confirmed = paths.map(|path| (path.remote, PathChange::Confirmed));
            self.path_changes.extend(confirmed);
        }
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.handle_event(event);
        if slot.is_orphan {
            self.drain_orphan(now, id);
        }
    }

    /// Handles an association opened by a peer.
    fn handle_new(&mut self, now: Duration, id: AssociationId) {
        self.slots.insert(id, Slot::new(Stage::Up));
        if !self.has_handle || self.backlog.len() >= MAX_BACKLOG {
            let reason = Bytes::from_static(b"too many associations are waiting to be accepted");
            return self.abort_orphan(now, id, reason);
        }
        self.backlog.push_back(id);
        self.accepting.wake();
    }

    /// Handles an association without an owner: incoming data is dropped until it ends.
    fn drain_orphan(&mut self, now: Duration, id: AssociationId) {
        while self.endpoint.receive(now, id).is_some() {}
        if matches!(self.slots.get(&id), Some(Slot { stage: Stage::Ended(_), .. })) {
            self.remove(now, id);
        }
    }

    /// Releases an association: an established one shuts down gracefully, others are aborted.
    pub(super) fn release(&mut self, now: Duration, id: AssociationId) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.is_orphan = true;
        match slot.stage {
            Stage::Up => match self.endpoint.shutdown(now, id) {
                Ok(()) => self.drain_orphan(now, id),
                Err(_) => self.abort_orphan(now, id, Bytes::new()),
            },
            Stage::Opening | Stage::Answered => self.abort_orphan(now, id, Bytes::new()),
            Stage::Ended(_) => self.remove(now, id),
        }
    }

    /// Aborts an association without handles.
    fn abort_orphan(&mut self, now: Duration, id: AssociationId, reason: Bytes) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.is_orphan = true;
        // Its last event removes it; without one it has ended already.
        if self.endpoint.abort(now, id, reason).is_err() {
            self.remove(now, id);
        }
    }

    fn remove(&mut self, now: Duration, id: AssociationId) {
        self.endpoint.forget(now, id);
        if let Some((local, remote)) = self.slots.remove(&id).and_then(|slot| slot.ports) {
            self.ports.remove(local, remote);
        }
    }

    /// Ends the task, for example because the runtime ends.
    pub(super) fn end(&mut self) {
        self.is_over = true;
        for slot in self.slots.values_mut() {
            if !matches!(slot.stage, Stage::Ended(_)) {
                slot.end(Some(LossReason::Aborted));
            }
            slot.wake_all();
        }
        self.accepting.wake();
    }
}

/// Returns an unpredictable secret.
fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    SystemRandom::new()
        .fill(&mut seed)
        .map_err(|_| io::Error::other("this machine provides no random bytes"))?;
    Ok(seed)
}
