//! Handles the events of endpoints: states, errors, and notifications (RFC 6458 §6.1).

use alloc::vec::Vec;
use core::net::SocketAddr;

use eyas_sctp::event::{Event, LossReason, PathChange, ReconfigurationOutcome};
use eyas_sctp::identifier::{PathId, StreamId};

use super::Stack;
use super::association::{AssocPhase, SocketAssociation};
use super::names::with_port;
use super::ports::AssociationKey;
use super::send_room::{set_full, update_full};
use super::socket::SocketState;
use crate::abi::Errno;
use crate::abi::control::{SndInfo, SndRcvInfo};
use crate::abi::layout::put_u16;
use crate::abi::notification::{self as notice, AddressChange, AssocChange};
use crate::abi::number::{event, flag};
use crate::io::AssocId;

/// The cause code of a user-initiated abort (RFC 9260 §3.3.10.12).
const USER_INITIATED_ABORT: u16 = 12;
/// Flags of a DATA chunk (RFC 9260 §3.3.1): last fragment, first fragment, unordered.
const CHUNK_ENDS: u16 = 1;
const CHUNK_BEGINS: u16 = 2;
const CHUNK_UNORDERED: u16 = 4;

impl Stack {
    pub(super) fn handle_event(&mut self, key: AssociationKey, event: Event) {
        if let Event::Up { by_peer: true, .. } = event {
            self.register(key);
        }
        let Some(id) = self.ports.association(key) else { return };
        self.apply(id, event);
        let notified = self.associations.get(id).and_then(SocketAssociation::notified_socket);
        if let Some(socket) = notified {
            self.sockets.touch(socket);
        }
        self.schedule(id);
        self.forget_if_ended(id);
    }

    /// Registers an association that a peer has opened.
    fn register(&mut self, key: AssociationKey) {
        if self.ports.association(key).is_some() {
            return;
        }
        let owner = self.ports.owner(key.port);
        let owner = owner.and_then(|id| Some((id, self.sockets.get(id)?)));
        let (Some((listener, found)), Some(status)) = (owner, self.ports.status(key)) else {
            return;
        };
        let peers = |path: &eyas_sctp::endpoint::PathStatus| {
            (path.id, with_port(path.remote, status.remote_port))
        };
        let paths: Vec<(PathId, SocketAddr)> = status.paths.iter().map(peers).collect();
        let primary = paths.iter().find(|(path, _)| *path == status.primary);
        let Some(peer) = primary.or(paths.first()).map(|(_, peer)| *peer) else { return };
        let mut assoc = SocketAssociation::new(key, peer, found.settings.clone(), self.now);
        assoc.paths = paths;
        let waits = found.is_one_to_one();
        if waits {
            assoc.listener = Some(listener);
        } else {
            assoc.socket = Some(listener);
        }
        let id = self.add_association(assoc);
        if let Some(found) = self.sockets.get_mut(listener) {
            if waits {
                found.accepting.push_back(id);
                found.has_arrived = true;
            } else {
                found.associations.insert(id);
            }
        }
        self.refresh_listening(listener);
    }

    fn apply(&mut self, id: AssocId, event: Event) {
        match event {
            Event::Up { outbound, inbound, .. } => self.on_up(id, (outbound, inbound)),
            Event::Restarted => {
                let streams = self.associations.get(id).map_or((0, 0), |assoc| assoc.streams);
                self.notify_change(id, AssocChange::Restart, 0, streams, &[]);
            }
            Event::Lost(reason) => self.on_lost(id, &reason),
            Event::Closed => {
                self.notify_change(id, AssocChange::ShutdownComplete, 0, (0, 0), &[]);
                self.on_ended(id);
            }
            Event::PeerShutdown => self.on_peer_shutdown(id),
            Event::Readable => self.on_readable(id),
            Event::Writable => {
                let Self { now, sockets, associations, ports, .. } = self;
                update_full(*now, sockets, associations, ports, id);
            }
            Event::Path { path, remote, change } => self.on_path(id, path, remote, change),
            Event::SendFailed { stream, context, ppid, unordered, sent, data } => {
                let info = SndRcvInfo {
                    stream: stream.0,
                    flags: u16::from(unordered) * flag::SCTP_UNORDERED,
                    ppid: ppid.0.to_be(),
                    context,
                    association: id.0,
                    ..SndRcvInfo::default()
                };
                self.on_send_failed(id, &info, sent, &data);
            }
            Event::PartialDeliveryAborted { stream } => {
                let bytes = notice::partial_delivery_aborted(id.0, stream.0);
                self.notify(id, event::SCTP_PARTIAL_DELIVERY_EVENT, &[&bytes]);
            }
            Event::SenderDry => {
                let bytes = notice::plain(event::SCTP_SENDER_DRY_EVENT, id.0);
                self.notify(id, event::SCTP_SENDER_DRY_EVENT, &[&bytes]);
            }
            Event::StreamsReset { outgoing, streams, outcome } => {
                self.on_streams_reset(id, outgoing, &streams, outcome);
            }
            Event::StreamsAdded { outbound, inbound, outcome } => {
                if let Some(assoc) = self.associations.get_mut(id) {
                    assoc.streams = (outbound, inbound);
                }
                let bytes = notice::stream_change(flags_of(outcome), id.0, inbound, outbound);
                self.notify(id, event::SCTP_STREAM_CHANGE_EVENT, &[&bytes]);
            }
            Event::RemoteError { cause } => {
                let bytes = notice::remote_error(cause.to_be(), id.0, 0);
                self.notify(id, event::SCTP_REMOTE_ERROR, &[&bytes]);
            }
            Event::AssociationReset { outcome, next_tsn, expected_tsn } => {
                let (local, remote) = (next_tsn.0, expected_tsn.0);
                let bytes = notice::assoc_reset(flags_of(outcome), id.0, local, remote);
                self.notify(id, event::SCTP_ASSOC_RESET_EVENT, &[&bytes]);
            }
            // Neither has a notification (RFC 6458 §6.1).
            Event::Answered | Event::OwnAddress { .. } => {}
            // `Event` is open: what is added to it is to be added here.
            _ => debug_assert!(false, "an event without a notification"),
        }
    }

    fn on_up(&mut self, id: AssocId, streams: (u16, u16)) {
        let Some(assoc) = self.associations.get_mut(id) else { return };
        if assoc.phase == AssocPhase::Opening {
            assoc.phase = AssocPhase::Up;
        }
        assoc.streams = streams;
        assoc.idle_since = self.now;
        let socket = assoc.socket;
        self.associations.schedule_autoclose(id);
        if let Some(found) = socket.and_then(|id| self.sockets.get_mut(id))
            && found.is_one_to_one()
            && found.state == SocketState::Closed
        {
            found.state = SocketState::Established;
        }
        self.associations.refresh_paths(&self.ports, id);
        self.notify_change(id, AssocChange::Up, 0, streams, &[]);
        let status = self.associations.status(&self.ports, id);
        let authenticates = status.is_some_and(|it| it.agreed.authentication);
        if !authenticates {
            let bytes = notice::no_authentication(id.0);
            self.notify(id, event::SCTP_AUTHENTICATION_EVENT, &[&bytes]);
        }
    }

    fn on_peer_shutdown(&mut self, id: AssocId) {
        let Some(assoc) = self.associations.get_mut(id) else { return };
        assoc.phase = AssocPhase::Ending;
        assoc.peer_ended = true;
        let socket = assoc.socket;
        if let Some(found) = socket.and_then(|id| self.sockets.get_mut(id))
            && found.is_one_to_one()
            && found.state == SocketState::Established
        {
            found.state = SocketState::Closing;
            found.shut_read = true;
        }
        let bytes = notice::plain(event::SCTP_SHUTDOWN_EVENT, id.0);
        self.notify(id, event::SCTP_SHUTDOWN_EVENT, &[&bytes]);
    }

    fn on_readable(&mut self, id: AssocId) {
        let Some(assoc) = self.associations.get_mut(id) else { return };
        assoc.idle_since = self.now;
        let has_stopped_reading = match assoc.socket.and_then(|id| self.sockets.get(id)) {
            Some(found) => found.shut_read && !assoc.peer_ended,
            None => assoc.listener.is_none(),
        };
        if has_stopped_reading {
            self.ports.drop_received(self.now, assoc.key);
        }
    }

    fn on_lost(&mut self, id: AssocId, reason: &LossReason) {
        let Some(assoc) = self.associations.get_mut(id) else { return };
        let was_opening = assoc.phase == AssocPhase::Opening;
        let errno = errno_of(reason, was_opening);
        assoc.failure = was_opening.then_some(errno);
        if let Some(found) = assoc.socket.and_then(|id| self.sockets.get_mut(id))
            && found.is_one_to_one()
            && *reason != LossReason::Aborted
        {
            found.error = Some(errno);
        }
        let (error, info) = cause_of(reason);
        let change = if was_opening { AssocChange::CannotStart } else { AssocChange::Lost };
        self.notify_change(id, change, error, (0, 0), &info);
        self.on_ended(id);
    }

    fn on_ended(&mut self, id: AssocId) {
        set_full(&mut self.sockets, &mut self.associations, id, false);
        if let Some(assoc) = self.associations.get_mut(id) {
            assoc.phase = AssocPhase::Ended;
        }
    }

    fn on_path(&mut self, id: AssocId, path: PathId, remote: SocketAddr, change: PathChange) {
        let was_known = self.associations.get(id).is_some_and(|it| it.paths.len() > 1);
        self.associations.refresh_paths(&self.ports, id);
        let state = match change {
            // A single address is confirmed by the handshake, which SCTP_COMM_UP reports.
            PathChange::Confirmed if !was_known => return,
            PathChange::Confirmed => AddressChange::Confirmed,
            PathChange::Active => AddressChange::Available,
            PathChange::PotentiallyFailed => AddressChange::PotentiallyFailed,
            PathChange::Inactive => AddressChange::Unreachable,
            PathChange::Added => AddressChange::Added,
            PathChange::Removed => AddressChange::Removed,
            PathChange::MadePrimary => AddressChange::MadePrimary,
            _ => return,
        };
        let Some(assoc) = self.associations.get(id) else { return };
        // SCTP_COMM_UP comes first, as on Linux: programs interpret anything before it as a
        // failure.
        if assoc.phase == AssocPhase::Opening {
            return;
        }
        if state == AddressChange::PotentiallyFailed && assoc.settings.expose_pf != 2 {
            return;
        }
        let known = assoc.paths.iter().find(|(other, _)| *other == path);
        let address = known.map_or(with_port(remote, assoc.peer.port()), |(_, peer)| *peer);
        let socket = assoc.notified_socket().and_then(|id| self.sockets.get(id));
        let shown = socket.map_or(address, |found| found.visible(address));
        let bytes = notice::peer_address_change(shown, state, 0, id.0);
        self.notify(id, event::SCTP_PEER_ADDR_CHANGE, &[&bytes]);
    }

    fn on_send_failed(&mut self, id: AssocId, info: &SndRcvInfo, sent: bool, data: &[u8]) {
        let Some(assoc) = self.associations.get_mut(id) else { return };
        let count = if sent { &mut assoc.abandoned.1 } else { &mut assoc.abandoned.0 };
        *count += 1;
        let size = assoc.fragmentation_point(&self.ports).max(1);
        // Linux reports each chunk, with the flags needed to reassemble the message.
        let last = data.len().saturating_sub(1) / size;
        for (number, piece) in data.chunks(size).enumerate() {
            let begins = u16::from(number == 0) * CHUNK_BEGINS;
            let ends = u16::from(number == last) * CHUNK_ENDS;
            let unordered = (info.flags & flag::SCTP_UNORDERED) * CHUNK_UNORDERED;
            let flags = begins | ends | unordered;
            let old = SndRcvInfo { flags, ..*info };
            let head = notice::send_failed(sent, 0, &old.encode(), id.0, piece.len());
            self.notify(id, event::SCTP_SEND_FAILED, &[&head, piece]);
            let new = SndInfo {
                stream: info.stream,
                flags,
                ppid: info.ppid,
                context: info.context,
                association: id.0,
            };
            let head = notice::send_failed_event(sent, 0, &new.encode(), id.0, piece.len());
            self.notify(id, event::SCTP_SEND_FAILED_EVENT, &[&head, piece]);
        }
    }

    fn on_streams_reset(
        &mut self,
        id: AssocId,
        outgoing: bool,
        streams: &[StreamId],
        outcome: ReconfigurationOutcome,
    ) {
        let direction = if outgoing { 2 } else { 1 };
        let head = notice::stream_reset(direction | flags_of(outcome), id.0, streams.len());
        let mut list = alloc::vec![0; 2 * streams.len()];
        for (place, stream) in streams.iter().enumerate() {
            put_u16(&mut list, 2 * place, stream.0);
        }
        self.notify(id, event::SCTP_STREAM_RESET_EVENT, &[&head, &list]);
    }

    fn notify_change(
        &mut self,
        id: AssocId,
        change: AssocChange,
        error: u16,
        streams: (u16, u16),
        info: &[u8],
    ) {
        // On a one-to-many socket, an association that was never established has no identifier.
        let holder = self.associations.get(id).and_then(|assoc| assoc.socket);
        let is_one_to_many =
            holder.and_then(|id| self.sockets.get(id)).is_some_and(|it| !it.is_single());
        let shown = if change == AssocChange::CannotStart && is_one_to_many { 0 } else { id.0 };
        let head = notice::assoc_change(change, error, streams, shown, info.len());
        self.notify(id, event::SCTP_ASSOC_CHANGE, &[&head, info]);
        // Data in the packet that established the association comes after this notification.
        if change == AssocChange::Up
            && let Some(assoc) = self.associations.get_mut(id)
        {
            assoc.delivery.hasten_last_notification();
        }
    }

    /// Queues a notification, if the program has subscribed to its type.
    fn notify(&mut self, id: AssocId, kind: u16, parts: &[&[u8]]) {
        if let Some(assoc) = self.associations.get_mut(id) {
            assoc.notify(self.now, &self.ports, kind, parts);
        }
    }
}

/// Returns the flags that report the outcome of a re-configuration request.
fn flags_of(outcome: ReconfigurationOutcome) -> u16 {
    match outcome {
        ReconfigurationOutcome::Performed => 0,
        ReconfigurationOutcome::Denied => 4,
        _ => 8,
    }
}

fn errno_of(reason: &LossReason, was_opening: bool) -> Errno {
    match reason {
        LossReason::NoAnswer | LossReason::PeerUnreachable | LossReason::Stalled => {
            Errno::ETIMEDOUT
        }
        LossReason::Refused(
            eyas_sctp::io::Unreachable::Route | eyas_sctp::io::Unreachable::Local,
        ) => Errno::EHOSTUNREACH,
        _ if was_opening => Errno::ECONNREFUSED,
        _ => Errno::ECONNRESET,
    }
}

/// Returns `sac_error`, a cause in network byte order, and `sac_info`, the cause as it was on the
/// wire.
fn cause_of(reason: &LossReason) -> (u16, Vec<u8>) {
    let (cause, text) = match reason {
        LossReason::AbortedByPeer { causes, reason } => {
            (causes.first().copied().unwrap_or_default(), reason.as_ref())
        }
        LossReason::Aborted => (USER_INITIATED_ABORT, &[][..]),
        LossReason::ProtocolViolation { cause } => (*cause, &[][..]),
        _ => (0, &[][..]),
    };
    let from_peer = matches!(reason, LossReason::AbortedByPeer { .. }) && cause != 0;
    let mut info = Vec::new();
    if from_peer {
        let length = u16::try_from(4 + text.len()).unwrap_or(u16::MAX);
        info.extend_from_slice(&cause.to_be_bytes());
        info.extend_from_slice(&length.to_be_bytes());
        info.extend_from_slice(text);
    }
    (cause.to_be(), info)
}
