//! Connections to the upstream, and the pool of idle ones.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use eyas_http::InputEnd;
use hyper::client::conn::http1::SendRequest;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::request_body::Upload;

/// The client connection that a connection belongs to: with the PROXY protocol a single one, otherwise none.
pub(super) type Owner = Option<(SocketAddr, SocketAddr)>;

/// An HTTP/1.1 connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<Upload>,
    /// Where informational responses without end are cut off.
    pub(super) input_end: InputEnd,
    cut: CancellationToken,
}

impl Connection {
    /// Returns a connection, and the token on which its task must end.
    pub(super) fn new(
        sender: SendRequest<Upload>,
        input_end: InputEnd,
    ) -> (Self, CancellationToken) {
        let cut = CancellationToken::new();
        (Self { sender, input_end, cut: cut.clone() }, cut)
    }

    /// Ends it though a request is being sent, which dropping it does not.
    pub(super) fn cut(self) {
        self.cut.cancel();
    }
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    owner: Owner,
    since: Instant,
}

impl Idle {
    fn is_usable(&self, now: Instant, keep_time: Duration) -> bool {
        !self.connection.sender.is_closed() && now.duration_since(self.since) < keep_time
    }
}

/// The idle connections, in the order of their last use.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<VecDeque<Idle>>,
    limit: usize,
    keep_time: Duration,
    is_sweeping: AtomicBool,
}

impl Pool {
    pub(super) fn new(limit: usize, keep_time: Duration) -> Self {
        Self { idle: Mutex::default(), limit, keep_time, is_sweeping: AtomicBool::new(false) }
    }

    /// Takes the most recently used connection that is still usable.
    pub(super) fn take(&self, owner: Owner) -> Option<Connection> {
        let now = Instant::now();
        let mut idle = self.lock();
        while let Some(at) = idle.iter().rposition(|one| one.owner == owner) {
            let one = idle.remove(at)?;
            if one.is_usable(now, self.keep_time) {
                return Some(one.connection);
            }
        }
        None
    }

    /// Keeps a connection, and closes the oldest one if there are too many.
    pub(super) fn put(self: &Arc<Self>, connection: Connection, owner: Owner) {
        if connection.sender.is_closed() || self.limit == 0 {
            return;
        }
        let mut idle = self.lock();
        if idle.len() >= self.limit {
            idle.pop_front();
        }
        idle.push_back(Idle { connection, owner, since: Instant::now() });
        drop(idle);
        if !self.is_sweeping.swap(true, Relaxed) {
            tokio::spawn(sweep(Arc::downgrade(self), self.keep_time));
        }
    }

    /// Closes the oldest connection, to make room for another one.
    pub(super) fn close_oldest(&self) {
        self.lock().pop_front();
    }

    /// Closes connections that were idle for too long. Returns whether any are left.
    fn sweep(&self) -> bool {
        let now = Instant::now();
        let mut idle = self.lock();
        idle.retain(|one| one.is_usable(now, self.keep_time));
        if idle.is_empty() {
            // Under the lock, so that the next connection returned sees it.
            self.is_sweeping.store(false, Relaxed);
        }
        !idle.is_empty()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
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
