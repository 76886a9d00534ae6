//! What arrives from the network, each for its port.

use alloc::vec::Vec;
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;

use eyas_sctp::io::{Input as EndpointInput, Received, Unreachable};

use super::{PortKey, PortTable};
use crate::io::AssocId;

/// What became of packets that arrived.
#[derive(Debug)]
pub(in crate::stack) enum Arrival {
    /// A port handled them; its association with the sender, if that is known.
    Handled(Option<AssocId>),
    /// No port has their number, and they came directly over IP, so another program may have it.
    ForOthers(Received),
}

impl PortTable {
    /// Passes packets to their port, or to the endpoint that answers for unused ports.
    pub(in crate::stack) fn handle_packets(
        &mut self,
        now: Duration,
        received: Received,
    ) -> Arrival {
        let Some(key) = self.port_for(&received) else {
            if received.remote.port() == 0 {
                self.counters.packets_for_others += 1;
                return Arrival::ForOthers(received);
            }
            self.refuse(now, received);
            return Arrival::Handled(None);
        };
        let (remote, packet) = (received.remote, received.contents.clone());
        let input = EndpointInput::Packets(received);
        self.with_endpoint(key, |endpoint| endpoint.handle_input(now, input));
        let known = self.ports.get(&key).and_then(|port| {
            let inner = port.endpoint.association_of(remote, &packet)?;
            port.associations.get(&inner).copied()
        });
        Arrival::Handled(known)
    }

    /// Answers packets for an unused port.
    pub(in crate::stack) fn refuse(&mut self, now: Duration, received: Received) {
        self.out_of_the_blue.handle_input(now, EndpointInput::Packets(received));
    }

    /// Passes a report that packets cannot be delivered to all ports.
    pub(in crate::stack) fn handle_unreachable(
        &mut self,
        now: Duration,
        remote: SocketAddr,
        reason: Unreachable,
        quoted: Option<Bytes>,
    ) {
        let keys: Vec<PortKey> = self.ports.keys().copied().collect();
        for key in keys {
            let input = EndpointInput::Unreachable { remote, reason, quoted: quoted.clone() };
            self.with_endpoint(key, |endpoint| endpoint.handle_input(now, input));
        }
    }

    /// Returns the port that a packet is for. If several have its number, this is the one with its
    /// association, else one that listens at its address, else any at its address.
    fn port_for(&self, received: &Received) -> Option<PortKey> {
        let number = received.contents.get(2..4)?;
        let number = u16::from_be_bytes([number[0], number[1]]);
        let keys = self.numbers.get(&number)?;
        let ports = || keys.iter().filter_map(|key| Some((*key, self.ports.get(key)?)));
        if let [only] = keys[..]
            && let Some(port) = self.ports.get(&only)
            && port.addresses.is_empty()
            && port.receives_at(received.local)
        {
            return Some(only);
        }
        let (remote, packet) = (received.remote, &received.contents);
        let known = ports().find(|(_, port)| port.endpoint.has_association_of(remote, packet));
        let mut here = ports().filter(|(_, port)| port.receives_at(received.local));
        let known = known.map(|(key, _)| key).or_else(|| self.listener_for(number, received));
        known.or_else(|| here.next().map(|(key, _)| key))
    }
}
