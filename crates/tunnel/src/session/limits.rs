//! The limits of a session, and of all sessions of a server.

use std::time::Duration;

/// The limits of a session. Each of them bounds something that the other end, or the programs that connect, could
/// otherwise grow without limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Open channels that the other end requested, and the same number of our own: 4096 by default.
    pub channels: usize,
    /// Streams of the transport in addition to the first one: 32 by default. Further channels share them.
    pub lanes: usize,
    /// The initial window of a channel, in bytes that the other end may send before this end reads them: 64 KiB by
    /// default.
    pub first_window: u32,
    /// The largest window of a channel that is read as fast as it is filled: 4 MiB by default.
    pub window: u32,
    /// The largest window for packets of an interface, too many of which would be late: 512 KiB by default.
    pub packet_window: u32,
    /// The bytes by which the windows of all channels together may grow: 64 MiB by default.
    pub growth: usize,
    /// Bytes of a channel that wait to be sent: 256 KiB by default.
    pub send_buffer: usize,
    /// The silence after which the other end gets a PING: 5 s by default.
    pub keepalive: Duration,
    /// The silence after which the session is given up: 20 s by default.
    pub silence: Duration,
    /// How long an end that stops waits until the other one has read the data of ended channels: 5 s by default.
    pub drain: Duration,
}

/// The limits on what all sessions of a server have together. A key may take another place of a kind if more are free
/// than it already has; if none are left, one with few gets the newest place of the one with the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Sessions: 512 by default.
    pub sessions: usize,
    /// Channels of all sessions, in both directions: 65,536 by default. Each needs a descriptor, or two if it listens.
    pub channels: usize,
}

impl ServerLimits {
    /// The smallest useful limits. A client that reconnects has two sessions for a moment.
    const LEAST: Self = Self { sessions: 16, channels: 8 };

    /// Returns limits with which sessions and channels need about half of these descriptors; the rest is for
    /// handshakes and listeners. Only sessions over TCP need one.
    pub fn within(descriptors: usize) -> Self {
        let all = Self::default();
        Self {
            sessions: all.sessions.min(descriptors / 8).max(Self::LEAST.sessions),
            channels: all.channels.min(descriptors / 2).max(Self::LEAST.channels),
        }
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self { sessions: 512, channels: 65_536 }
    }
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
