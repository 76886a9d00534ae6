//! Decides which packets of a socket shared with other processes are ours.
//!
//! A raw socket receives every packet of protocol 132. A response to one for a port of another
//! process would end that process's association.

use std::collections::HashMap;

use eyas_sctp::io::Received;

/// Bytes of the common header (RFC 9260 §3.1), which the type of the first chunk follows.
const COMMON_HEADER: usize = 12;
/// The type of an INIT ACK chunk (RFC 9260 §3.3.3), which is always alone in its packet.
const INIT_ACK: u8 = 2;

/// The ports that an endpoint uses.
#[derive(Debug, Default)]
pub(super) struct Ports {
    listening: Option<u16>,
    /// The number of associations from each local port to each port of any peer.
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

    /// Returns whether there is an association from this port to that port of any peer.
    pub(super) fn is_used(&self, local: u16, remote: u16) -> bool {
        self.connected.contains_key(&(local, remote))
    }

    /// Returns whether the packet is for one of our ports.
    pub(super) fn is_ours(&self, received: &Received) -> bool {
        let Some((source, destination)) = ports(received) else { return false };
        self.listening == Some(destination) || self.is_used(destination, source)
    }

    /// Returns whether the packet is the INIT ACK of an association that was cancelled in the
    /// meantime, like those that lose a race. An ABORT in reply (RFC 9260 §8.4) would cost the peer
    /// a packet, and it holds no state that could be ended.
    pub(super) fn is_late_init_ack(&self, received: &Received) -> bool {
        received.contents.get(COMMON_HEADER) == Some(&INIT_ACK)
            && ports(received)
                .is_some_and(|(source, destination)| !self.is_used(destination, source))
    }
}

/// Returns source and destination port of the first packet (RFC 9260 §3.1).
fn ports(received: &Received) -> Option<(u16, u16)> {
    let &[s0, s1, d0, d1] = received.contents.first_chunk::<4>()?;
    Some((u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])))
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
            peer: None,
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
        assert!(!ports.is_ours(&packet(444, 5000)), "another process may use this port");
        ports.remove(5000, 443);
        assert!(ports.is_ours(&packet(443, 5000)));
        ports.remove(5000, 443);
        assert!(!ports.is_ours(&packet(443, 5000)));
    }

    #[test]
    fn an_unexpected_init_ack_is_late() {
        let mut init_ack = packet(443, 5000);
        init_ack.contents = [&init_ack.contents[..], &[0; 8], &[INIT_ACK, 0, 0, 4]].concat().into();
        let mut ports = Ports::new(None);
        assert!(ports.is_late_init_ack(&init_ack));
        ports.add(5000, 443);
        assert!(!ports.is_late_init_ack(&init_ack));
        assert!(
            !Ports::new(None).is_late_init_ack(&packet(443, 5000)),
            "too short to contain a chunk"
        );
    }

    #[test]
    fn a_truncated_packet_is_not_ours() {
        let mut short = packet(5000, 80);
        short.contents = Bytes::from_static(&[0x13, 0x88, 0]);
        assert!(!Ports::new(Some(80)).is_ours(&short));
    }
}
