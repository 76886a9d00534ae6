//! What one side of an association has to be able to do.

use std::time::Duration;

use bytes::Bytes;

pub type Failure = Box<dyn std::error::Error>;

/// The port of both sides: rtc-sctp knows no other.
pub const PORT: u16 = 5000;
/// The receive window, and the most that a sender keeps, in bytes.
pub const BUFFER: usize = 4 << 20;
/// The largest message, in bytes.
pub const LARGEST_MESSAGE: usize = 1 << 20;

/// What is asked of a side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    pub interleaving: bool,
    pub zero_checksum: bool,
    pub streams: u16,
}

/// A message to send.
pub struct Outgoing {
    pub stream: u16,
    pub unordered: bool,
    /// How often it may be retransmitted.
    pub retransmissions: Option<u16>,
    pub data: Bytes,
}

/// A message that came.
pub struct Incoming {
    pub stream: u16,
    pub data: Bytes,
}

/// What a side tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    Up,
    /// Streams of the other side started anew.
    TheirStreamsReset,
    /// Streams of this side started anew.
    OurStreamsReset,
    /// Ended in an orderly manner.
    Closed,
    /// Ended otherwise.
    Lost(String),
}

/// One side.
pub trait Side {
    /// Opens the association.
    fn connect(&mut self, now: Duration) -> Result<(), Failure>;
    /// Takes a packet in.
    fn handle(&mut self, now: Duration, packet: Bytes);
    /// Does what is due.
    fn tick(&mut self, now: Duration);
    /// When something is due.
    fn timeout(&self) -> Option<Duration>;
    /// Gives packets out.
    fn transmit(&mut self, now: Duration, packets: &mut Vec<Bytes>);
    /// What happened since the last call.
    fn poll(&mut self) -> Option<Happened>;
    /// Queues a message; `false` if there is no room.
    fn send(&mut self, now: Duration, message: &Outgoing) -> Result<bool, Failure>;
    /// Takes out a message that came whole.
    fn receive(&mut self, now: Duration) -> Option<Incoming>;
    /// Whether the other side acknowledged everything.
    fn is_dry(&self) -> bool;
    /// Resets outgoing streams.
    fn reset(&mut self, now: Duration, streams: &[u16]) -> Result<(), Failure>;
    /// Ends the association once all data has arrived.
    fn shutdown(&mut self, now: Duration) -> Result<(), Failure>;
    /// Ends it at once.
    fn abort(&mut self, now: Duration) -> Result<(), Failure>;
}
