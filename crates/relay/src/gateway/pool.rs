//! The connections to the upstream that can serve another request.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use eyas::Feedback;
use hyper::client::conn::http2;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::connection::{Connection, Http1Connection, Http2Share, Owner, Wanted};
use super::request_body::Upload;
use super::upstream::Scheme;

/// The limit on requests at a time of one connection over HTTP/2, which every server should support (RFC 9113
/// §6.5.2).
pub(super) const MAX_STREAMS: usize = 100;

#[derive(Debug)]
struct Idle {
    connection: Http1Connection,
    owner: Owner,
    since: Instant,
}

impl Idle {
    fn is_usable(&self, now: Instant, keep_time: Duration) -> bool {
        !self.connection.sender.is_closed() && now.duration_since(self.since) < keep_time
    }
}

/// A connection over HTTP/2.
#[derive(Debug)]
struct Multiplexed {
    sender: http2::SendRequest<Upload>,
    scheme: Scheme,
    feedback: Feedback,
    streams: Arc<Semaphore>,
    used: Instant,
}

impl Multiplexed {
    fn is_usable(&self, now: Instant, keep_time: Duration) -> bool {
        let is_in_use = self.streams.available_permits() < MAX_STREAMS;
        !self.sender.is_closed() && (is_in_use || now.duration_since(self.used) < keep_time)
    }

    fn share(&mut self, now: Instant) -> Option<Connection> {
        let stream = Arc::clone(&self.streams).try_acquire_owned().ok()?;
        self.used = now;
        let (sender, feedback) = (self.sender.clone(), self.feedback.clone());
        Some(Connection::Http2(Http2Share::new(sender, self.scheme, feedback, stream)))
    }
}

/// The idle connections over HTTP/1.1, in the order of their last use, and those over HTTP/2.
#[derive(Debug)]
pub(super) struct Pool {
    connections: Mutex<Connections>,
    limit: usize,
    keep_time: Duration,
    is_sweeping: AtomicBool,
}

#[derive(Debug, Default)]
struct Connections {
    idle: VecDeque<Idle>,
    multiplexed: Vec<Multiplexed>,
}

impl Pool {
    pub(super) fn new(limit: usize, keep_time: Duration) -> Self {
        let is_sweeping = AtomicBool::new(false);
        Self { connections: Mutex::default(), limit, keep_time, is_sweeping }
    }

    /// Takes a connection that is still usable: a share of one, or the most recently used one.
    pub(super) fn take(&self, wanted: Wanted) -> Option<Connection> {
        let now = Instant::now();
        let mut connections = self.lock();
        if !wanted.http1_only {
            connections.multiplexed.retain(|one| one.is_usable(now, self.keep_time));
            let share = connections.multiplexed.iter_mut().find_map(|one| one.share(now));
            if share.is_some() {
                return share;
            }
        }
        let idle = &mut connections.idle;
        while let Some(at) = idle.iter().rposition(|one| one.owner == wanted.owner) {
            let one = idle.remove(at)?;
            if one.is_usable(now, self.keep_time) {
                return Some(Connection::Http1(one.connection));
            }
        }
        None
    }

    /// Keeps a connection after a request, and closes the oldest one if there are too many.
    pub(super) fn put(self: &Arc<Self>, connection: Connection, owner: Owner) {
        // A share is returned by dropping it.
        let Connection::Http1(connection) = connection else { return };
        if connection.sender.is_closed() || self.limit == 0 {
            return;
        }
        let mut connections = self.lock();
        if connections.idle.len() >= self.limit {
            connections.idle.pop_front();
        }
        connections.idle.push_back(Idle { connection, owner, since: Instant::now() });
        drop(connections);
        self.sweep_later();
    }

    /// Keeps a connection over HTTP/2, and returns the first share of it.
    pub(super) fn share(
        self: &Arc<Self>,
        sender: http2::SendRequest<Upload>,
        scheme: Scheme,
        feedback: Feedback,
    ) -> Option<Connection> {
        let now = Instant::now();
        let streams = Arc::new(Semaphore::new(MAX_STREAMS));
        let mut connection = Multiplexed { sender, scheme, feedback, streams, used: now };
        let share = connection.share(now);
        self.lock().multiplexed.push(connection);
        self.sweep_later();
        share
    }

    /// Closes the oldest connection, to make room for another one.
    pub(super) fn close_oldest(&self) {
        let mut connections = self.lock();
        if connections.idle.pop_front().is_none() {
            let is_free = |one: &Multiplexed| one.streams.available_permits() == MAX_STREAMS;
            let free = connections.multiplexed.iter().position(is_free);
            free.map(|at| connections.multiplexed.remove(at));
        }
    }

    /// Closes connections that were idle for too long. Returns whether any are left.
    fn sweep(&self) -> bool {
        let now = Instant::now();
        let mut connections = self.lock();
        connections.idle.retain(|one| one.is_usable(now, self.keep_time));
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
            tokio::spawn(sweep(Arc::downgrade(self), self.keep_time));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn sweep(pool: Weak<Pool>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        match pool.upgrade() {
            Some(pool) if pool.sweep() => {}
            _ => return,
        }
    }
}
