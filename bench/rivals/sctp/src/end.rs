//! The interface of a stack.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

/// The maximum size of an SCTP packet, in bytes: 1,500 minus the headers of IPv4 and UDP.
pub const PACKET: usize = 1472;
/// The size of the receive window and of the send buffer, in bytes.
pub const WINDOW: usize = 4 << 20;

/// One end of an association.
pub trait End: Sized {
    /// Creates the end that opens the association.
    fn client(now: Instant) -> Self;
    /// Creates the end that waits for it.
    fn server(now: Instant) -> Self;
    /// Handles a received packet.
    fn handle(&mut self, now: Instant, packet: Bytes);
    /// Handles expired timers.
    fn tick(&mut self, now: Instant);
    /// Returns when the next timer expires.
    fn timeout(&self) -> Option<Instant>;
    /// Appends the packets to send.
    fn transmit(&mut self, now: Instant, packets: &mut VecDeque<Bytes>);
    /// Returns whether the association is established.
    fn is_established(&mut self) -> bool;
    /// Queues a message; returns `false` if there is no room.
    fn send(&mut self, now: Instant, message: &Bytes) -> bool;
    /// Returns the length of the next complete message, which is consumed.
    fn receive(&mut self) -> Option<usize>;
    /// Returns whether the peer has acknowledged everything.
    fn is_dry(&mut self) -> bool;
}
