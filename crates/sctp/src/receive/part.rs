//! The output of reassembly: a complete message, or a part of one.

use super::MessageNumber;
use super::delivery::ReadyMessage;

/// A complete message or a part of one, with its sequence number.
#[derive(Debug)]
pub(crate) struct MessagePart {
    pub(crate) ready: ReadyMessage,
    /// The number of its pieces that share memory with a packet.
    pub(crate) borrowed: usize,
    pub(crate) number: MessageNumber,
}

/// A fragment contradicts earlier ones: the peer violated the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentContradiction;
