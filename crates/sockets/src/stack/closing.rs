//! `shutdown`, `close`, and associations that have ended.

use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

use super::Stack;
use super::socket::SocketState;
use crate::abi::Errno;
use crate::abi::number::how;
use crate::io::{AssocId, CloseResult, SocketId, StackOutput};

impl Stack {
    /// `shutdown`.
    ///
    /// # Errors
    /// `ENOTCONN`, `EOPNOTSUPP`.
    pub fn shutdown(&mut self, now: Duration, socket: SocketId, how: i32) -> Result<(), Errno> {
        self.advance_to(now);
        if !(how::SHUT_RD..=how::SHUT_RDWR).contains(&how) {
            return Err(Errno::EINVAL);
        }
        let found = self.sockets.find_mut(socket)?;
        if found.is_peeled {
            return Ok(());
        }
        match found.state {
            SocketState::Listening if found.is_one_to_one() && how != how::SHUT_WR => {
                return Err(Errno::EOPNOTSUPP);
            }
            SocketState::Listening if found.is_one_to_one() => return Ok(()),
            SocketState::Closed | SocketState::Listening => return Err(Errno::ENOTCONN),
            SocketState::Established | SocketState::Closing => {}
        }
        found.shut_read |= how != how::SHUT_WR;
        let ends = how != how::SHUT_RD;
        found.shut_write |= ends;
        if ends && let Some(id) = found.only() {
            found.state = SocketState::Closing;
            self.begin_shutdown(id);
        }
        self.sockets.touch(socket);
        Ok(())
    }

    /// Called when the last descriptor of a socket was closed.
    pub fn close(&mut self, now: Duration, socket: SocketId) -> CloseResult {
        self.advance_to(now);
        let Some(closed) = self.sockets.remove(socket) else { return CloseResult::Done };
        let linger = closed.shared.linger;
        let mut is_alive = false;
        let all: Vec<AssocId> =
            closed.associations.iter().chain(&closed.accepting).copied().collect();
        // Unread data of one association aborts all of them, because in Linux they share a receive
        // queue.
        let dropped: Vec<bool> = all.iter().map(|id| self.drop_unread(*id)).collect();
        let unread = dropped.contains(&true);
        for id in all {
            if let Some(assoc) = self.associations.get_mut(id) {
                (assoc.socket, assoc.listener) = (None, None);
            }
            if unread || linger == Some(Duration::ZERO) {
                self.abort(id, Bytes::new());
            } else {
                self.begin_shutdown(id);
            }
            is_alive |= self.associations.is_alive(id);
            self.forget_if_ended(id);
        }
        if let Some(key) = closed.port {
            self.ports.close_socket(key, socket);
        }
        match linger {
            Some(wait) if is_alive && !wait.is_zero() && closed.is_one_to_one() => {
                for id in closed.associations {
                    self.associations.linger(id, socket);
                }
                CloseResult::Lingers(wait)
            }
            _ => CloseResult::Done,
        }
    }

    /// Drops everything unread, and returns whether data was among it.
    fn drop_unread(&mut self, id: AssocId) -> bool {
        let Some(assoc) = self.associations.get_mut(id) else { return false };
        let has_data = assoc.delivery.has_data();
        assoc.delivery.clear();
        self.ports.drop_received(self.now, assoc.key) || has_data
    }

    /// Shuts an association down gracefully.
    pub(super) fn begin_shutdown(&mut self, id: AssocId) {
        if let Some(key) = self.associations.begin_ending(id) {
            self.ports.shutdown(self.now, key);
        }
    }

    /// Aborts an association.
    pub(super) fn abort(&mut self, id: AssocId, reason: Bytes) {
        if let Some(assoc) = self.associations.get(id) {
            self.ports.abort(self.now, assoc.key, reason);
        }
    }

    /// Removes an association that has ended once there is nothing left to receive from it. A
    /// socket with a single association keeps it, for its names.
    pub(super) fn forget_if_ended(&mut self, id: AssocId) {
        let Some(assoc) = self.associations.get(id) else { return };
        if assoc.is_alive() {
            return;
        }
        let holder = assoc.notified_socket().and_then(|id| self.sockets.get(id));
        let is_kept =
            holder.is_some_and(|socket| socket.is_single() || assoc.is_receivable(&self.ports));
        if !is_kept {
            self.forget(id);
        }
    }

    /// Removes ended associations of a one-to-one socket, so that a new attempt is independent of a
    /// failed one.
    pub(super) fn forget_ended(&mut self, socket: SocketId) {
        let Some(found) = self.sockets.get(socket).filter(|found| found.is_single()) else {
            return;
        };
        let all = found.associations.iter().copied();
        let ended: Vec<AssocId> = all.filter(|id| !self.associations.is_alive(*id)).collect();
        ended.into_iter().for_each(|id| self.forget(id));
    }

    fn forget(&mut self, id: AssocId) {
        let Some((assoc, lingering)) = self.associations.remove(id) else { return };
        if let Some(socket) = assoc.socket
            && let Some(found) = self.sockets.get_mut(socket)
        {
            found.remove_association(id, assoc.is_full);
            self.sockets.touch(socket);
        }
        self.ports.remove_association(self.now, assoc.key);
        if let Some(socket) = lingering {
            self.outputs.push_back(StackOutput::Closed(socket));
        }
    }
}
