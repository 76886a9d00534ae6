//! Scheduled changes of a world.

use alloc::boxed::Box;
use core::cmp::Ordering;
use core::time::Duration;

use bytes::Bytes;

use super::{LinkDirection, LinkId, NodeId, World};
use crate::link::LinkChange;
use crate::time::EpochNanos;

/// A change of a node from outside.
pub type NodeChange<N> = Box<dyn FnOnce(&mut N, Duration) + Send>;
/// A change of a whole world.
pub type WorldChange<N, B = Bytes> = Box<dyn FnOnce(&mut World<N, B>) + Send>;

/// A scheduled change.
pub enum WorldAction<N, B = Bytes> {
    /// Changes a link.
    Link {
        /// The link.
        link: LinkId,
        /// The direction; `None` for both.
        direction: Option<LinkDirection>,
        /// The change.
        change: LinkChange,
    },
    /// Changes a node from outside and then passes it [`crate::node::NodeInput::Timer`].
    Node(NodeId, NodeChange<N>),
    /// Anything else.
    World(WorldChange<N, B>),
}

impl<N, B> WorldAction<N, B> {
    /// Returns a change of both directions of a link.
    #[must_use]
    pub const fn link(link: LinkId, change: LinkChange) -> Self {
        Self::Link { link, direction: None, change }
    }

    /// Returns a change of a node.
    #[must_use]
    pub fn node(id: NodeId, change: impl FnOnce(&mut N, Duration) + Send + 'static) -> Self {
        Self::Node(id, Box::new(change))
    }

    /// Returns a change of the world.
    #[must_use]
    pub fn world(change: impl FnOnce(&mut World<N, B>) + Send + 'static) -> Self {
        Self::World(Box::new(change))
    }
}

/// An action with its sequence number: of equal times, the one scheduled first comes first.
pub(super) struct ScheduledAction<N, B> {
    pub(super) time: EpochNanos,
    pub(super) sequence: u64,
    pub(super) action: WorldAction<N, B>,
}

impl<N, B> ScheduledAction<N, B> {
    const fn key(&self) -> (EpochNanos, u64) {
        (self.time, self.sequence)
    }
}

impl<N, B> PartialEq for ScheduledAction<N, B> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<N, B> Eq for ScheduledAction<N, B> {}

impl<N, B> PartialOrd for ScheduledAction<N, B> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<N, B> Ord for ScheduledAction<N, B> {
    /// Reversed, because a `BinaryHeap` returns the greatest element first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}
