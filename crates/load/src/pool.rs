//! Persistent connections, and the queue of requests that wait for one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyas_http::DirectConnection;
use http::Version;
use tokio::sync::oneshot;

/// The connections of a worker. Requests that exceed their capacity wait, first come, first served.
#[derive(Debug)]
pub(super) struct WorkerPool {
    /// The maximum number of connections.
    max_connections: usize,
    /// Concurrent requests on a connection that supports several.
    streams: usize,
    state: Mutex<PoolState>,
}

#[derive(Debug, Default)]
struct PoolState {
    /// Idle connections that carry one request at a time, the one used last at the end.
    idle: Vec<DirectConnection>,
    /// Connections that carry several requests.
    shared: Vec<SharedConnection>,
    /// Connections open, opening or in use.
    open: usize,
    waiting: VecDeque<oneshot::Sender<AcquiredConnection>>,
    number: u64,
}

#[derive(Debug)]
struct SharedConnection {
    connection: DirectConnection,
    number: u64,
    in_flight: usize,
}

/// What a request may do next.
#[derive(Debug)]
pub(super) enum AcquiredConnection {
    /// Use this connection.
    Use(ConnectionLease),
    /// Open a connection.
    Open(ConnectionSlot),
}

/// The right to one of the connections. Dropping it passes the right on.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    pool: Option<Arc<WorkerPool>>,
}

/// A connection for one request. Dropping it without returning it closes it.
#[derive(Debug)]
pub(super) struct ConnectionLease {
    pub(super) connection: DirectConnection,
    reuse: ConnectionReuse,
}

#[derive(Debug)]
enum ConnectionReuse {
    /// The connection ends with the request.
    Never,
    /// The connection is returned after the request.
    Exclusive(ConnectionSlot),
    /// The connection carries other requests as well.
    Shared { _part: SharedUse },
}

/// One of the requests on a shared connection.
#[derive(Debug)]
struct SharedUse {
    pool: Arc<WorkerPool>,
    number: u64,
}

impl WorkerPool {
    pub(super) fn new(max_connections: usize, streams: usize) -> Self {
        Self {
            max_connections: max_connections.max(1),
            streams: streams.max(1),
            state: Mutex::default(),
        }
    }

    /// Waits for a connection, or for the right to open one.
    pub(super) async fn acquire(self: &Arc<Self>) -> AcquiredConnection {
        loop {
            let waited = {
                let mut state = self.lock();
                if let Some(acquired) = self.next(&mut state) {
                    return acquired;
                }
                let (sender, receiver) = oneshot::channel();
                state.waiting.push_back(sender);
                receiver
            };
            // Whoever removes a sender uses it, so this does not fail.
            if let Ok(acquired) = waited.await {
                return acquired;
            }
        }
    }

    /// Adds a connection that was opened with the right to a slot.
    pub(super) fn opened(
        self: &Arc<Self>,
        connection: DirectConnection,
        slot: ConnectionSlot,
    ) -> ConnectionLease {
        if connection.version() < Version::HTTP_2 {
            return ConnectionLease { connection, reuse: ConnectionReuse::Exclusive(slot) };
        }
        let Some(handle) = connection.share() else {
            return ConnectionLease { connection, reuse: ConnectionReuse::Exclusive(slot) };
        };
        slot.keep();
        let mut state = self.lock();
        state.number += 1;
        let number = state.number;
        state.shared.push(SharedConnection { connection, number, in_flight: 1 });
        let reuse = ConnectionReuse::Shared { _part: SharedUse { pool: Arc::clone(self), number } };
        let lease = ConnectionLease { connection: handle, reuse };
        self.serve_waiting(state);
        lease
    }

    /// Returns what the next request may do at once, if anything.
    fn next(self: &Arc<Self>, state: &mut PoolState) -> Option<AcquiredConnection> {
        while let Some(connection) = state.idle.pop() {
            let slot = self.slot();
            if !connection.is_closed() {
                return Some(AcquiredConnection::Use(ConnectionLease {
                    connection,
                    reuse: ConnectionReuse::Exclusive(slot),
                }));
            }
            // The lock is held, so the slot is returned explicitly.
            slot.keep();
            state.open -= 1;
        }
        let before = state.shared.len();
        state.shared.retain(|shared| !shared.connection.is_closed());
        state.open -= before - state.shared.len();
        let streams = self.streams;
        let free = state.shared.iter_mut().filter(|shared| shared.in_flight < streams);
        if let Some(shared) = free.min_by_key(|shared| shared.in_flight)
            && let Some(connection) = shared.connection.share()
        {
            shared.in_flight += 1;
            let part = SharedUse { pool: Arc::clone(self), number: shared.number };
            return Some(AcquiredConnection::Use(ConnectionLease {
                connection,
                reuse: ConnectionReuse::Shared { _part: part },
            }));
        }
        if state.open < self.max_connections {
            state.open += 1;
            return Some(AcquiredConnection::Open(self.slot()));
        }
        None
    }

    fn slot(self: &Arc<Self>) -> ConnectionSlot {
        ConnectionSlot { pool: Some(Arc::clone(self)) }
    }

    /// Gives free connections to waiting requests. Those that turn out not to be needed any more
    /// are dropped after the lock has been released.
    fn serve_waiting(self: &Arc<Self>, mut state: MutexGuard<'_, PoolState>) {
        let mut unwanted = Vec::new();
        while !state.waiting.is_empty() {
            let Some(acquired) = self.next(&mut state) else { break };
            let Some(first) = state.waiting.pop_front() else { break };
            if let Err(acquired) = first.send(acquired) {
                unwanted.push(acquired);
            }
        }
        drop(state);
        for acquired in unwanted {
            match acquired {
                AcquiredConnection::Use(lease) => lease.return_to_pool(),
                AcquiredConnection::Open(slot) => drop(slot),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    /// Keeps the slot taken.
    fn keep(mut self) {
        self.pool = None;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            let mut state = pool.lock();
            state.open -= 1;
            pool.serve_waiting(state);
        }
    }
}

impl Drop for SharedUse {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        if let Some(shared) = state.shared.iter_mut().find(|shared| shared.number == self.number) {
            shared.in_flight -= 1;
        }
        self.pool.serve_waiting(state);
    }
}

impl ConnectionLease {
    /// Creates a lease of a connection that ends with its request.
    pub(super) fn alone(connection: DirectConnection) -> Self {
        Self { connection, reuse: ConnectionReuse::Never }
    }

    /// Returns the connection after the response was read completely, so that another request can
    /// use it.
    pub(super) async fn release(mut self) {
        if matches!(self.reuse, ConnectionReuse::Exclusive(_)) && self.connection.ready().await {
            self.return_to_pool();
        }
    }

    fn return_to_pool(self) {
        if let ConnectionLease { connection, reuse: ConnectionReuse::Exclusive(mut slot) } = self
            && let Some(pool) = slot.pool.take()
        {
            let mut state = pool.lock();
            state.idle.push(connection);
            pool.serve_waiting(state);
        }
    }
}
