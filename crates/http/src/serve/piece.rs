//! A piece of a response being sent to the peer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use futures_util::task::AtomicWaker;

use super::budget::Held;

/// The maximum number of bytes of a response that are read, and passed to a transport, at once.
pub const PIECE: usize = 128 * 1024;

/// How much of one response is being sent, and how much has been sent.
#[derive(Debug, Default)]
pub(super) struct Flow {
    provided: AtomicU64,
    taken: AtomicU64,
    has_ended: AtomicBool,
    waker: AtomicWaker,
}

impl Flow {
    /// Returns the number of bytes that the transport has accepted, or that were dropped.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// Records that the transport has accepted bytes.
    pub(super) fn record_taken(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Relaxed);
    }

    /// Records that nothing more will be provided.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Relaxed);
    }

    /// Returns whether nothing more will be provided.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Relaxed)
    }

    /// Returns whether nothing is in flight.
    pub(super) fn is_all_taken(&self) -> bool {
        self.taken() == self.provided.load(Relaxed)
    }

    /// Ready when nothing is in flight.
    pub(super) fn poll_all_taken(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.waker.register(cx.waker());
        if self.is_all_taken() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Bytes of a response. Their part of the budget is released once they have been sent.
#[derive(Debug)]
pub struct Piece {
    bytes: Bytes,
    held: Option<Arc<Held>>,
    flow: Option<Arc<Flow>>,
}

impl Piece {
    /// Creates a piece that shares this part of the budget with everything else read at the same
    /// time.
    pub fn holding(bytes: Bytes, held: Arc<Held>) -> Self {
        Self { bytes, held: Some(held), flow: None }
    }

    /// Splits off the first bytes, at most `max`.
    pub(super) fn split_to(&mut self, max: usize) -> Self {
        let bytes = self.bytes.split_to(max.min(self.bytes.len()));
        Self { bytes, held: self.held.clone(), flow: None }
    }

    /// Truncates it to this many bytes.
    pub(super) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns another handle to the bytes.
    pub(super) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Makes the flow record when the bytes are sent.
    pub(super) fn flowing(mut self, flow: &Arc<Flow>) -> Self {
        flow.provided.fetch_add(self.bytes.len() as u64, Relaxed);
        self.flow = Some(Arc::clone(flow));
        self
    }
}

impl From<Bytes> for Piece {
    /// Creates a piece from bytes that are static or counted elsewhere.
    fn from(bytes: Bytes) -> Self {
        Self { bytes, held: None, flow: None }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(flow) = &self.flow {
            flow.record_taken(count);
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some(flow) = &self.flow {
            flow.record_taken(self.bytes.len());
            flow.waker.wake();
        }
    }
}
