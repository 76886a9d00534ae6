//! `recvmsg`: messages and notifications in the order of their arrival.

use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

use eyas_sctp::message::Message;

use super::Stack;
use super::association::{CurrentMessage, SocketAssociation};
use super::socket::{SctpSocket, SocketState};
use crate::abi::Errno;
use crate::abi::control::{self, NxtInfo, RcvInfo, SndRcvInfo, padded};
use crate::abi::number::{cmsg, event, flag, level, msg};
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
        let found = self.socket_of(socket)?;
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
        let found = self.socket_of(socket)?;
        if found.is_one_to_one() && found.state == SocketState::Listening {
            return Err(Errno::ENOTCONN);
        }
        let Some(id) = self.next_turn(socket) else { return Ok(0) };
        let current = self.associations.get(&id).and_then(|assoc| assoc.current.as_ref());
        Ok(current.map_or(0, |current| rest_of(current).len()))
    }

    /// Returns the result of a call when there is nothing to receive.
    fn nothing_to_receive(&mut self, socket: SocketId, flags: i32) -> Result<ReceiveResult, Errno> {
        let found = self.socket_mut(socket)?;
        if let Some(error) = found.error.take() {
            self.touch_socket(socket);
            return Err(error);
        }
        if found.shut_read && !self.awaits_shutdown_complete(socket) {
            return Ok(ReceiveResult::default());
        }
        let found = self.socket_of(socket)?;
        let listens = found.state == SocketState::Listening;
        let alive =
            |id: &AssocId| self.associations.get(id).is_some_and(SocketAssociation::is_alive);
        let may_arrive = listens || found.associations.iter().any(alive);
        if !may_arrive && flags & msg::MSG_DONTWAIT == 0 {
            return Err(Errno::ENOTCONN);
        }
        self.socket_mut(socket)?.awaited = true;
        Err(Errno::EAGAIN)
    }

    /// Returns the association whose turn it is, after filling its `current`. Associations that
    /// turn out to have nothing lose their turn.
    fn next_turn(&mut self, socket: SocketId) -> Option<AssocId> {
        loop {
            let found = self.sockets.get(&socket)?;
            let id = match found.sticky {
                Some(id) => id,
                None => found.turns.front()?.0,
            };
            if self.fill_current(id) {
                return Some(id);
            }
            if must_wait_for_rest(self, socket, id) {
                return None;
            }
            self.end_turn(socket, id);
        }
    }

    /// Fills `current` of an association with what comes next, if there is anything.
    fn fill_current(&mut self, id: AssocId) -> bool {
        let Some(assoc) = self.associations.get(&id) else { return false };
        if assoc.current.is_some() {
            return true;
        }
        let due = assoc.notices.front().is_some_and(|notice| notice.after <= assoc.taken);
        if !due && self.prefetch(id) {
            let Some(assoc) = self.associations.get_mut(&id) else { return false };
            let Some(mut message) = assoc.ahead.pop_front() else { return false };
            assoc.taken += 1;
            let data = core::mem::take(&mut message.data).into_bytes();
            assoc.current = Some(CurrentMessage::Message(message, data));
            return true;
        }
        let Some(assoc) = self.associations.get_mut(&id) else { return false };
        let Some(notice) = assoc.notices.pop_front() else { return false };
        assoc.current = Some(CurrentMessage::Notification(notice.bytes));
        true
    }

    /// Takes a message from the endpoint in advance, and returns whether there is one after
    /// `current`.
    fn prefetch(&mut self, id: AssocId) -> bool {
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

    /// Returns as much of `current` as there is room for, with its name, flags and control
    /// messages.
    fn describe(
        &mut self,
        socket: SocketId,
        id: AssocId,
        room: usize,
    ) -> Result<ReceiveResult, Errno> {
        if self.socket_of(socket)?.shared.receive_nxtinfo {
            self.prefetch(id);
        }
        let found = self.socket_of(socket)?;
        let assoc = self.associations.get(&id).ok_or(Errno::EAGAIN)?;
        let current = assoc.current.as_ref().ok_or(Errno::EAGAIN)?;
        let rest = rest_of(current);
        let data = rest.slice(..rest.len().min(room));
        let is_last = data.len() == rest.len();
        let mut incoming =
            ReceiveResult { name: Some(found.name(assoc.peer)), data, ..ReceiveResult::default() };
        match current {
            CurrentMessage::Notification(_) => {
                incoming.flags |= msg::MSG_NOTIFICATION;
                incoming.flags |= if is_last { msg::MSG_EOR } else { 0 };
            }
            CurrentMessage::Message(message, _) => {
                incoming.flags |= if is_last && message.ends { msg::MSG_EOR } else { 0 };
                incoming.control = describe_message(found, assoc, id, message);
            }
        }
        Ok(incoming)
    }

    /// Removes bytes of `current` that the program has read.
    fn consume(&mut self, socket: SocketId, id: AssocId, count: usize) {
        let interleaves =
            self.sockets.get(&socket).is_some_and(|found| found.shared.fragment_interleave > 0);
        let Some(assoc) = self.associations.get_mut(&id) else { return };
        let Some(current) = &mut assoc.current else { return };
        let rest = match current {
            CurrentMessage::Notification(rest) | CurrentMessage::Message(_, rest) => rest,
        };
        *rest = rest.slice(count.min(rest.len())..);
        let is_open = !rest.is_empty();
        let has_more = matches!(current, CurrentMessage::Message(message, _) if !message.ends);
        if !is_open {
            assoc.current = None;
            assoc.delivered += 1;
        }
        let stays_current = is_open || (has_more && !interleaves && assoc.is_alive());
        if let Some(found) = self.sockets.get_mut(&socket) {
            found.sticky = stays_current.then_some(id);
        }
        // A message may have arrived in parts that have not been counted yet.
        self.schedule(id);
        self.drop_used_turns(socket);
        if !stays_current && !self.is_receivable(id) {
            self.forget_if_ended(id);
        }
        self.touch_socket(socket);
    }

    /// Removes turns that have been used up.
    fn drop_used_turns(&mut self, socket: SocketId) {
        let Some(found) = self.sockets.get_mut(&socket) else { return };
        while let Some((id, until)) = found.turns.front()
            && self.associations.get(id).is_none_or(|assoc| assoc.delivered >= *until)
        {
            found.turns.pop_front();
        }
    }

    /// Ends the turn of an association that turned out to have nothing.
    fn end_turn(&mut self, socket: SocketId, id: AssocId) {
        if let Some(found) = self.sockets.get_mut(&socket) {
            found.turns.retain(|(other, _)| *other != id);
            found.sticky = found.sticky.filter(|other| *other != id);
        }
        if let Some(assoc) = self.associations.get_mut(&id) {
            assoc.scheduled = assoc.delivered;
        }
        self.schedule(id);
        self.drop_used_turns(socket);
        self.forget_if_ended(id);
        self.touch_socket(socket);
    }

    /// Returns whether an association has something to receive.
    pub(super) fn is_receivable(&self, id: AssocId) -> bool {
        let Some(assoc) = self.associations.get(&id) else { return false };
        let port = self.ports.get(&assoc.port);
        assoc.has_waiting() || port.is_some_and(|port| port.endpoint.receivable(assoc.inner) > 0)
    }

    /// Adds a turn for an association to the end of its socket's list, if something new has
    /// arrived.
    pub(super) fn schedule(&mut self, id: AssocId) {
        let Some(assoc) = self.associations.get_mut(&id) else { return };
        let Some(socket) = assoc.socket else { return };
        let Some(found) = self.sockets.get_mut(&socket) else { return };
        let port = self.ports.get(&assoc.port);
        let in_endpoint = port.map_or(0, |port| port.endpoint.receivable(assoc.inner));
        let arrived = assoc.delivered + (in_endpoint + assoc.waiting()) as u64;
        if arrived <= assoc.scheduled {
            return;
        }
        assoc.scheduled = arrived;
        found.has_arrived = true;
        match found.turns.back_mut() {
            Some((last, until)) if *last == id => *until = arrived,
            _ => found.turns.push_back((id, arrived)),
        }
        self.touch_socket(socket);
    }

    /// Returns whether the peer is shutting down and the program, having subscribed to it, must
    /// receive `SCTP_SHUTDOWN_COMP` before it reads the end. Linux rarely behaves otherwise on a
    /// single host, where it handles both packets at once.
    pub(super) fn awaits_shutdown_complete(&self, socket: SocketId) -> bool {
        let only = self.sockets.get(&socket).and_then(SctpSocket::only);
        only.and_then(|id| self.associations.get(&id)).is_some_and(|assoc| {
            let is_subscribed = assoc.settings.events & 1 << (event::SCTP_ASSOC_CHANGE & 0xff) != 0;
            is_subscribed && assoc.peer_ended && assoc.is_alive()
        })
    }
}

/// Returns whether the rest of a partly received message has to arrive first.
fn must_wait_for_rest(stack: &Stack, socket: SocketId, id: AssocId) -> bool {
    let is_sticky = stack.sockets.get(&socket).is_some_and(|found| found.sticky == Some(id));
    is_sticky && stack.associations.get(&id).is_some_and(SocketAssociation::is_alive)
}

fn rest_of(current: &CurrentMessage) -> &Bytes {
    match current {
        CurrentMessage::Notification(rest) | CurrentMessage::Message(_, rest) => rest,
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
