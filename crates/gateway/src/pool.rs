//! The connections to the upstream that can serve another request.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use eyas::ConnectionFeedback;
use tokio::runtime::{self, Handle};
use tokio::time::Instant;

use crate::connection::{ConnectionOwner, UpstreamConnection, WantedConnection};
use crate::http1_connection::Http1Connection;
use crate::share::{ConnectionShare, ConnectionStreams, SharedSender};
use crate::upstream::UpstreamScheme;

#[derive(Debug)]
struct IdleConnection {
    connection: Http1Connection,
    owner: ConnectionOwner,
    since: Instant,
}

impl IdleConnection {
    fn is_usable(&mut self, now: Instant, keep_time: Duration) -> bool {
        now.duration_since(self.since) < keep_time && !self.connection.is_closed()
    }

    /// Returns whether a request of this client may use it, in a runtime where that wakes no other thread.
    fn is_for(&self, owner: ConnectionOwner, runtime: runtime::Id) -> bool {
        self.owner == owner && self.connection.runtime() == runtime
    }
}

/// A connection over HTTP/2 or HTTP/3.
#[derive(Debug)]
struct MultiplexedConnection {
    sender: SharedSender,
    scheme: UpstreamScheme,
    feedback: ConnectionFeedback,
    streams: ConnectionStreams,
    opened: Instant,
    used: Instant,
    /// When it gets no more requests, so that a better one is looked for.
    until: Option<Instant>,
}

impl MultiplexedConnection {
    fn is_usable(&self, now: Instant, keep_time: Duration) -> bool {
        !self.sender.is_closed()
            && !self.streams.are_over()
            && self.until.is_none_or(|until| now < until)
            && (self.streams.are_in_use() || now.duration_since(self.used) < keep_time)
    }

    fn share(&mut self, now: Instant) -> Option<UpstreamConnection> {
        let share = ConnectionShare::new(&self.sender, self.scheme, &self.feedback, &self.streams)?;
        self.used = now;
        Some(UpstreamConnection::Shared(share))
    }
}

/// The idle connections over HTTP/1.1, in the order of their last use, and those over HTTP/2 and HTTP/3.
#[derive(Debug)]
pub(crate) struct UpstreamPool {
    connections: Mutex<PooledConnections>,
    limit: usize,
    keep_time: Duration,
    is_sweeping: AtomicBool,
}

#[derive(Debug, Default)]
struct PooledConnections {
    idle: VecDeque<IdleConnection>,
    /// Those over HTTP/3 come first.
    multiplexed: Vec<MultiplexedConnection>,
}

impl UpstreamPool {
    pub(crate) fn new(limit: usize, keep_time: Duration) -> Self {
        let is_sweeping = AtomicBool::new(false);
        Self { connections: Mutex::default(), limit, keep_time, is_sweeping }
    }

    /// Takes a connection that is still usable: a share of one, or the most recently used one.
    pub(crate) fn acquire(&self, wanted: WantedConnection) -> Option<UpstreamConnection> {
        let now = Instant::now();
        let mut connections = self.lock();
        if !wanted.http1_only {
            connections.multiplexed.retain(|one| one.is_usable(now, self.keep_time));
            let is_other = |one: &&mut MultiplexedConnection| {
                wanted.opened_since.is_none_or(|since| one.opened >= since)
            };
            let mut others = connections.multiplexed.iter_mut().filter(is_other);
            let share = others.find_map(|one| one.share(now));
            if share.is_some() {
                return share;
            }
        }
        if wanted.opened_since.is_some() {
            return None;
        }
        let runtime = Handle::current().id();
        loop {
            let at = connections.idle.iter().rposition(|one| one.is_for(wanted.owner, runtime))?;
            let mut one = connections.idle.remove(at)?;
            drop(connections);
            if one.is_usable(now, self.keep_time) {
                return Some(UpstreamConnection::Http1(one.connection));
            }
            connections = self.lock();
        }
    }

    /// Keeps a connection after a request, and closes the oldest one if there are too many.
    pub(crate) fn keep(self: &Arc<Self>, connection: UpstreamConnection, owner: ConnectionOwner) {
        // A share is returned by dropping it.
        let UpstreamConnection::Http1(mut connection) = connection else { return };
        if self.limit == 0 || connection.is_closed() {
            return;
        }
        let mut connections = self.lock();
        if connections.idle.len() >= self.limit {
            connections.idle.pop_front();
        }
        connections.idle.push_back(IdleConnection { connection, owner, since: Instant::now() });
        drop(connections);
        self.sweep_later();
    }

    /// Keeps a connection over HTTP/2 or HTTP/3, and returns the first share of it.
    pub(crate) fn share(
        self: &Arc<Self>,
        sender: SharedSender,
        scheme: UpstreamScheme,
        feedback: ConnectionFeedback,
        until: Option<Instant>,
    ) -> Option<UpstreamConnection> {
        let now = Instant::now();
        let (is_http3, streams) = (sender.is_http3(), ConnectionStreams::new());
        let (opened, used) = (now, now);
        let mut connection =
            MultiplexedConnection { sender, scheme, feedback, streams, opened, used, until };
        let share = connection.share(now);
        let mut connections = self.lock();
        let at = if is_http3 { 0 } else { connections.multiplexed.len() };
        connections.multiplexed.insert(at, connection);
        drop(connections);
        self.sweep_later();
        share
    }

    /// Returns whether there is a connection over HTTP/3.
    pub(crate) fn has_http3(&self) -> bool {
        let (now, connections) = (Instant::now(), self.lock());
        let is_http3 = |one: &MultiplexedConnection| {
            one.sender.is_http3() && one.is_usable(now, self.keep_time)
        };
        connections.multiplexed.iter().any(is_http3)
    }

    /// Closes the oldest connection, to make room for another one.
    pub(crate) fn close_oldest(&self) {
        let mut connections = self.lock();
        if connections.idle.pop_front().is_none() {
            let is_free = |one: &MultiplexedConnection| !one.streams.are_in_use();
            let free = connections.multiplexed.iter().position(is_free);
            free.map(|at| connections.multiplexed.remove(at));
        }
    }

    /// Closes connections that were idle for too long. Returns whether any are left.
    fn sweep(&self) -> bool {
        let now = Instant::now();
        let mut connections = self.lock();
        connections.idle.retain_mut(|one| one.is_usable(now, self.keep_time));
        connections.multiplexed.retain(|one| one.is_usable(now, self.keep_time));
        let is_empty = connections.idle.is_empty() && connections.multiplexed.is_empty();
        if is_empty {
            // Under the lock, so that the next connection returned sees it.
            self.is_sweeping.store(false, Relaxed);
        }
        !is_empty
    }

    fn sweep_later(self: &Arc<Self>) {
        if !self.is_sweeping.swap(true, Relaxed) {
            let sweeper = Sweeper { pool: Arc::downgrade(self), is_done: false };
            tokio::spawn(sweeper.run(self.keep_time));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PooledConnections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that sweeps. If it is dropped with its runtime, the next connection that is kept starts another one.
struct Sweeper {
    pool: Weak<UpstreamPool>,
    is_done: bool,
}

impl Sweeper {
    async fn run(mut self, interval: Duration) {
        while !self.is_done {
            tokio::time::sleep(interval).await;
            self.is_done = self.pool.upgrade().is_none_or(|pool| !pool.sweep());
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        if !self.is_done
            && let Some(pool) = self.pool.upgrade()
        {
            pool.is_sweeping.store(false, Relaxed);
        }
    }
}
