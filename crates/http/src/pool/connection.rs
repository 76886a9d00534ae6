//! One connection of the pool, and the guard of a request that uses it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Version;
use tokio::{sync::Notify, time::Instant};

use super::{Key, Shared, WeakPool};
use crate::{
    connection_report::ConnectionReport,
    protocol::{Life, Sender},
};

/// A slot among the counted connections; dropping it frees the slot.
pub(super) struct Slot {
    pool: WeakPool,
    key: Key,
}

impl Shared {
    /// Takes a slot, which the caller knows to be free.
    pub(super) fn slot(self: &Arc<Self>, key: &Key) -> Slot {
        self.lock().open(key);
        Slot { pool: WeakPool(Arc::downgrade(self)), key: key.clone() }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(shared) = self.pool.0.upgrade() {
            shared.lock().closed(&self.key);
            shared.changed.notify_waiters();
        }
    }
}

/// A connection with its slot. If its version does not multiplex, the request that uses it takes
/// the sender.
pub(super) struct Connection {
    sender: Sender,
    pub(super) state: Arc<State>,
}

pub(super) struct State {
    report: Arc<ConnectionReport>,
    pub(super) version: Version,
    in_flight: AtomicUsize,
    used: AtomicBool,
    opened: Instant,
    last_used: Mutex<Instant>,
    life: Life,
    /// Whether a request has found no sign of life: nobody else may use it.
    is_doubted: AtomicBool,
    /// Notified when that happens.
    doubt: Notify,
    /// `None` while it is in doubt, so that it does not take the place of its successor.
    slot: Mutex<Option<Slot>>,
}

impl Connection {
    /// Returns the sender, for waiting until the exchange is over.
    pub(super) fn sender_mut(&mut self) -> &mut Sender {
        &mut self.sender
    }

    pub(super) fn new(sender: Sender, report: Arc<ConnectionReport>, slot: Slot) -> Self {
        let now = Instant::now();
        let state = State {
            life: sender.life(),
            report,
            version: sender.version(),
            in_flight: AtomicUsize::new(0),
            used: AtomicBool::new(false),
            opened: now,
            last_used: Mutex::new(now),
            is_doubted: AtomicBool::new(false),
            doubt: Notify::new(),
            slot: Mutex::new(Some(slot)),
        };
        Self { sender, state: Arc::new(state) }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    pub(super) fn report(&self) -> &ConnectionReport {
        &self.state.report
    }

    pub(super) fn is_doubted(&self) -> bool {
        self.state.is_doubted()
    }

    pub(super) fn opened(&self) -> Instant {
        self.state.opened
    }

    /// Returns when it became idle, or `None` if it is in use.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        (!self.state.is_in_use()).then(|| self.last_used())
    }

    /// Returns when its last request ended.
    pub(super) fn last_used(&self) -> Instant {
        self.state.last_used()
    }

    /// Leases it to one more request, if the version multiplexes.
    pub(super) fn share(&self) -> Option<Leased> {
        self.sender.share().map(|sender| Leased::new(sender, Arc::clone(&self.state)))
    }

    /// Leases it to the only request that it can carry.
    pub(super) fn into_lease(self) -> Leased {
        Leased::new(self.sender, self.state)
    }
}

/// A connection leased to a request.
pub(crate) struct Leased {
    pub(crate) sender: Sender,
    use_guard: UseGuard,
    /// Whether an earlier request had used the connection: it may have gone stale.
    pub(crate) reused: bool,
    /// How long it had been idle.
    idle: Duration,
    /// Whether requests are sent before the handshake is complete.
    pub(crate) early: bool,
}

/// Keeps a connection counted as in use; held by the response's body.
#[derive(Clone)]
pub(crate) struct UseGuard(Arc<Use>);

struct Use(Arc<State>);

impl Leased {
    fn new(sender: Sender, state: Arc<State>) -> Self {
        let others = state.in_flight.fetch_add(1, Ordering::AcqRel);
        let reused = state.used.swap(true, Ordering::AcqRel);
        let is_idle = reused && others == 0;
        let idle = if is_idle { state.last_used().elapsed() } else { Duration::ZERO };
        Self { sender, use_guard: UseGuard(Arc::new(Use(state))), reused, idle, early: false }
    }

    /// Returns the details of the connection.
    pub(crate) fn report(&self) -> &Arc<ConnectionReport> {
        &self.state().report
    }

    pub(crate) fn version(&self) -> Version {
        self.state().version
    }

    pub(crate) fn use_guard(&self) -> UseGuard {
        self.use_guard.clone()
    }

    /// Returns how long the connection had been idle.
    pub(crate) fn idle(&self) -> Duration {
        self.idle
    }

    /// Returns a handle to the connection that does not use it.
    pub(crate) fn vitals(&self) -> Vitals {
        Vitals(Arc::clone(self.state()))
    }

    fn state(&self) -> &Arc<State> {
        &self.use_guard.0.0
    }

    /// Converts this back into a connection for the pool. It counts as in use only until the body
    /// of its last response is dropped.
    pub(super) fn into_connection(self) -> Connection {
        Connection { sender: self.sender, state: Arc::clone(&self.use_guard.0.0) }
    }

    /// Returns a handle to check later whether the connection is still in use.
    pub(super) fn watch(&self) -> Weak<State> {
        Arc::downgrade(self.state())
    }
}

/// Whether a connection is alive, as its requests find out.
#[derive(Clone)]
pub(crate) struct Vitals(Arc<State>);

impl Vitals {
    pub(crate) fn life(&self) -> &Life {
        &self.0.life
    }

    pub(crate) fn report(&self) -> &Arc<ConnectionReport> {
        &self.0.report
    }

    /// Returns how long ago it was established.
    pub(crate) fn age(&self) -> Duration {
        self.0.opened.elapsed()
    }

    /// Waits until some request finds no sign of life.
    pub(crate) async fn doubted(&self) {
        let doubted = self.0.doubt.notified();
        if !self.0.is_doubted() {
            doubted.await;
        }
    }

    /// Sets whether the connection is in doubt, and returns what it held of the pool's limits.
    pub(super) fn doubt(&self) -> Option<Slot> {
        self.0.is_doubted.store(true, Ordering::Release);
        self.0.doubt.notify_waiters();
        self.0.slot().take()
    }

    /// Ends the doubt with a slot from the pool, unless it still has one.
    pub(super) fn trust(&self, slot: impl FnOnce() -> Slot) {
        let mut present = self.0.slot();
        present.get_or_insert_with(slot);
        self.0.is_doubted.store(false, Ordering::Release);
    }
}

impl State {
    fn slot(&self) -> MutexGuard<'_, Option<Slot>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_doubted(&self) -> bool {
        self.is_doubted.load(Ordering::Acquire)
    }

    pub(super) fn is_in_use(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) > 0
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        *self.0.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let uses = self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(uses > 0, "more uses ended than began");
    }
}
