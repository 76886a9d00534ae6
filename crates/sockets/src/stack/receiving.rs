//! `recvmsg`: messages and notifications in the order of their arrival.

use alloc::vec::Vec;
use core::time::Duration;

use eyas_sctp::message::Message;

use super::Stack;
use super::association::SocketAssociation;
use super::delivery::CurrentItem;
use super::socket::{SctpSocket, SocketState};
use crate::abi::Errno;
use crate::abi::control::{self, NxtInfo, RcvInfo, SndRcvInfo, padded};
use crate::abi::number::{cmsg, flag, level, msg};
use crate::io::{AssocId, ReceiveResult, SocketId};

impl Stack {
    /// `recvmsg`: returns the first message or notification, up to `room` bytes; the next call
    /// returns the rest. `MSG_PEEK` leaves it in the queue. `flags` must contain `MSG_DONTWAIT` for
    /// a non-blocking call, which fails with `EAGAIN` even if nothing can ever arrive.
    ///
    /// # Errors
    /// `EAGAIN`, `ENOTCONN`, `ECONNRESET`, …
    pub fn receive(
        &mut self,
        now: Duration,
        socket: SocketId,
        room: usize,
        flags: i32,
    ) -> Result<ReceiveResult, Errno> {
        self.advance_to(now);
        let found = self.sockets.find(socket)?;
        if found.is_one_to_one() && found.state == SocketState::Listening {
            return Err(Errno::ENOTCONN);
        }
        let Some(id) = self.next_turn(socket) else {
            return self.nothing_to_receive(socket, flags);
        };
        let incoming = self.describe(socket, id, room)?;
        if flags & msg::MSG_PEEK == 0 && room > 0 {
            self.consume(socket, id, incoming.data.len());
        }
        Ok(incoming)
    }

    /// `ioctl(FIONREAD)`: returns the number of bytes left in the first message.
    ///
    /// # Errors
    /// `ENOTCONN` on a listener.
    pub fn bytes_readable(&mut self, now: Duration, socket: SocketId) -> Result<usize, Errno> {
        self.advance_to(now);
        let found = self.sockets.find(socket)?;
        if found.is_one_to_one() && found.state == SocketState::Listening {
            return Err(Errno::ENOTCONN);
        }
        let Some(id) = self.next_turn(socket) else { return Ok(0) };
        let current = self.associations.get(id).and_then(|assoc| assoc.delivery.current());
        Ok(current.map_or(0, |current| current.rest().len()))
    }

    /// Returns the result of a call when there is nothing to receive.
    fn nothing_to_receive(&mut self, socket: SocketId, flags: i32) -> Result<ReceiveResult, Errno> {
        let found = self.sockets.find_mut(socket)?;
        if let Some(error) = found.error.take() {
            self.sockets.touch(socket);
            return Err(error);
        }
        if self.associations.is_at_end(found) {
            return Ok(ReceiveResult::default());
        }
        let found = self.sockets.find(socket)?;
        let listens = found.state == SocketState::Listening;
        let mut all = found.associations.iter();
        let may_arrive = listens || all.any(|id| self.associations.is_alive(*id));
        if !may_arrive && flags & msg::MSG_DONTWAIT == 0 {
            return Err(Errno::ENOTCONN);
        }
        self.sockets.find_mut(socket)?.awaited = true;
        Err(Errno::EAGAIN)
    }

    /// Returns the association whose turn it is, after filling its current item. Associations that
    /// turn out to have nothing lose their turn.
    fn next_turn(&mut self, socket: SocketId) -> Option<AssocId> {
        loop {
            let turns = &self.sockets.get(socket)?.turns;
            let id = turns.first()?;
            let is_held = turns.held_by().is_some();
            if self.fill_current(id) {
                return Some(id);
            }
            // The rest of a partly received message has to arrive first.
            if is_held && self.associations.is_alive(id) {
                return None;
            }
            self.end_turn(socket, id);
        }
    }

    /// Fills the current item of an association with what comes next, if there is anything.
    fn fill_current(&mut self, id: AssocId) -> bool {
        let Some(assoc) = self.associations.get_mut(id) else { return false };
        if assoc.delivery.needs_message()
            && let Some(message) = self.ports.receive(self.now, assoc.key)
        {
            assoc.delivery.add_message(message);
        }
        assoc.delivery.fill_current()
    }

    /// Returns as much of `current` as there is room for, with its name, flags and control
    /// messages.
    fn describe(
        &mut self,
        socket: SocketId,
        id: AssocId,
        room: usize,
    ) -> Result<ReceiveResult, Errno> {
        let found = self.sockets.find(socket)?;
        let assoc = self.associations.get_mut(id).ok_or(Errno::EAGAIN)?;
        if found.shared.receive_nxtinfo
            && assoc.delivery.next_message().is_none()
            && let Some(message) = self.ports.receive(self.now, assoc.key)
        {
            assoc.delivery.add_message(message);
        }
        let current = assoc.delivery.current().ok_or(Errno::EAGAIN)?;
        let rest = current.rest();
        let data = rest.slice(..rest.len().min(room));
        let is_last = data.len() == rest.len();
        let mut incoming =
            ReceiveResult { name: Some(found.name(assoc.peer)), data, ..ReceiveResult::default() };
        match current {
            CurrentItem::Notification(_) => {
                incoming.flags |= msg::MSG_NOTIFICATION;
                incoming.flags |= if is_last { msg::MSG_EOR } else { 0 };
            }
            CurrentItem::Message(message, _) => {
                incoming.flags |= if is_last && message.ends { msg::MSG_EOR } else { 0 };
                incoming.control = describe_message(found, assoc, id, message);
            }
        }
        Ok(incoming)
    }

    /// Removes bytes of the current item that the program has read.
    fn consume(&mut self, socket: SocketId, id: AssocId, count: usize) {
        let Some(assoc) = self.associations.get_mut(id) else { return };
        let Some(rest) = assoc.delivery.consume(count) else { return };
        let awaits_more = rest.has_more && assoc.is_alive();
        let mut stays_current = rest.is_open;
        if let Some(found) = self.sockets.get_mut(socket) {
            stays_current |= awaits_more && found.shared.fragment_interleave == 0;
            found.turns.hold(stays_current.then_some(id));
        }
        // A message may have arrived in parts that have not been counted yet.
        self.schedule(id);
        self.drop_used_turns(socket);
        if !stays_current {
            self.forget_if_ended(id);
        }
        self.sockets.touch(socket);
    }

    /// Removes turns that have been used up.
    fn drop_used_turns(&mut self, socket: SocketId) {
        if let Some(found) = self.sockets.get_mut(socket) {
            let delivered = |id| Some(self.associations.get(id)?.delivery.delivered());
            found.turns.drop_used(delivered);
        }
    }

    /// Ends the turn of an association that turned out to have nothing.
    fn end_turn(&mut self, socket: SocketId, id: AssocId) {
        if let Some(found) = self.sockets.get_mut(socket) {
            found.turns.remove(id);
        }
        if let Some(assoc) = self.associations.get_mut(id) {
            assoc.delivery.unschedule();
        }
        self.schedule(id);
        self.drop_used_turns(socket);
        self.forget_if_ended(id);
        self.sockets.touch(socket);
    }

    /// Adds a turn for an association to the end of its socket's list, if something new has arrived,
    /// and returns whether it has.
    pub(super) fn schedule(&mut self, id: AssocId) -> bool {
        let Some(assoc) = self.associations.get_mut(id) else { return false };
        let Some(socket) = assoc.socket else { return false };
        let Some(found) = self.sockets.get_mut(socket) else { return false };
        let in_endpoint = self.ports.receivable(assoc.key);
        let Some(until) = assoc.delivery.schedule(in_endpoint) else { return false };
        found.has_arrived = true;
        found.turns.add(id, until);
        self.sockets.touch(socket);
        true
    }
}

/// Returns the control messages: `NXTINFO`, `RCVINFO`, then `SNDRCV`.
fn describe_message(
    socket: &SctpSocket,
    assoc: &SocketAssociation,
    id: AssocId,
    message: &Message,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    if socket.shared.receive_nxtinfo
        && let Some(next) = assoc.delivery.next_message()
    {
        let info = NxtInfo {
            stream: next.stream.0,
            flags: flags_of(next),
            ppid: next.ppid.0.to_be(),
            length: u32::try_from(next.len()).unwrap_or(u32::MAX),
            association: id.0,
        };
        append(&mut bytes, cmsg::SCTP_NXTINFO, &info.encode());
    }
    if socket.shared.receive_rcvinfo {
        let info = RcvInfo {
            stream: message.stream.0,
            ssn: message.number as u16,
            flags: flags_of(message),
            ppid: message.ppid.0.to_be(),
            tsn: message.tsn.0,
            cumulative_tsn: message.tsn.0,
            context: assoc.settings.receive_context,
            association: id.0,
        };
        append(&mut bytes, cmsg::SCTP_RCVINFO, &info.encode());
    }
    if socket.settings.events & 1 != 0 {
        let info = SndRcvInfo {
            stream: message.stream.0,
            ssn: message.number as u16,
            flags: flags_of(message),
            ppid: message.ppid.0.to_be(),
            context: assoc.settings.receive_context,
            time_to_live: 0,
            tsn: message.tsn.0,
            cumulative_tsn: if message.unordered { message.tsn.0 } else { 0 },
            association: id.0,
        };
        append(&mut bytes, cmsg::SCTP_SNDRCV, &info.encode());
    }
    bytes
}

fn flags_of(message: &Message) -> u16 {
    if message.unordered { flag::SCTP_UNORDERED } else { 0 }
}

fn append(bytes: &mut Vec<u8>, kind: i32, data: &[u8]) {
    bytes.extend_from_slice(&control::header(level::SOL_SCTP, kind, data.len()));
    bytes.extend_from_slice(data);
    bytes.resize(padded(bytes.len()), 0);
}
