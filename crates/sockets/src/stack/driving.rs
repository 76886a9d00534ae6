//! Dispatches inputs to their endpoints, and collects the outputs of all endpoints.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use eyas_sctp::io::{Input as EndpointInput, Output as EndpointOutput, Received, Transmit};

use super::Stack;
use super::port::{PortKey, with_packet_memory};
use crate::io::{StackInput, StackOutput};

/// The size of the ports and the tag at the start of a packet.
const PORTS_AND_TAG: usize = 8;

impl Stack {
    /// Processes an input. Call [`Self::poll_output`] afterwards until it returns a timeout.
    pub fn handle_input(&mut self, now: Duration, input: StackInput) {
        self.advance_to(now);
        match input {
            StackInput::Tick => {}
            StackInput::Packets(received) => self.handle_packets(received),
            StackInput::Refused(received) => {
                self.out_of_the_blue.handle_input(self.now, EndpointInput::Packets(received));
            }
            StackInput::Unreachable { remote, reason, quoted } => {
                let keys: alloc::vec::Vec<PortKey> = self.ports.keys().copied().collect();
                for key in keys {
                    let quoted = quoted.clone();
                    let input = EndpointInput::Unreachable { remote, reason, quoted };
                    self.at_port(key, |endpoint, now| endpoint.handle_input(now, input));
                }
            }
            StackInput::LocalAddresses(addresses) => {
                self.addresses = addresses.iter().map(|ip| ip.to_canonical()).collect();
                let keys: alloc::vec::Vec<PortKey> = self.ports.keys().copied().collect();
                keys.into_iter().for_each(|key| self.update_addresses(key));
            }
        }
    }

    /// Dispatches packets that arrived together: at once if they belong to one association, as they
    /// mostly do, otherwise one by one.
    fn handle_packets(&mut self, received: Received) {
        let size = received.segment_size.max(1);
        let first = received.contents.get(..PORTS_AND_TAG);
        let mut starts = (0..received.contents.len()).step_by(size);
        let same = |start: usize| received.contents.get(start..start + PORTS_AND_TAG) == first;
        if starts.all(same) {
            return self.dispatch(received);
        }
        for start in (0..received.contents.len()).step_by(size) {
            let end = received.contents.len().min(start.saturating_add(size));
            let contents = received.contents.slice(start..end);
            self.dispatch(Received { contents, ..received.clone() });
        }
    }

    fn dispatch(&mut self, received: Received) {
        match self.port_for(&received) {
            Some(key) => {
                let (remote, packet) = (received.remote, received.contents.clone());
                let input = EndpointInput::Packets(received);
                self.at_port(key, |endpoint, now| endpoint.handle_input(now, input));
                self.count_arrivals(key, remote, &packet);
            }
            None if received.remote.port() != 0 => {
                self.out_of_the_blue.handle_input(self.now, EndpointInput::Packets(received));
            }
            None => {
                self.packets_for_others += 1;
                self.outputs.push_back(StackOutput::OutOfTheBlue(received));
            }
        }
    }

    /// Schedules messages that arrived for an association which already had unread ones: the
    /// endpoint reports no event for these, but each is an edge for `EPOLLET`, and on a one-to-many
    /// socket they have to take turns with those of other associations.
    fn count_arrivals(&mut self, key: PortKey, remote: SocketAddr, packet: &[u8]) {
        let Some(port) = self.ports.get(&key) else { return };
        let inner = port.endpoint.association_of(remote, packet);
        let known = inner.and_then(|inner| port.associations.get(&inner)).copied();
        let scheduled = |stack: &Self| Some(stack.associations.get(&known?)?.scheduled);
        let previous = scheduled(self);
        known.into_iter().for_each(|id| self.schedule(id));
        if scheduled(self) > previous
            && let Some(assoc) = known.and_then(|id| self.associations.get_mut(&id))
        {
            assoc.idle_since = self.now;
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
            && self.ports.get(&only).is_some_and(|port| port.addresses.is_empty())
            && ports().all(|(_, port)| port.receives_at(received.local))
        {
            return Some(only);
        }
        let (remote, packet) = (received.remote, &received.contents);
        let known = ports().find(|(_, port)| port.endpoint.has_association_of(remote, packet));
        let here = || ports().filter(|(_, port)| port.receives_at(received.local));
        let known = known.map(|(key, _)| key).or_else(|| self.listener_for(number, received));
        known.or_else(|| here().next().map(|(key, _)| key))
    }

    /// Returns the next output; call it again until it returns [`StackOutput::Timeout`].
    pub fn poll_output(&mut self, now: Duration) -> StackOutput {
        self.advance_to(now);
        while let Some(&(due, key)) = self.timers.first()
            && due <= self.now
        {
            self.timers.remove(&(due, key));
            if let Some(port) = self.ports.get_mut(&key) {
                port.due = None;
            }
            self.touch_port(key);
        }
        let autoclose = self.autoclose();
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return output;
            }
            if let EndpointOutput::Transmit(transmit) = self.out_of_the_blue.poll_output(self.now) {
                return StackOutput::Transmit(transmit);
            }
            if let Some(key) = self.dirty.front().copied() {
                if let Some(transmit) = self.poll_port(key) {
                    return StackOutput::Transmit(transmit);
                }
                continue;
            }
            self.publish_readiness();
            if self.outputs.is_empty() && self.dirty.is_empty() {
                let first = self.timers.first().map(|(due, _)| *due);
                return StackOutput::Timeout(first.into_iter().chain(autoclose).min());
            }
        }
    }

    /// Takes one output of a port: returns a packet, or handles an event.
    fn poll_port(&mut self, key: PortKey) -> Option<Transmit> {
        let Some(port) = self.ports.get_mut(&key) else {
            self.dirty.pop_front();
            return None;
        };
        let now = self.now;
        let output = with_packet_memory(&mut self.packet_memory, &mut port.endpoint, |endpoint| {
            endpoint.poll_output(now)
        });
        match output {
            EndpointOutput::Transmit(mut transmit) => {
                if transmit.local.is_none() {
                    transmit.local = nearest(&port.addresses, transmit.remote.ip());
                }
                Some(transmit)
            }
            EndpointOutput::Event(inner, event) => {
                self.handle_event(key, inner, event);
                None
            }
            EndpointOutput::Timeout(due) => {
                self.dirty.pop_front();
                port.is_dirty = false;
                if port.due != due {
                    let previous = core::mem::replace(&mut port.due, due);
                    previous.map(|at| self.timers.remove(&(at, key)));
                    due.map(|at| self.timers.insert((at, key)));
                }
                self.release_port(key);
                None
            }
            // Endpoints of a stack write packets as bytes.
            EndpointOutput::TransmitStructs(_) => None,
        }
    }
}

/// Returns the bound address to use for sending to `remote`: the one with the longest common
/// prefix.
fn nearest(addresses: &[IpAddr], remote: IpAddr) -> Option<IpAddr> {
    let usable = addresses.iter().filter(|one| one.is_ipv4() == remote.is_ipv4());
    usable.copied().max_by_key(|one| match (one, remote) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => 0,
    })
}
