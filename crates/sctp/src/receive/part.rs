//! What reassembly gives: a whole message, or a part of one.

use super::Number;
use super::delivery::Ready;

/// A whole message or a part of one, and what decides when it is due.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) ready: Ready,
    /// How many of its pieces share memory with a packet.
    pub(crate) borrowed: usize,
    pub(crate) number: Number,
}

/// A fragment does not go with those that are here: the peer broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;
