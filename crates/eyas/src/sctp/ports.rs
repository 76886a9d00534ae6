//! Which packets of a socket that other processes share are ours.
//!
//! A raw socket gets every packet of protocol 132. To answer one that is for somebody else's port
//! would end somebody else's association.

use std::collections::HashMap;

use eyas_sctp::io::Received;

/// The ports that an endpoint uses.
#[derive(Debug, Default)]
pub(super) struct Ports {
    listening: Option<u16>,
    /// How many associations there are from this port to that one of any peer.
    connected: HashMap<(u16, u16), usize>,
}

impl Ports {
    pub(super) fn new(listening: Option<u16>) -> Self {
        Self { listening, connected: HashMap::new() }
    }

    pub(super) fn add(&mut self, local: u16, remote: u16) {
        *self.connected.entry((local, remote)).or_default() += 1;
    }

    pub(super) fn remove(&mut self, local: u16, remote: u16) {
        if let Some(count) = self.connected.get_mut(&(local, remote)) {
            *count -= 1;
            if *count == 0 {
                self.connected.remove(&(local, remote));
            }
        }
    }

    /// Whether there is an association from this port to that one of any peer.
    pub(super) fn is_used(&self, local: u16, remote: u16) -> bool {
        self.connected.contains_key(&(local, remote))
    }

    /// Whether the packet is for a port of ours (RFC 9260 §3.1: source port, destination port).
    pub(super) fn is_ours(&self, received: &Received) -> bool {
        let Some(&[s0, s1, d0, d1]) = received.contents.first_chunk::<4>() else { return false };
        let (source, destination) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
        self.listening == Some(destination) || self.connected.contains_key(&(destination, source))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use eyas_sctp::io::Ecn;

    use super::*;

    fn packet(source: u16, destination: u16) -> Received {
        let ports = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        Received {
            local: None,
            remote: ([192, 0, 2, 1], 0).into(),
            ecn: Ecn::NotCapable,
            segment_size: ports.len(),
            contents: ports.into(),
        }
    }

    #[test]
    fn only_packets_for_our_ports_are_ours() {
        let mut ports = Ports::new(Some(80));
        assert!(ports.is_ours(&packet(5000, 80)));
        assert!(!ports.is_ours(&packet(80, 5000)));
        ports.add(5000, 443);
        ports.add(5000, 443);
        assert!(ports.is_ours(&packet(443, 5000)));
        assert!(!ports.is_ours(&packet(444, 5000)), "another process may have this one");
        ports.remove(5000, 443);
        assert!(ports.is_ours(&packet(443, 5000)));
        ports.remove(5000, 443);
        assert!(!ports.is_ours(&packet(443, 5000)));
    }

    #[test]
    fn what_is_too_short_is_nobody_s() {
        let mut short = packet(5000, 80);
        short.contents = Bytes::from_static(&[0x13, 0x88, 0]);
        assert!(!Ports::new(Some(80)).is_ours(&short));
    }
}
