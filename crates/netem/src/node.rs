//! The parts of a world: nodes with numbered interfaces.

use alloc::boxed::Box;
use core::time::Duration;

use bytes::Bytes;

use crate::packet::Packet;

/// Anything that receives and sends packets: a host, a router, a middlebox.
///
/// The world passes in one input, then polls outputs until [`NodeOutput::Timeout`], then advances
/// the time to the next packet or to that time. A node reads no clock and draws randomness only
/// from its own seed. Nodes that keep answering each other over links without delay stop the
/// world's clock.
///
/// `B` is the type of packet payloads, the same for the whole world.
pub trait Node<B = Bytes> {
    /// Processes an input.
    fn handle_input(&mut self, now: Duration, input: NodeInput<B>);

    /// Returns the next output; called again until it returns [`NodeOutput::Timeout`].
    fn poll_output(&mut self, now: Duration) -> NodeOutput<B>;
}

/// What a world passes to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeInput<B = Bytes> {
    /// The first input of every node, when the world starts.
    Start,
    /// A packet arrived.
    Arrived {
        /// The interface of the node.
        interface: u32,
        /// The packet.
        packet: Packet<B>,
    },
    /// The time requested by the node has come, or the node was changed from outside.
    Timer,
}

/// What a node asks the world to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOutput<B = Bytes> {
    /// Send this packet. There may be more.
    Transmit {
        /// The interface of the node.
        interface: u32,
        /// The packet.
        packet: Packet<B>,
    },
    /// Nothing more for now; pass in [`NodeInput::Timer`] at this time, if given. It replaces the
    /// earlier one. A time in the past counts as one nanosecond from now, so that the clock
    /// advances.
    Timeout(Option<Duration>),
}

impl<N: Node<B> + ?Sized, B> Node<B> for Box<N> {
    fn handle_input(&mut self, now: Duration, input: NodeInput<B>) {
        (**self).handle_input(now, input);
    }

    fn poll_output(&mut self, now: Duration) -> NodeOutput<B> {
        (**self).poll_output(now)
    }
}
