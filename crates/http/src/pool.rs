//! The connection pool: connections kept for later requests, and permits to open new ones.
//!
//! Per origin there is at most one shared connection (HTTP/3 or 2), which carries all requests, and
//! some idle HTTP/1.1 connections. Concurrent requests to an origin without a connection do not
//! stampede: one of them opens a connection, and the others wait in case it can be shared. A better
//! connection that arrives later (the late switch) replaces the shared and the idle ones; requests
//! in flight finish on their old connection. A connection in doubt ([`reuse`](crate::reuse)) is
//! given to no further request, and counts against no limit.

mod checkout;
mod connection;
mod origins;
mod reaper;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use self::{
    checkout::{Checkout, Permit},
    connection::{Leased, UseGuard, Vitals},
};
use self::{connection::Connection, origins::Origins};
use crate::{connection_report::ConnectionReport, protocol::Sender};

/// The limits of a connection pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// How long an idle connection is kept: 90 s by default.
    pub idle_timeout: Duration,
    /// The maximum number of connections per origin, including HTTP/1.1: 6 by default.
    pub per_origin: usize,
    /// The maximum number of connections: 256 by default. When it is reached, the longest idle
    /// connection is closed to make room for a new one; if none is idle, the request waits.
    pub total: usize,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { idle_timeout: Duration::from_secs(90), per_origin: 6, total: 256 }
    }
}

/// Identifies the connections that requests may share: scheme, host, port, and the proxy in
/// between. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) https: bool,
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
    pub(crate) proxy: Option<Arc<str>>,
}

/// The connections of one client; clones share them.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    limits: PoolLimits,
    origins: Mutex<Origins>,
    /// Notified whenever a connection becomes free, is added or closed.
    changed: Arc<Notify>,
    /// Cancels background tasks when the last handle is dropped.
    background: CancellationToken,
    _ends_background: DropGuard,
}

impl Pool {
    pub(crate) fn new(limits: PoolLimits) -> Self {
        let limits = PoolLimits {
            per_origin: limits.per_origin.max(1),
            total: limits.total.max(1),
            ..limits
        };
        let background = CancellationToken::new();
        Self(Arc::new(Shared {
            limits,
            origins: Mutex::default(),
            changed: Arc::new(Notify::new()),
            _ends_background: background.clone().drop_guard(),
            background,
        }))
    }

    /// Runs `work` in the background until it is done or the last handle of the pool is dropped.
    /// `work` must not hold a handle while it waits.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let cancelled = self.0.background.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = cancelled.cancelled() => {}
                () = work => {}
            }
        });
    }

    pub(crate) fn downgrade(&self) -> WeakPool {
        WeakPool(Arc::downgrade(&self.0))
    }

    /// Returns the number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.0.lock().open_count()
    }

    /// Returns whether the origin has an HTTP/3 connection that can take a request.
    pub(crate) fn has_http3(&self, key: &Key) -> bool {
        self.0.lock().has_http3(key)
    }

    /// Replaces the origin's connection with a better one.
    pub(crate) fn upgrade(&self, key: &Key, sender: Sender, report: Arc<ConnectionReport>) {
        let connection = Connection::new(sender, report, self.0.slot(key));
        // Dropping a connection takes the lock, so it must happen after the lock is released.
        let replaced = self.0.lock().insert(key, connection);
        drop(replaced);
        self.after_insert();
    }

    /// Removes a failed connection, so that no further request uses it. If it had been used before,
    /// the idle connections of its origin are probably as stale, and are removed too.
    pub(crate) fn retire(&self, key: &Key, leased: &Leased) {
        let report = leased.report();
        self.retire_where(key, |other| leased.reused || std::ptr::eq(other, &**report));
    }

    /// Lets no further request use a connection that shows no sign of life, for as long as that
    /// lasts.
    pub(crate) fn doubt(&self, vitals: &Vitals) {
        // Dropping a slot takes the lock of the origins.
        drop(vitals.doubt());
        self.0.changed.notify_waiters();
    }

    /// Lets requests use a connection again that had been in doubt.
    pub(crate) fn trust(&self, key: &Key, vitals: &Vitals) {
        vitals.trust(|| self.0.slot(key));
        self.0.changed.notify_waiters();
    }

    /// Removes a dead connection, and those of its origin that have been idle since before
    /// `deadline`, which are probably as dead.
    pub(crate) fn bury(&self, key: &Key, vitals: &Vitals, deadline: Instant) {
        let removed = self.0.lock().bury(key, vitals.report(), deadline);
        drop(removed);
        self.0.changed.notify_waiters();
    }

    /// Removes the connections of an origin whose report matches.
    pub(crate) fn retire_where(&self, key: &Key, matches: impl Fn(&ConnectionReport) -> bool) {
        let retired = self.0.lock().retire_where(key, matches);
        drop(retired);
        self.0.changed.notify_waiters();
    }

    /// Closes idle connections and lets exchanges in flight end, after a change of network.
    pub(crate) fn clear(&self) {
        let closing = self.0.lock().clear();
        drop(closing);
        self.0.changed.notify_waiters();
    }

    fn after_insert(&self) {
        reaper::ensure(self);
        self.0.changed.notify_waiters();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Origins> {
        // Only a debug assertion can panic while the lock is held, and the maps are consistent
        // then.
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle that keeps no connection alive.
#[derive(Clone)]
pub(crate) struct WeakPool(Weak<Shared>);

impl WeakPool {
    pub(crate) fn upgrade(&self) -> Option<Pool> {
        self.0.upgrade().map(Pool)
    }
}
