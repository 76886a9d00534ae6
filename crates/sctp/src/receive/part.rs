//! The output of reassembly: a complete message, or a part of one.

use super::Number;
use super::delivery::Ready;

/// A complete message or a part of one, with its sequence number.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) ready: Ready,
    /// The number of its pieces that share memory with a packet.
    pub(crate) borrowed: usize,
    pub(crate) number: Number,
}

/// A fragment contradicts earlier ones: the peer violated the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;
