//! What a world is made of: nodes with numbered interfaces.

use alloc::boxed::Box;
use core::time::Duration;

use bytes::Bytes;

use crate::packet::Packet;

/// Anything that takes packets and sends packets: a host, a router, a middlebox.
///
/// The world hands over one input, then takes outputs until [`NodeOutput::Timeout`], then lets time
/// pass until the next packet arrives or that time has come. A node reads no clock and draws no
/// randomness but from its own seed. Nodes that answer each other for ever over links that take no
/// time at all stop the world's clock.
///
/// `B` is what packets carry behind their IP header, the same in the whole of a world.
pub trait Node<B = Bytes> {
    /// Something happened.
    fn handle_input(&mut self, now: Duration, input: NodeInput<B>);

    /// What to do about it; called again until it gives [`NodeOutput::Timeout`].
    fn poll_output(&mut self, now: Duration) -> NodeOutput<B>;
}

/// What a world tells a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeInput<B = Bytes> {
    /// The first input of every node, once the world runs.
    Start,
    /// A packet came in.
    Arrived {
        /// By this interface of the node.
        interface: u32,
        /// The packet.
        packet: Packet<B>,
    },
    /// The time that the node asked for has come, or somebody changed the node from outside.
    Timer,
}

/// What a node wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOutput<B = Bytes> {
    /// Send this. There may be more.
    Transmit {
        /// By this interface of the node.
        interface: u32,
        /// The packet.
        packet: Packet<B>,
    },
    /// Nothing more for now; give [`NodeInput::Timer`] at this time, if there is one. It replaces
    /// the time given before. A time that has passed counts as one nanosecond from now, so that
    /// the world's clock goes on.
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
