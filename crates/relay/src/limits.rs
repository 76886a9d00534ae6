//! What a proxy allows its clients.

use std::time::Duration;

/// The bounds of a [`Proxy`](crate::Proxy). Every one of them is there because a client, or a
/// destination, could otherwise grow something without end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Clients connected at once: 4096. One above it is closed at once.
    pub connections: usize,
    /// Clients connected at once from one IPv4 address or one IPv6 /64 that is not this machine:
    /// 256. From this machine there may be as many as there may be in all.
    pub connections_per_client: usize,
    /// Associations for UDP at once: 256. Each has three sockets.
    pub associations: usize,
    /// Destinations that an association has at once: 256. The one used least recently makes room.
    pub association_destinations: usize,
    /// For a client to say where it wants to go: 30 s. This is what ends a slow loris.
    pub handshake_time: Duration,
    /// Until a destination is connected to, or given up: 30 s.
    pub connect_time: Duration,
    /// Without a byte in either direction: 1 h. RFC 5382 REQ-5 asks two of those in between for.
    pub idle_time: Duration,
    /// What the connections get to end by themselves when the proxy stops: 10 s.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_client: 256,
            associations: 256,
            association_destinations: 256,
            handshake_time: Duration::from_secs(30),
            connect_time: Duration::from_secs(30),
            idle_time: Duration::from_hours(1),
            grace: Duration::from_secs(10),
        }
    }
}
