//! Computes the result of `poll` for a socket.

use super::Stack;
use super::association::AssocPhase;
use super::socket::SocketState;
use crate::abi::number::poll::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP};
use crate::io::{PollReadiness, SocketId, StackOutput};

impl Stack {
    /// Returns the current result of `poll`.
    #[must_use]
    pub fn readiness(&self, socket: SocketId) -> PollReadiness {
        let Some(found) = self.sockets.get(socket) else { return PollReadiness::NOTHING };
        if found.is_one_to_one() && found.state == SocketState::Listening {
            return PollReadiness(if found.accepting.is_empty() { 0 } else { POLLIN });
        }
        let mut bits = 0;
        if found.error.is_some() {
            bits |= POLLERR;
        }
        let only = self.associations.only_of(found);
        let has_ended = only.is_none_or(|assoc| assoc.phase == AssocPhase::Ended);
        if found.shut_read && found.shut_write && has_ended {
            return PollReadiness(bits | POLLIN | POLLHUP);
        }
        let is_at_end = self.associations.is_at_end(found);
        if is_at_end {
            bits |= POLLIN | POLLRDHUP;
        }
        if is_at_end && found.shut_write {
            bits |= POLLHUP;
        }
        // While a message is received in parts, only the rest of it counts.
        let rest = found.turns.held_by();
        if found.turns.is_free()
            || rest.is_some_and(|id| self.associations.is_receivable(&self.ports, id))
        {
            bits |= POLLIN;
        }
        let may_write = !found.is_one_to_one() || found.state != SocketState::Closed;
        if may_write && found.full == 0 {
            bits |= POLLOUT;
        }
        PollReadiness(bits)
    }

    /// Reports changed results, and wakes waiting calls.
    pub(super) fn publish_readiness(&mut self) {
        while let Some(id) = self.sockets.pop_touched() {
            let now = self.readiness(id);
            let Some(found) = self.sockets.get_mut(id) else { continue };
            if core::mem::take(&mut found.awaited) {
                self.outputs.push_back(StackOutput::Retry(id));
            }
            let has_arrived = core::mem::take(&mut found.has_arrived);
            let previous = core::mem::replace(&mut found.reported, now);
            if previous != now {
                self.outputs.push_back(StackOutput::Readiness(id, now));
            }
            if has_arrived && previous.has(POLLIN) && now.has(POLLIN) {
                self.outputs.push_back(StackOutput::Arrived(id));
            }
        }
    }
}
