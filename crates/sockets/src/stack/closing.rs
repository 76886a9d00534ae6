//! `shutdown`, `close`, and associations that have ended.

use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

use super::Stack;
use super::association::{AssocPhase, SocketAssociation};
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
        let found = self.socket_mut(socket)?;
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
        self.touch_socket(socket);
        Ok(())
    }

    /// Called when the last descriptor of a socket was closed.
    pub fn close(&mut self, now: Duration, socket: SocketId) -> CloseResult {
        self.advance_to(now);
        let Some(closed) = self.sockets.remove(&socket) else { return CloseResult::Done };
        let linger = closed.shared.linger;
        let mut is_alive = false;
        let all: Vec<AssocId> =
            closed.associations.iter().chain(&closed.accepting).copied().collect();
        // Unread data of one association aborts all of them, because in Linux they share a receive
        // queue.
        let dropped: Vec<bool> = all.iter().map(|id| self.drop_unread(*id)).collect();
        let unread = dropped.contains(&true);
        for id in all {
            if let Some(assoc) = self.associations.get_mut(&id) {
                (assoc.socket, assoc.listener) = (None, None);
            }
            if unread || linger == Some(Duration::ZERO) {
                self.abort(id, Bytes::new());
            } else {
                self.begin_shutdown(id);
            }
            is_alive |= self.associations.get(&id).is_some_and(SocketAssociation::is_alive);
            self.forget_if_ended(id);
        }
        if let Some(key) = closed.port {
            if let Some(port) = self.ports.get_mut(&key) {
                port.sockets.remove(&socket);
                if port.owner == Some(socket) {
                    (port.owner, port.listens) = (None, false);
                    port.endpoint.listen(None);
                }
            }
            self.touch_port(key);
            self.release_port(key);
        }
        match linger {
            Some(wait) if is_alive && !wait.is_zero() && closed.is_one_to_one() => {
                self.lingering.extend(closed.associations.iter().map(|id| (*id, socket)));
                CloseResult::Lingers(wait)
            }
            _ => CloseResult::Done,
        }
    }

    /// Drops everything unread, and returns whether data was among it.
    fn drop_unread(&mut self, id: AssocId) -> bool {
        let Some(assoc) = self.associations.get_mut(&id) else { return false };
        let mut unread = assoc.has_unread_data();
        assoc.current = None;
        assoc.ahead.clear();
        assoc.notices.clear();
        let (key, inner) = (assoc.port, assoc.inner);
        let had_messages = self.at_port(key, |endpoint, now| {
            let mut any = false;
            while endpoint.receive(now, inner).is_some() {
                any = true;
            }
            any
        });
        unread |= had_messages.unwrap_or_default();
        unread
    }

    /// Drops arriving data of a socket that no longer reads.
    pub(super) fn drop_incoming(&mut self, id: AssocId) {
        let Some(assoc) = self.associations.get(&id) else { return };
        let (key, inner) = (assoc.port, assoc.inner);
        self.at_port(key, |endpoint, now| while endpoint.receive(now, inner).is_some() {});
    }

    /// Shuts an association down gracefully.
    pub(super) fn begin_shutdown(&mut self, id: AssocId) {
        let Some(assoc) = self.associations.get_mut(&id) else { return };
        if !assoc.is_alive() {
            return;
        }
        if assoc.phase == AssocPhase::Up {
            assoc.phase = AssocPhase::Ending;
        }
        let (key, inner) = (assoc.port, assoc.inner);
        self.at_port(key, |endpoint, now| {
            // It may already have ended.
            let _ = endpoint.shutdown(now, inner);
        });
    }

    /// Aborts an association.
    pub(super) fn abort(&mut self, id: AssocId, reason: Bytes) {
        let Some(assoc) = self.associations.get(&id) else { return };
        let (key, inner) = (assoc.port, assoc.inner);
        self.at_port(key, |endpoint, now| {
            // It may already have ended.
            let _ = endpoint.abort(now, inner, reason);
        });
    }

    /// Removes an association that has ended once there is nothing left to receive from it. A
    /// socket with a single association keeps it, for its names.
    pub(super) fn forget_if_ended(&mut self, id: AssocId) {
        let Some(assoc) = self.associations.get(&id) else { return };
        let holder = assoc.socket.or(assoc.listener).and_then(|id| self.sockets.get(&id));
        let is_kept = holder.is_some_and(|socket| socket.is_single());
        if assoc.is_alive() || is_kept || (holder.is_some() && self.is_receivable(id)) {
            return;
        }
        self.forget(id);
    }

    /// Removes ended associations of a one-to-one socket, so that a new attempt is independent of a
    /// failed one.
    pub(super) fn forget_ended(&mut self, socket: SocketId) {
        let Some(found) = self.sockets.get(&socket) else { return };
        let dead = |id: &AssocId| self.associations.get(id).is_none_or(|one| !one.is_alive());
        let ended: Vec<AssocId> = found.associations.iter().copied().filter(dead).collect();
        if found.is_single() {
            ended.into_iter().for_each(|id| self.forget(id));
        }
    }

    fn forget(&mut self, id: AssocId) {
        let Some(assoc) = self.associations.remove(&id) else { return };
        if let Some(socket) = assoc.socket
            && let Some(found) = self.sockets.get_mut(&socket)
        {
            found.associations.remove(&id);
            found.turns.retain(|(other, _)| *other != id);
            found.sticky = found.sticky.filter(|other| *other != id);
            found.full -= usize::from(assoc.is_full && found.full > 0);
            self.touch_socket(socket);
        }
        self.at_port(assoc.port, |endpoint, now| endpoint.forget(now, assoc.inner));
        if let Some(port) = self.ports.get_mut(&assoc.port) {
            port.associations.remove(&assoc.inner);
        }
        if let Some(socket) = self.lingering.remove(&id) {
            self.outputs.push_back(StackOutput::Closed(socket));
        }
    }

    /// Sets the timer that closes an established association when it is idle, if `SCTP_AUTOCLOSE`
    /// is set.
    pub(super) fn schedule_autoclose(&mut self, id: AssocId) {
        if let Some(assoc) = self.associations.get(&id)
            && let Some(idle_limit) = assoc.autoclose
        {
            self.idle.insert((assoc.idle_since.saturating_add(idle_limit), id));
        }
    }

    /// Shuts down associations that have been idle for too long, and returns when to check again.
    pub(super) fn autoclose(&mut self) -> Option<Duration> {
        while let Some(&(due, id)) = self.idle.first() {
            if due > self.now {
                return Some(due);
            }
            self.idle.remove(&(due, id));
            let Some(assoc) = self.associations.get(&id) else { continue };
            let (AssocPhase::Up, Some(idle_limit)) = (assoc.phase, assoc.autoclose) else {
                continue;
            };
            if assoc.idle_since.saturating_add(idle_limit) <= self.now {
                self.begin_shutdown(id);
            } else {
                self.schedule_autoclose(id);
            }
        }
        None
    }
}
