//! The limits of a proxy.

use std::time::Duration;

/// The limits of a [`Proxy`](crate::Proxy). Each of them bounds something that a client or a destination
/// could otherwise grow without limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Open client connections: 4096 by default. Beyond them, the oldest client that has not
    /// yet named a destination makes room; if there is none, further ones are closed at once.
    pub connections: usize,
    /// Open client connections from one IPv4 address or one IPv6 /64 of another machine: 256 by
    /// default. For this machine only the total limit applies.
    pub connections_per_client: usize,
    /// Open client connections of one user: 2048 by default, so that one user's programs, wherever they are,
    /// leave room for others.
    pub connections_per_user: usize,
    /// UDP associations and CONNECT-UDP tunnels together: 1024 by default. An association has three
    /// sockets, a tunnel two. An association through another proxy is a tunnel there for each of its
    /// destinations.
    pub associations: usize,
    /// Destinations of an association: 256 by default. The least recently used one makes room.
    pub association_destinations: usize,
    /// The time for a client to name its destination: 30 s by default. This bounds slowloris attacks.
    pub handshake_time: Duration,
    /// The time for connecting to a destination: 30 s by default.
    pub connect_time: Duration,
    /// The time without a byte in either direction: 1 h by default. (RFC 5382 REQ-5 requires at least two
    /// hours of NATs.)
    pub idle_time: Duration,
    /// The time for connections to end by themselves when the proxy stops: 10 s by default.
    pub grace: Duration,
}

impl ProxyLimits {
    /// Returns these limits, lowered so that clients with one destination each and associations need at most this
    /// many descriptors. Looking up names and attempts to connect need some in addition
    /// ([`max_attempts_in_flight`](eyas::EndpointBuilder::max_attempts_in_flight)).
    #[must_use]
    pub fn within(self, descriptors: usize) -> Self {
        // A client and its destination; the sockets of an association.
        let needed = self.connections as u128 * 2 + self.associations as u128 * 3;
        if needed <= descriptors as u128 {
            return self;
        }
        let share = |limit: usize| (limit as u128 * descriptors as u128 / needed) as usize;
        let connections = share(self.connections).max(1);
        Self {
            connections,
            // Of few connections, one client must not have all.
            connections_per_client: self.connections_per_client.min((connections / 2).max(1)),
            connections_per_user: self.connections_per_user.min((connections / 2).max(1)),
            associations: share(self.associations).max(1),
            ..self
        }
    }
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_client: 256,
            connections_per_user: 2048,
            associations: 1024,
            association_destinations: 256,
            handshake_time: Duration::from_secs(30),
            connect_time: Duration::from_secs(30),
            idle_time: Duration::from_hours(1),
            grace: Duration::from_secs(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_are_divided_and_many_change_nothing() {
        assert_eq!(ProxyLimits::default().within(20_000), ProxyLimits::default());
        for descriptors in [20, 224, 1_000, 10_000] {
            let few = ProxyLimits::default().within(descriptors);
            assert!(few.connections * 2 + few.associations * 3 <= descriptors, "{few:?}");
            assert!(few.connections * 3 > descriptors, "{few:?}");
            assert!(few.connections_per_client <= few.connections / 2, "{few:?}");
        }
        let none = ProxyLimits::default().within(0);
        assert_eq!((none.connections, none.connections_per_client, none.associations), (1, 1, 1));
        let many = ProxyLimits { connections: usize::MAX, ..ProxyLimits::default() };
        assert!(many.within(1_000).connections < 1_000);
    }
}
