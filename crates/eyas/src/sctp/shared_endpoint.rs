//! One protocol endpoint, shared by the task that moves its packets and by its associations.
//!
//! A caller holds the lock only for its own call and then wakes the task, which takes what is ready
//! to be sent. So data that several callers send at the same time shares packets.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas_sctp::config::{ConnectOptions, EndpointConfig};
use eyas_sctp::endpoint::Endpoint;
use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::identifier::AssociationId;
use eyas_sctp::io::{Input, Output, Transmit};
use rustls::crypto::ring::default_provider;
use tokio::sync::Notify;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::SctpError;
use super::carrier::{Arrivals, Wire};
use super::ports::Ports;
use super::slot::{Slot, Stage, Wakers};

/// Trains decided and not yet sent; the protocol keeps the rest.
pub(super) const MAX_OUTBOX: usize = 64;
/// The maximum number of incoming associations not accepted yet; more are aborted.
const MAX_BACKLOG: usize = 1024;

/// One endpoint of the protocol with its sockets.
#[derive(Debug)]
pub(super) struct Hub {
    state: Mutex<State>,
    /// Tells the task that there is something to do.
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
    /// Associations of which somebody waits until more of a stream is on its way.
    sending: Vec<AssociationId>,
    /// Somebody may still open or accept associations.
    is_anchored: bool,
    /// Hubs whose packets come in at the sockets of this one.
    dependents: usize,
    /// The task has ended, and with it the sockets.
    is_over: bool,
}

/// What is left after the outputs were taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The outbox is full; there may be more.
    Full,
    /// Nothing before this time.
    Wait(Option<Duration>),
    /// Nobody needs the endpoint any more.
    Over,
}

/// Keeps a hub open for new associations; dropping it lets the hub end with the last association.
#[derive(Debug)]
pub(super) struct Anchor(pub(super) Arc<Hub>);

impl Drop for Anchor {
    fn drop(&mut self) {
        self.0.lock().is_anchored = false;
        self.0.wake.notify_one();
    }
}

/// Keeps a hub alive for another one whose packets come in at its sockets. It takes in no
/// associations for that.
#[derive(Debug)]
pub(super) struct Dependence(Arc<Hub>);

impl Dependence {
    pub(super) fn on(anchor: &Anchor) -> Self {
        anchor.0.lock().dependents += 1;
        Self(Arc::clone(&anchor.0))
    }
}

impl Drop for Dependence {
    fn drop(&mut self) {
        self.0.lock().dependents -= 1;
        self.0.wake.notify_one();
    }
}

impl Hub {
    /// Creates a hub that is not driven yet.
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
            is_anchored: true,
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

    /// Calls the protocol, and sends the resulting packets.
    pub(super) fn call<T>(&self, action: impl FnOnce(&mut Endpoint, Duration) -> T) -> T {
        let result = action(&mut self.lock().endpoint, self.now());
        self.wake.notify_one();
        result
    }

    /// Opens an association, counted by `opened` as long as it is not over.
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
            options.local_port = self.port_towards(&state, &options);
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
    /// no other program of this host can have, unless we already use it for this peer; 0 leaves the
    /// choice to the protocol. Two programs with the same port would look like one that restarted
    /// (RFC 9260 §5.2), because the peer identifies associations only by addresses and SCTP ports
    /// (RFC 6951 §5.4).
    fn port_towards(&self, state: &State, options: &ConnectOptions) -> u16 {
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
    pub(super) fn handle(&mut self, now: Duration, input: Input, is_shared: bool) {
        if let Input::Packets(received) = &input {
            let is_strange = is_shared && !self.ports.is_ours(received);
            if is_strange || self.ports.is_belated_answer(received) {
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
                Output::Event(id, event) => self.note(now, id, event),
                Output::Timeout(time) => {
                    let is_needed =
                        self.is_anchored || self.dependents > 0 || !self.slots.is_empty();
                    return if is_needed { Next::Wait(time) } else { Next::Over };
                }
                Output::TransmitStructs(_) => {
                    debug_assert!(false, "this endpoint was asked for encoded packets");
                }
            }
        }
        Next::Full
    }

    fn note(&mut self, now: Duration, id: AssociationId, event: Event) {
        if let Event::Up { by_peer: true, .. } = event
            && !self.slots.contains_key(&id)
        {
            self.welcome(now, id);
        }
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.handle(event);
        if slot.is_orphan {
            self.serve_orphan(now, id);
        }
    }

    /// Handles an association opened by a peer.
    fn welcome(&mut self, now: Duration, id: AssociationId) {
        self.slots.insert(id, Slot::new(Stage::Up));
        if !self.is_anchored || self.backlog.len() >= MAX_BACKLOG {
            let reason = Bytes::from_static(b"too many associations wait to be accepted");
            return self.give_up(now, id, reason);
        }
        self.backlog.push_back(id);
        self.accepting.wake();
    }

    /// Handles an association without an owner: incoming data is dropped until it ends.
    fn serve_orphan(&mut self, now: Duration, id: AssociationId) {
        while self.endpoint.receive(now, id).is_some() {}
        if matches!(self.slots.get(&id), Some(Slot { stage: Stage::Ended(_), .. })) {
            self.remove(now, id);
        }
    }

    /// Releases an association: an established one shuts down gracefully, others end at once.
    pub(super) fn abandon(&mut self, now: Duration, id: AssociationId) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.is_orphan = true;
        match slot.stage {
            Stage::Up => match self.endpoint.shutdown(now, id) {
                Ok(()) => self.serve_orphan(now, id),
                Err(_) => self.give_up(now, id, Bytes::new()),
            },
            Stage::Opening | Stage::Answered => self.give_up(now, id, Bytes::new()),
            Stage::Ended(_) => self.remove(now, id),
        }
    }

    /// Ends an association without handles immediately.
    fn give_up(&mut self, now: Duration, id: AssociationId, reason: Bytes) {
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
    let random = default_provider().secure_random;
    random.fill(&mut seed).map_err(|_| io::Error::other("this machine gives no random bytes"))?;
    Ok(seed)
}
