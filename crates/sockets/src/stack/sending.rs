//! `sendmsg`, with its control messages.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;

use eyas_sctp::error::Error;
use eyas_sctp::identifier::{Ppid, StreamId};
use eyas_sctp::message::{MessageReliability, SendInfo};

use super::Stack;
use super::association::AssocPhase;
use super::names::{check_peer, read_name};
use super::ports::AssociationKey;
use super::send_room::{set_full, wanted_room};
use super::socket::{SctpSocket, SocketState};
use crate::abi::Errno;
use crate::abi::control::{ControlMessages, SndInfo, SndRcvInfo};
use crate::abi::layout::{array, u16_at, u32_at};
use crate::abi::number::{cmsg, flag, level};
use crate::io::{AssocId, SendRequest, SendResult, SocketId};
use crate::settings::{AssocSettings, InitMsg};

/// The parsed control messages of a call.
#[derive(Debug, Default)]
struct SendControl {
    /// `SCTP_SNDRCV` or `SCTP_SNDINFO`; only the former contains a lifetime.
    info: Option<SndRcvInfo>,
    has_lifetime: bool,
    init: Option<InitMsg>,
    more_addresses: Vec<IpAddr>,
}

impl Stack {
    /// `sendmsg`, with all its arguments. A message is accepted completely or not at all. On
    /// `EPIPE` the caller has to raise `SIGPIPE`.
    ///
    /// # Errors
    /// `EAGAIN` if the send buffer is full; `EPIPE`, `EMSGSIZE`, `EINVAL`, …
    pub fn send(
        &mut self,
        now: Duration,
        socket: SocketId,
        message: SendRequest<'_>,
    ) -> Result<SendResult, Errno> {
        self.advance_to(now);
        let outcome = self.send_checked(socket, &message);
        match outcome {
            // Report the pending error of the end instead, once.
            Err(Errno::EPIPE) => {
                let error = self.sockets.find_mut(socket)?.error.take();
                self.sockets.touch(socket);
                Err(error.unwrap_or(Errno::EPIPE))
            }
            other => other,
        }
    }

    fn send_checked(
        &mut self,
        socket: SocketId,
        message: &SendRequest<'_>,
    ) -> Result<SendResult, Errno> {
        let found = self.sockets.find(socket)?;
        if found.is_one_to_one() && found.state == SocketState::Listening {
            return Err(Errno::EPIPE);
        }
        let length = message.data.len();
        if length > found.shared.send_buffer {
            return Err(Errno::EMSGSIZE);
        }
        let control = read_control(message.control, found)?;
        let flags = control.info.map_or(0, |info| info.flags);
        check_flags(found, flags, length, !message.name.is_empty())?;
        let to = match message.name {
            [] => None,
            // A peeled-off socket has one peer, whatever address is given.
            _ if found.is_peeled => None,
            name => Some(read_name(found, name).map_err(|_| Errno::EINVAL)?.0),
        };
        let (id, connecting) = self.message_target(socket, to, &control)?;
        if flags & (flag::SCTP_EOF | flag::SCTP_ABORT) != 0 {
            return self.end_by_message(id, flags, message);
        }
        let info = self.send_info(socket, id, to, &control)?;
        self.enqueue(socket, id, &info, message)?;
        Ok(SendResult { length, association: id, connecting })
    }

    /// Returns the association that a message is for, opening one if necessary, and whether it was
    /// opened.
    fn message_target(
        &mut self,
        socket: SocketId,
        to: Option<SocketAddr>,
        control: &SendControl,
    ) -> Result<(AssocId, bool), Errno> {
        let found = self.sockets.find(socket)?;
        let Some(to) = to else {
            let id = if found.is_single() {
                self.associations.live_of(found)
            } else {
                let target = AssocId(control.info.map_or(0, |info| info.association));
                Some(target).filter(|id| found.associations.contains(id))
            };
            return Ok((id.ok_or(Errno::EPIPE)?, false));
        };
        check_peer(to)?;
        if let Some(id) = self.associations.find_peer(found, to) {
            return Ok((id, false));
        }
        let flags = control.info.map_or(0, |info| info.flags);
        if flags & (flag::SCTP_EOF | flag::SCTP_ABORT) != 0 {
            return Err(Errno::EINVAL);
        }
        let is_taken = matches!(found.state, SocketState::Established | SocketState::Closing);
        let previous = self.associations.only_of(found);
        if previous.is_some_and(|previous| previous.was_up() && previous.has_peer(to)) {
            return Err(Errno::EPIPE);
        }
        if found.is_single() && (is_taken || self.associations.live_of(found).is_some()) {
            return Err(Errno::EADDRNOTAVAIL);
        }
        let mut addresses = alloc::vec![to];
        addresses.extend(control.more_addresses.iter().map(|ip| SocketAddr::new(*ip, to.port())));
        Ok((self.open(socket, &addresses, control.init)?, true))
    }

    /// `SCTP_EOF` and `SCTP_ABORT` (RFC 6458 §5.3.2).
    fn end_by_message(
        &mut self,
        id: AssocId,
        flags: u16,
        message: &SendRequest<'_>,
    ) -> Result<SendResult, Errno> {
        if flags & flag::SCTP_ABORT != 0 {
            self.abort(id, message.data.clone());
        } else {
            self.begin_shutdown(id);
        }
        Ok(SendResult { length: 0, association: id, connecting: false })
    }

    fn send_info(
        &self,
        socket: SocketId,
        id: AssocId,
        to: Option<SocketAddr>,
        control: &SendControl,
    ) -> Result<SendInfo, Errno> {
        let found = self.sockets.find(socket)?;
        let assoc = self.associations.get(id).ok_or(Errno::EPIPE)?;
        let mut send = assoc.settings.default_send;
        if let Some(info) = control.info {
            let lifetime = if control.has_lifetime { info.time_to_live } else { send.time_to_live };
            send = SndRcvInfo { time_to_live: lifetime, ..info };
        }
        let outbound = match assoc.phase {
            AssocPhase::Opening => assoc.settings.init.outbound,
            _ => assoc.streams.0,
        };
        if send.stream >= outbound {
            return Err(Errno::EINVAL);
        }
        let overrides = send.flags & flag::SCTP_ADDR_OVER != 0 || found.is_one_to_one();
        let path = to
            .filter(|_| overrides)
            .and_then(|to| assoc.paths.iter().find(|(_, peer)| *peer == to).map(|(path, _)| *path));
        Ok(SendInfo {
            stream: StreamId(send.stream),
            ppid: Ppid(u32::from_be(send.ppid)),
            unordered: send.flags & flag::SCTP_UNORDERED != 0,
            sack_immediately: send.flags & flag::SCTP_SACK_IMMEDIATELY != 0,
            reliability: reliability(&send),
            path,
            context: send.context,
        })
    }

    fn enqueue(
        &mut self,
        socket: SocketId,
        id: AssocId,
        info: &SendInfo,
        message: &SendRequest<'_>,
    ) -> Result<(), Errno> {
        let found = self.sockets.find(socket)?;
        let (room, refusing_from) = (found.room(), found.room_for(message.uses_reserve));
        let wanted = wanted_room(found);
        let whole = found.shared.disable_fragments;
        let assoc = self.associations.get(id).ok_or(Errno::EPIPE)?;
        if assoc.phase == AssocPhase::Ending {
            return Err(Errno::ESHUTDOWN);
        }
        if whole && message.data.len() > assoc.fragmentation_point(&self.ports) {
            return Err(Errno::EMSGSIZE);
        }
        let (now, AssociationKey { port, inner }) = (self.now, assoc.key);
        let data = message.data.clone();
        let queued = self.ports.with_endpoint(port, |endpoint| {
            if endpoint.queued(inner) >= refusing_from {
                endpoint.wait_for_room(now, inner, wanted);
                return (Err(Error::Full), true);
            }
            let outcome = endpoint.send(now, inner, info, data);
            let is_full = endpoint.queued(inner) >= room;
            if is_full {
                endpoint.wait_for_room(now, inner, wanted);
            }
            (outcome, is_full)
        });
        let (outcome, is_full) = queued.unwrap_or((Err(Error::NoAssociation), false));
        let is_full = is_full || outcome == Err(Error::Full);
        set_full(&mut self.sockets, &mut self.associations, id, is_full);
        if let Some(assoc) = self.associations.get_mut(id).filter(|_| outcome.is_ok()) {
            assoc.idle_since = now;
        }
        outcome.map_err(|error| match error {
            Error::Full => {
                if let Ok(found) = self.sockets.find_mut(socket) {
                    found.awaited = true;
                }
                Errno::EAGAIN
            }
            Error::NoSuchStream | Error::EmptyMessage => Errno::EINVAL,
            Error::MessageTooLarge { .. } => Errno::EMSGSIZE,
            Error::WrongState => Errno::ESHUTDOWN,
            _ => Errno::EPIPE,
        })
    }
}

fn check_flags(
    socket: &SctpSocket,
    flags: u16,
    length: usize,
    has_name: bool,
) -> Result<(), Errno> {
    let ends = flags & (flag::SCTP_EOF | flag::SCTP_ABORT) != 0;
    let is_invalid = (socket.is_one_to_one() && ends)
        || (flags & flag::SCTP_EOF != 0 && length > 0)
        || (!ends && length == 0)
        || (flags & flag::SCTP_ADDR_OVER != 0 && !has_name);
    if is_invalid { Err(Errno::EINVAL) } else { Ok(()) }
}

/// Returns when a message is abandoned, according to the policy in its flags.
fn reliability(info: &SndRcvInfo) -> MessageReliability {
    let value = info.time_to_live;
    match info.flags & flag::SCTP_PR_SCTP_MASK {
        flag::SCTP_PR_SCTP_RTX => {
            MessageReliability::Retransmissions(u16::try_from(value).unwrap_or(u16::MAX))
        }
        flag::SCTP_PR_SCTP_PRIO => MessageReliability::Priority(value),
        // A time without a policy is also a lifetime (RFC 6458 §5.3.2).
        _ if value > 0 => MessageReliability::Lifetime(Duration::from_millis(value.into())),
        _ => MessageReliability::Reliable,
    }
}

/// All flags that a program may set.
const KNOWN: u16 = flag::SCTP_UNORDERED
    | flag::SCTP_SENDALL
    | flag::SCTP_ADDR_OVER
    | flag::SCTP_SACK_IMMEDIATELY
    | flag::SCTP_ABORT
    | flag::SCTP_PR_SCTP_MASK
    | flag::SCTP_EOF;

fn read_control(control: &[u8], socket: &SctpSocket) -> Result<SendControl, Errno> {
    let mut found = SendControl::default();
    let mut policy = None;
    for message in ControlMessages::new(control) {
        let message = message.map_err(|_| Errno::EINVAL)?;
        if message.level != level::SOL_SCTP {
            continue;
        }
        let data = message.data;
        match (message.kind, data.len()) {
            (cmsg::SCTP_INIT, 8) => found.init = Some(read_init(data, &socket.settings)),
            (cmsg::SCTP_SNDRCV, SndRcvInfo::LENGTH) => {
                found.info = Some(SndRcvInfo::read(data));
                found.has_lifetime = true;
            }
            (cmsg::SCTP_SNDINFO, SndInfo::LENGTH) => {
                let info = SndInfo::read(data);
                found.info = Some(SndRcvInfo {
                    stream: info.stream,
                    flags: info.flags,
                    ppid: info.ppid,
                    context: info.context,
                    association: info.association,
                    ..SndRcvInfo::default()
                });
            }
            (cmsg::SCTP_PRINFO, 8) => policy = Some((u16_at(data, 0), u32_at(data, 4))),
            // Ignored: the socket's active key is used.
            (cmsg::SCTP_AUTHINFO, 2) => {}
            (cmsg::SCTP_DSTADDRV4, 4) => {
                found.more_addresses.push(Ipv4Addr::from(array::<4>(data, 0)).into());
            }
            (cmsg::SCTP_DSTADDRV6, 16) => {
                found.more_addresses.push(Ipv6Addr::from(array::<16>(data, 0)).into());
            }
            _ => return Err(Errno::EINVAL),
        }
    }
    if found.info.is_some_and(|info| info.flags & !KNOWN != 0) {
        return Err(Errno::EINVAL);
    }
    if let Some((kind, value)) = policy {
        if kind & !flag::SCTP_PR_SCTP_MASK != 0 {
            return Err(Errno::EINVAL);
        }
        let info = found.info.get_or_insert(socket.settings.default_send);
        info.flags = info.flags & !flag::SCTP_PR_SCTP_MASK | kind;
        info.time_to_live = if kind == 0 { 0 } else { value };
        found.has_lifetime = true;
    }
    Ok(found)
}

fn read_init(data: &[u8], settings: &AssocSettings) -> InitMsg {
    let field = |offset, default| match u16_at(data, offset) {
        0 => default,
        value => value,
    };
    InitMsg {
        outbound: field(0, settings.init.outbound),
        max_inbound: field(2, settings.init.max_inbound),
        max_attempts: field(4, settings.init.max_attempts),
        max_timeout: field(6, settings.init.max_timeout),
    }
}
