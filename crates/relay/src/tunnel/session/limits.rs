//! What one session may take.

use std::time::Duration;

/// The bounds of one session. Every one of them is there because the other end, or who connects to
/// this one, could otherwise grow something without end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Channels open at once that the other end asked for, and as many of our own: 4096.
    pub channels: usize,
    /// Streams of the transport beside the first one, where it has streams: 32. Channels beyond that share
    /// them.
    pub lanes: usize,
    /// Bytes that the other end may send on a new channel before this end reads them: 64 KiB.
    pub first_window: u32,
    /// What that grows to where they are read as fast as they come: 4 MiB.
    pub window: u32,
    /// The same for packets of an interface, of which too many under way are late: 512 KiB.
    pub packet_window: u32,
    /// Bytes by which the windows of all channels together may have grown: 64 MiB.
    pub growth: usize,
    /// Bytes of a channel that wait here to be sent: 256 KiB.
    pub send_buffer: usize,
    /// After so long without a byte the other end is asked whether it is there: 5 s.
    pub keepalive: Duration,
    /// After so long without a byte it is not: 20 s.
    pub silence: Duration,
    /// For so long an end that stops waits until the other one has read what has ended: 5 s.
    pub drain: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            channels: 4096,
            lanes: 32,
            first_window: 64 * 1024,
            window: 4 * 1024 * 1024,
            packet_window: 512 * 1024,
            growth: 64 * 1024 * 1024,
            send_buffer: 256 * 1024,
            keepalive: Duration::from_secs(5),
            silence: Duration::from_secs(20),
            drain: Duration::from_secs(5),
        }
    }
}
