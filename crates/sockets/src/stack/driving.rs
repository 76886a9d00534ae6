//! Dispatches inputs to their endpoints, and collects the outputs of all endpoints.

use core::time::Duration;

use eyas_sctp::io::Received;

use super::Stack;
use super::ports::{Arrival, PortOutput};
use crate::io::{AssocId, StackInput, StackOutput};

/// The size of the ports and the tag at the start of a packet.
const PORTS_AND_TAG: usize = 8;

impl Stack {
    /// Processes an input. Call [`Self::poll_output`] afterwards until it returns a timeout.
    pub fn handle_input(&mut self, now: Duration, input: StackInput) {
        self.advance_to(now);
        match input {
            StackInput::Tick => {}
            StackInput::Packets(received) => self.handle_packets(received),
            StackInput::Refused(received) => self.ports.refuse(self.now, received),
            StackInput::Unreachable { remote, reason, quoted } => {
                self.ports.handle_unreachable(self.now, remote, reason, quoted);
            }
            StackInput::LocalAddresses(addresses) => {
                self.ports.set_local_addresses(self.now, &addresses);
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
        match self.ports.handle_packets(self.now, received) {
            Arrival::Handled(association) => {
                association.into_iter().for_each(|id| self.count_arrivals(id));
            }
            Arrival::ForOthers(received) => {
                self.outputs.push_back(StackOutput::OutOfTheBlue(received));
            }
        }
    }

    /// Schedules messages that arrived for an association which already had unread ones: the
    /// endpoint reports no event for these, but each is an edge for `EPOLLET`, and on a one-to-many
    /// socket they have to take turns with those of other associations.
    fn count_arrivals(&mut self, id: AssocId) {
        if self.schedule(id)
            && let Some(assoc) = self.associations.get_mut(id)
        {
            assoc.idle_since = self.now;
        }
    }

    /// Returns the next output; call it again until it returns [`StackOutput::Timeout`].
    pub fn poll_output(&mut self, now: Duration) -> StackOutput {
        self.advance_to(now);
        self.ports.expire_timers(self.now);
        while let Some(id) = self.associations.pop_idle(self.now) {
            self.begin_shutdown(id);
        }
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return output;
            }
            match self.ports.poll_output(self.now) {
                Some(PortOutput::Transmit(transmit)) => return StackOutput::Transmit(transmit),
                Some(PortOutput::Event(key, event)) => {
                    self.handle_event(key, event);
                    continue;
                }
                None => self.publish_readiness(),
            }
            if self.outputs.is_empty() {
                let idle = self.associations.next_idle_check();
                let all = self.ports.next_timeout().into_iter().chain(idle);
                return StackOutput::Timeout(all.min());
            }
        }
    }
}
