//! The resources that a server holds for its peers, and how they are shared.
//!
//! A connection may have at most a [`PART`]th of what is still free, so that many greedy
//! connections leave each other less and less, and something for later ones. A request always gets
//! the minimum that it needs to proceed: a response that gets no more than that continues in pieces
//! of [`LEAST_PIECE`], reopening its file for each.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use super::Limits;

/// The part of the free budget that one connection may take.
const PART: usize = 16;

/// The number of bytes that each request may hold regardless of the budget; limited by the number
/// of requests.
pub const LEAST_PIECE: usize = 4 * 1024;

/// A limited resource, counted for the server and for each connection.
#[derive(Debug)]
struct Pool {
    limit: usize,
    limit_per_connection: usize,
    used: AtomicUsize,
}

impl Pool {
    const fn new(limit: usize, limit_per_connection: usize) -> Self {
        Self { limit, limit_per_connection, used: AtomicUsize::new(0) }
    }

    /// Returns how much is available to a connection that has already `used` this much.
    fn room(&self, used: &AtomicUsize) -> usize {
        let free = self.limit.saturating_sub(self.used.load(Relaxed));
        let allowed = self.limit_per_connection.min(free / PART);
        allowed.saturating_sub(used.load(Relaxed))
    }

    /// Takes up to `wanted`.
    fn reserve(&self, used: &AtomicUsize, wanted: usize) -> usize {
        // Two connections may both see the same free bytes; the excess is at most one piece.
        let granted = wanted.min(self.room(used));
        self.add(used, granted);
        granted
    }

    fn add(&self, used: &AtomicUsize, amount: usize) {
        self.used.fetch_add(amount, Relaxed);
        used.fetch_add(amount, Relaxed);
    }

    fn release(&self, used: &AtomicUsize, amount: usize) {
        self.used.fetch_sub(amount, Relaxed);
        used.fetch_sub(amount, Relaxed);
    }
}

/// The resources of a server.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: Pool,
    files: Pool,
    requests: Pool,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            bytes: Pool::new(limits.buffered_bytes, limits.buffered_bytes_per_connection),
            files: Pool::new(limits.open_files, limits.open_files_per_connection),
            requests: Pool::new(limits.requests, usize::MAX),
        })
    }

    /// Returns the share of a new connection, which holds nothing yet.
    pub(super) fn share(self: &Arc<Self>) -> Arc<Share> {
        Arc::new(Share {
            budget: Arc::clone(self),
            bytes: AtomicUsize::new(0),
            files: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
        })
    }

    /// Returns the number of bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.used.load(Relaxed)
    }

    /// Returns the number of files that are open between two pieces of a response.
    pub(super) fn files(&self) -> usize {
        self.files.used.load(Relaxed)
    }

    /// Returns the number of requests in flight.
    pub(super) fn requests(&self) -> usize {
        self.requests.used.load(Relaxed)
    }
}

/// The share of one connection.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    bytes: AtomicUsize,
    files: AtomicUsize,
    requests: AtomicUsize,
}

impl Share {
    /// Reserves up to `wanted` bytes, but at least [`LEAST_PIECE`].
    pub fn piece(self: &Arc<Self>, wanted: usize) -> Held {
        let mut bytes = self.budget.bytes.reserve(&self.bytes, wanted);
        let least = wanted.min(LEAST_PIECE);
        if bytes < least {
            self.budget.bytes.add(&self.bytes, least - bytes);
            bytes = least;
        }
        Held { share: Arc::clone(self), bytes }
    }

    /// Returns how many more bytes the connection may hold now.
    pub fn room(&self) -> usize {
        self.budget.bytes.room(&self.bytes)
    }

    /// Reserves exactly this number of bytes, if available.
    pub fn bytes(self: &Arc<Self>, wanted: usize) -> Option<Held> {
        let bytes = self.budget.bytes.reserve(&self.bytes, wanted);
        let held = Held { share: Arc::clone(self), bytes };
        (bytes == wanted).then_some(held)
    }

    /// Reserves an open file.
    pub fn open_file(self: &Arc<Self>) -> Option<OpenFile> {
        let granted = self.budget.files.reserve(&self.files, 1) == 1;
        granted.then(|| OpenFile(Arc::clone(self)))
    }

    /// Returns whether one more request is allowed, as the first one of a connection always is.
    pub(super) fn has_request_slot(&self) -> bool {
        self.requests.load(Relaxed) == 0 || self.budget.requests.room(&self.requests) > 0
    }

    /// Counts one more request, whether or not it is within the limit.
    pub(super) fn request_slot(self: &Arc<Self>) -> RequestSlot {
        self.budget.requests.add(&self.requests, 1);
        RequestSlot(Arc::clone(self))
    }
}

/// Reserved bytes, released on drop.
#[derive(Debug)]
pub struct Held {
    share: Arc<Share>,
    bytes: usize,
}

impl Held {
    /// Returns the number of bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.share.budget.bytes.release(&self.share.bytes, self.bytes);
    }
}

/// A reserved open file, released on drop.
#[derive(Debug)]
pub struct OpenFile(Arc<Share>);

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.0.budget.files.release(&self.0.files, 1);
    }
}

/// Counts a request as in flight until it is dropped.
#[derive(Debug)]
pub(super) struct RequestSlot(Arc<Share>);

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.0.budget.requests.release(&self.0.requests, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(change: impl FnOnce(&mut Limits)) -> Arc<Budget> {
        let mut limits = Limits::default();
        change(&mut limits);
        Budget::new(&limits)
    }

    fn request_slot(share: &Arc<Share>) -> Option<RequestSlot> {
        share.has_request_slot().then(|| share.request_slot())
    }

    #[test]
    fn a_connection_that_holds_much_still_gets_the_minimum() {
        let budget = budget(|limits| {
            limits.buffered_bytes = 1 << 20;
            limits.buffered_bytes_per_connection = 1 << 19;
        });
        let greedy = budget.share();
        let held: Vec<Held> = (0..1000).map(|_| greedy.piece(64 * 1024)).collect();
        assert_eq!(held[0].bytes(), (1 << 20) / PART);
        assert!(held[1..].iter().all(|held| held.bytes() == LEAST_PIECE));
        drop(held);
        assert_eq!(budget.bytes(), 0);
        assert_eq!(greedy.piece(100).bytes(), 100);
    }

    #[test]
    fn many_greedy_connections_leave_something() {
        let budget = budget(|limits| limits.requests = 1000);
        let greedy: Vec<_> = (0..100).map(|_| budget.share()).collect();
        let slots: Vec<_> = (0..200)
            .flat_map(|_| greedy.iter().filter_map(request_slot).collect::<Vec<_>>())
            .collect();
        assert!((600..1000).contains(&slots.len()), "{}", slots.len());
        let late = budget.share();
        let admitted: Vec<_> = (0..5).filter_map(|_| request_slot(&late)).collect();
        assert!(admitted.len() > 1, "{}", admitted.len());
        drop((slots, admitted));
        assert_eq!(budget.requests(), 0);
    }

    #[test]
    fn the_first_request_of_a_connection_is_always_allowed() {
        let budget = budget(|limits| limits.requests = 0);
        let share = budget.share();
        let first = request_slot(&share);
        assert!(first.is_some() && request_slot(&share).is_none());
        drop(first);
        assert!(request_slot(&share).is_some());
    }

    #[test]
    fn files_are_limited_per_connection_and_in_total() {
        let budget = budget(|limits| {
            limits.open_files = 256;
            limits.open_files_per_connection = 4;
        });
        let share = budget.share();
        let open: Vec<_> = (0..10).filter_map(|_| share.open_file()).collect();
        assert_eq!((open.len(), budget.files()), (4, 4));
        let others: Vec<_> = (0..1000).filter_map(|_| budget.share().open_file()).collect();
        assert!(others.len() < 256, "{}", others.len());
    }
}
