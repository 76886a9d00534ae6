//! The interface to one side of an association.

use std::time::Duration;

use bytes::Bytes;

pub type Failure = Box<dyn std::error::Error>;

/// The port of both sides, which is fixed in rtc-sctp.
pub const PORT: u16 = 5000;
/// The receive window and the send buffer, in bytes.
pub const BUFFER: usize = 4 << 20;
/// The largest message, in bytes.
pub const LARGEST_MESSAGE: usize = 1 << 20;

/// The options of a side.
#[derive(Clone, Copy, Debug, Default)]
pub struct SideOptions {
    pub interleaving: bool,
    pub zero_checksum: bool,
    pub streams: u16,
}

/// A message to send.
pub struct Outgoing {
    pub stream: u16,
    pub unordered: bool,
    /// The maximum number of retransmissions.
    pub retransmissions: Option<u16>,
    pub data: Bytes,
}

/// A received message.
pub struct Incoming {
    pub stream: u16,
    pub data: Bytes,
}

/// An event of a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideEvent {
    Up,
    /// Streams of the other side were reset.
    TheirStreamsReset,
    /// Streams of this side were reset.
    OurStreamsReset,
    /// Ended gracefully.
    Closed,
    /// Ended in any other way.
    Lost(String),
}

/// One side.
pub trait Side {
    /// Opens the association.
    fn connect(&mut self, now: Duration) -> Result<(), Failure>;
    /// Handles a received packet.
    fn handle(&mut self, now: Duration, packet: Bytes);
    /// Handles expired timers.
    fn tick(&mut self, now: Duration);
    /// Returns when the next timer expires.
    fn timeout(&self) -> Option<Duration>;
    /// Adds the packets to send.
    fn transmit(&mut self, now: Duration, packets: &mut Vec<Bytes>);
    /// Returns the next event.
    fn poll(&mut self) -> Option<SideEvent>;
    /// Queues a message; returns `false` if there is no room.
    fn send(&mut self, now: Duration, message: &Outgoing) -> Result<bool, Failure>;
    /// Returns the next complete message.
    fn receive(&mut self, now: Duration) -> Option<Incoming>;
    /// Returns whether the other side has acknowledged everything.
    fn is_dry(&self) -> bool;
    /// Resets outgoing streams.
    fn reset(&mut self, now: Duration, streams: &[u16]) -> Result<(), Failure>;
    /// Shuts the association down gracefully.
    fn shutdown(&mut self, now: Duration) -> Result<(), Failure>;
    /// Aborts it.
    fn abort(&mut self, now: Duration) -> Result<(), Failure>;
}
