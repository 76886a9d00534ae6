//! What a stack has to be able to do.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

/// The largest SCTP packet, in bytes: what is left of 1,500 after IPv4 and UDP.
pub const PACKET: usize = 1472;
/// The receive window, and the most that a sender keeps, in bytes.
pub const WINDOW: usize = 4 << 20;

/// One end of one association.
pub trait End: Sized {
    /// The end that opens the association.
    fn client(now: Instant) -> Self;
    /// The end that waits for it.
    fn server(now: Instant) -> Self;
    /// Takes a packet in.
    fn handle(&mut self, now: Instant, packet: Bytes);
    /// Does what is due.
    fn tick(&mut self, now: Instant);
    /// When something is due.
    fn timeout(&self) -> Option<Instant>;
    /// Gives packets out.
    fn transmit(&mut self, now: Instant, packets: &mut VecDeque<Bytes>);
    /// Whether the association is up.
    fn is_up(&mut self) -> bool;
    /// Queues a message; `false` if there is no room.
    fn send(&mut self, now: Instant, message: &Bytes) -> bool;
    /// Takes out a message that came whole, and gives its length.
    fn receive(&mut self) -> Option<usize>;
    /// Whether the peer acknowledged everything.
    fn is_dry(&mut self) -> bool;
}
