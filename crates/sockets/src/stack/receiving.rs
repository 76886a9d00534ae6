//! `recvmsg`: messages and notifications in the order of their arrival.

use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

use eyas_sctp::message::Message;

use super::Stack;
use super::association::{Assoc, Current};
use super::socket::{Socket, SocketState};
use crate::abi::Errno;
use crate::abi::control::{self, NxtInfo, RcvInfo, SndRcvInfo, padded};
use crate::abi::number::{cmsg, event, flag, level, msg};
use crate::io::{AssocId, Incoming, SocketId};

impl Stack {
    /// `recvmsg`: of what came first, as much as there is `room` for; the next call gives the rest.
    /// `MSG_PEEK` leaves it. `flags` with `MSG_DONTWAIT` if the call does not block: whether nothing is
    /// there yet or nothing will ever come, it says `EAGAIN` then.
    ///
    /// # Errors
    /// `EAGAIN`, `ENOTCONN`, `ECONNRESET`, …
    pub fn receive(
        &mut self,
        now: Duration,
        socket: SocketId,
        room: usize,
        flags: i32,
    ) -> Result<Incoming, Errno> {
        self.see(now);
        let found = self.socket_of(socket)?;
        if found.is_one_to_one() && found.state == SocketState::Listening {
            return Err(Errno::ENOTCONN);
        }
        let Some(id) = self.next_turn(socket) else { return self.nothing_there(socket, flags) };
        let incoming = self.describe(socket, id, room)?;
        if flags & msg::MSG_PEEK == 0 && room > 0 {
            self.take(socket, id, incoming.data.len());
        }
        Ok(incoming)
    }

    /// `ioctl(FIONREAD)`: bytes left of the first message.
    ///
    /// # Errors
    /// `ENOTCONN` on a listener.
    pub fn bytes_readable(&mut self, now: Duration, socket: SocketId) -> Result<usize, Errno> {
        self.see(now);
        let found = self.socket_of(socket)?;
        if found.is_one_to_one() && found.state == SocketState::Listening {
            return Err(Errno::ENOTCONN);
        }
        let Some(id) = self.next_turn(socket) else { return Ok(0) };
        let current = self.associations.get(&id).and_then(|assoc| assoc.current.as_ref());
        Ok(current.map_or(0, |current| rest_of(current).len()))
    }

    /// What a call returns where nothing waits.
    fn nothing_there(&mut self, socket: SocketId, flags: i32) -> Result<Incoming, Errno> {
        let found = self.socket_mut(socket)?;
        if let Some(error) = found.error.take() {
            self.touch_socket(socket);
            return Err(error);
        }
        if found.shut_read && !self.awaits_the_end(socket) {
            return Ok(Incoming::default());
        }
        let found = self.socket_of(socket)?;
        let listens = found.state == SocketState::Listening;
        let alive = |id: &AssocId| self.associations.get(id).is_some_and(Assoc::is_alive);
        let may_come = listens || found.associations.iter().any(alive);
        if !may_come && flags & msg::MSG_DONTWAIT == 0 {
            return Err(Errno::ENOTCONN);
        }
        self.socket_mut(socket)?.awaited = true;
        Err(Errno::EAGAIN)
    }

    /// The association whose turn it is, with something in hand. Those that have nothing after all
    /// lose their turn.
    fn next_turn(&mut self, socket: SocketId) -> Option<AssocId> {
        loop {
            let found = self.sockets.get(&socket)?;
            let id = match found.sticky {
                Some(id) => id,
                None => found.turns.front()?.0,
            };
            if self.fill_hand(id) {
                return Some(id);
            }
            if found_is_stuck(self, socket, id) {
                return None;
            }
            self.end_turn(socket, id);
        }
    }

    /// Takes what is next for an association's program in hand, if there is anything.
    fn fill_hand(&mut self, id: AssocId) -> bool {
        let Some(assoc) = self.associations.get(&id) else { return false };
        if assoc.current.is_some() {
            return true;
        }
        let due = assoc.notices.front().is_some_and(|notice| notice.after <= assoc.taken);
        if !due && self.look_ahead(id) {
            let Some(assoc) = self.associations.get_mut(&id) else { return false };
            let Some(mut message) = assoc.ahead.pop_front() else { return false };
            assoc.taken += 1;
            let data = core::mem::take(&mut message.data).into_bytes();
            assoc.current = Some(Current::Message(message, data));
            return true;
        }
        let Some(assoc) = self.associations.get_mut(&id) else { return false };
        let Some(notice) = assoc.notices.pop_front() else { return false };
        assoc.current = Some(Current::Notification(notice.bytes));
        true
    }

    /// Whether a message waits behind what is in hand; looks at the endpoint.
    fn look_ahead(&mut self, id: AssocId) -> bool {
        let Some(assoc) = self.associations.get(&id) else { return false };
        if !assoc.ahead.is_empty() {
            return true;
        }
        let (key, inner) = (assoc.port, assoc.inner);
        let taken = self.at_port(key, |endpoint, now| endpoint.receive(now, inner));
        let Some(message) = taken.flatten() else { return false };
        if let Some(assoc) = self.associations.get_mut(&id) {
            assoc.ahead.push_back(message);
        }
        true
    }

    /// What is in hand, as much as there is room for, with all that goes with it.
    fn describe(&mut self, socket: SocketId, id: AssocId, room: usize) -> Result<Incoming, Errno> {
        if self.socket_of(socket)?.shared.receive_nxtinfo {
            self.look_ahead(id);
        }
        let found = self.socket_of(socket)?;
        let assoc = self.associations.get(&id).ok_or(Errno::EAGAIN)?;
        let current = assoc.current.as_ref().ok_or(Errno::EAGAIN)?;
        let rest = rest_of(current);
        let data = rest.slice(..rest.len().min(room));
        let is_last = data.len() == rest.len();
        let mut incoming =
            Incoming { name: Some(found.name(assoc.peer)), data, ..Incoming::default() };
        match current {
            Current::Notification(_) => {
                incoming.flags |= msg::MSG_NOTIFICATION;
                incoming.flags |= if is_last { msg::MSG_EOR } else { 0 };
            }
            Current::Message(message, _) => {
                incoming.flags |= if is_last && message.ends { msg::MSG_EOR } else { 0 };
                incoming.control = describe_message(found, assoc, id, message);
            }
        }
        Ok(incoming)
    }

    /// How many bytes of the current message the program has read.
    fn take(&mut self, socket: SocketId, id: AssocId, count: usize) {
        let interleaves =
            self.sockets.get(&socket).is_some_and(|found| found.shared.fragment_interleave > 0);
        let Some(assoc) = self.associations.get_mut(&id) else { return };
        let Some(current) = &mut assoc.current else { return };
        let rest = match current {
            Current::Notification(rest) | Current::Message(_, rest) => rest,
        };
        *rest = rest.slice(count.min(rest.len())..);
        let is_open = !rest.is_empty();
        let has_more = matches!(current, Current::Message(message, _) if !message.ends);
        if !is_open {
            assoc.current = None;
            assoc.given += 1;
        }
        let sticks = is_open || (has_more && !interleaves && assoc.is_alive());
        if let Some(found) = self.sockets.get_mut(&socket) {
            found.sticky = sticks.then_some(id);
        }
        // A message may have come in parts that were not counted before.
        self.give_turn(id);
        self.drop_used_turns(socket);
        if !sticks && !self.has_something(id) {
            self.forget_if_over(id);
        }
        self.touch_socket(socket);
    }

    /// Takes turns out of the list for which all was given.
    fn drop_used_turns(&mut self, socket: SocketId) {
        let Some(found) = self.sockets.get_mut(&socket) else { return };
        while let Some((id, until)) = found.turns.front()
            && self.associations.get(id).is_none_or(|assoc| assoc.given >= *until)
        {
            found.turns.pop_front();
        }
    }

    /// An association whose turn it was has nothing after all.
    fn end_turn(&mut self, socket: SocketId, id: AssocId) {
        if let Some(found) = self.sockets.get_mut(&socket) {
            found.turns.retain(|(other, _)| *other != id);
            found.sticky = found.sticky.filter(|other| *other != id);
        }
        if let Some(assoc) = self.associations.get_mut(&id) {
            assoc.announced = assoc.given;
        }
        self.give_turn(id);
        self.drop_used_turns(socket);
        self.forget_if_over(id);
        self.touch_socket(socket);
    }

    /// Whether an association has something to receive.
    pub(super) fn has_something(&self, id: AssocId) -> bool {
        let Some(assoc) = self.associations.get(&id) else { return false };
        let port = self.ports.get(&assoc.port);
        assoc.has_waiting() || port.is_some_and(|port| port.endpoint.receivable(assoc.inner) > 0)
    }

    /// Puts an association at the end of its socket's list, if something of it has come since.
    pub(super) fn give_turn(&mut self, id: AssocId) {
        let Some(assoc) = self.associations.get_mut(&id) else { return };
        let Some(socket) = assoc.socket else { return };
        let Some(found) = self.sockets.get_mut(&socket) else { return };
        let port = self.ports.get(&assoc.port);
        let inside = port.map_or(0, |port| port.endpoint.receivable(assoc.inner));
        let arrived = assoc.given + (inside + assoc.waiting()) as u64;
        if arrived <= assoc.announced {
            return;
        }
        assoc.announced = arrived;
        match found.turns.back_mut() {
            Some((last, until)) if *last == id => *until = arrived,
            _ => found.turns.push_back((id, arrived)),
        }
        self.touch_socket(socket);
    }

    /// Whether the peer has said that it ends, and a program that asked for it is to hear that it did
    /// before it reads of the end. Linux, which handles both packets at once on one host, is rarely seen
    /// to do otherwise.
    pub(super) fn awaits_the_end(&self, socket: SocketId) -> bool {
        let only = self.sockets.get(&socket).and_then(Socket::only);
        only.and_then(|id| self.associations.get(&id)).is_some_and(|assoc| {
            let hears = assoc.settings.events & 1 << (event::SCTP_ASSOC_CHANGE & 0xff) != 0;
            hears && assoc.peer_ended && assoc.is_alive()
        })
    }
}

/// Whether the rest of a message that was begun has to be waited for.
fn found_is_stuck(stack: &Stack, socket: SocketId, id: AssocId) -> bool {
    let is_sticky = stack.sockets.get(&socket).is_some_and(|found| found.sticky == Some(id));
    is_sticky && stack.associations.get(&id).is_some_and(Assoc::is_alive)
}

fn rest_of(current: &Current) -> &Bytes {
    match current {
        Current::Notification(rest) | Current::Message(_, rest) => rest,
    }
}

/// Control messages: `NXTINFO`, `RCVINFO`, then `SNDRCV`.
fn describe_message(socket: &Socket, assoc: &Assoc, id: AssocId, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    if socket.shared.receive_nxtinfo
        && let Some(next) = assoc.ahead.front()
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
