//! The effects of an event on an association, its socket and its program: states, errors, and
//! notifications (RFC 6458 §6.1).

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use eyas_sctp::event::{Event, LossReason, PathChange, ReconfigurationOutcome};
use eyas_sctp::identifier::{PathId, StreamId};

use super::super::association::AssocPhase;
use super::super::association_table::AssociationTable;
use super::super::names::with_port;
use super::super::ports::PortTable;
use super::super::send_room::{set_full, update_full};
use super::super::socket::SocketState;
use super::super::socket_table::SocketTable;
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

/// The association that an event is about, with what the event changes.
#[derive(Debug)]
pub(super) struct EventEffect<'a> {
    pub(super) now: Duration,
    pub(super) sockets: &'a mut SocketTable,
    pub(super) associations: &'a mut AssociationTable,
    pub(super) ports: &'a mut PortTable,
    pub(super) id: AssocId,
}

impl EventEffect<'_> {
    /// Handles the event.
    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Up { outbound, inbound, .. } => self.on_up((outbound, inbound)),
            Event::Restarted => {
                let streams = self.associations.get(self.id).map_or((0, 0), |assoc| assoc.streams);
                self.notify_change(AssocChange::Restart, 0, streams, &[]);
            }
            Event::Lost(reason) => self.on_lost(&reason),
            Event::Closed => {
                self.notify_change(AssocChange::ShutdownComplete, 0, (0, 0), &[]);
                self.on_ended();
            }
            Event::PeerShutdown => self.on_peer_shutdown(),
            Event::Readable => self.on_readable(),
            Event::Writable => {
                update_full(self.now, self.sockets, self.associations, self.ports, self.id);
            }
            Event::Path { path, remote, change } => self.on_path(path, remote, change),
            Event::SendFailed { stream, context, ppid, unordered, sent, data } => {
                let info = SndRcvInfo {
                    stream: stream.0,
                    flags: u16::from(unordered) * flag::SCTP_UNORDERED,
                    ppid: ppid.0.to_be(),
                    context,
                    association: self.id.0,
                    ..SndRcvInfo::default()
                };
                self.on_send_failed(&info, sent, &data);
            }
            Event::PartialDeliveryAborted { stream } => {
                let bytes = notice::partial_delivery_aborted(self.id.0, stream.0);
                self.notify(event::SCTP_PARTIAL_DELIVERY_EVENT, &[&bytes]);
            }
            Event::SenderDry => {
                let bytes = notice::plain(event::SCTP_SENDER_DRY_EVENT, self.id.0);
                self.notify(event::SCTP_SENDER_DRY_EVENT, &[&bytes]);
            }
            Event::StreamsReset { outgoing, streams, outcome } => {
                self.on_streams_reset(outgoing, &streams, outcome);
            }
            Event::StreamsAdded { outbound, inbound, outcome } => {
                if let Some(assoc) = self.associations.get_mut(self.id) {
                    assoc.streams = (outbound, inbound);
                }
                let bytes = notice::stream_change(flags_of(outcome), self.id.0, inbound, outbound);
                self.notify(event::SCTP_STREAM_CHANGE_EVENT, &[&bytes]);
            }
            Event::RemoteError { cause } => {
                let bytes = notice::remote_error(cause.to_be(), self.id.0, 0);
                self.notify(event::SCTP_REMOTE_ERROR, &[&bytes]);
            }
            Event::AssociationReset { outcome, next_tsn, expected_tsn } => {
                let (local, remote) = (next_tsn.0, expected_tsn.0);
                let bytes = notice::assoc_reset(flags_of(outcome), self.id.0, local, remote);
                self.notify(event::SCTP_ASSOC_RESET_EVENT, &[&bytes]);
            }
            // Neither has a notification (RFC 6458 §6.1).
            Event::Answered | Event::OwnAddress { .. } => {}
            // `Event` is open: what is added to it is to be added here.
            _ => debug_assert!(false, "an event without a notification"),
        }
    }

    fn on_up(&mut self, streams: (u16, u16)) {
        let Some(assoc) = self.associations.get_mut(self.id) else { return };
        if assoc.phase == AssocPhase::Opening {
            assoc.phase = AssocPhase::Up;
        }
        assoc.streams = streams;
        assoc.idle_since = self.now;
        let socket = assoc.socket;
        self.associations.schedule_autoclose(self.id);
        if let Some(found) = socket.and_then(|id| self.sockets.get_mut(id))
            && found.is_one_to_one()
            && found.state == SocketState::Closed
        {
            found.state = SocketState::Established;
        }
        self.associations.refresh_paths(self.ports, self.id);
        self.notify_change(AssocChange::Up, 0, streams, &[]);
        let status = self.associations.status(self.ports, self.id);
        let authenticates = status.is_some_and(|it| it.agreed.authentication);
        if !authenticates {
            let bytes = notice::no_authentication(self.id.0);
            self.notify(event::SCTP_AUTHENTICATION_EVENT, &[&bytes]);
        }
    }

    fn on_peer_shutdown(&mut self) {
        let Some(assoc) = self.associations.get_mut(self.id) else { return };
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
        let bytes = notice::plain(event::SCTP_SHUTDOWN_EVENT, self.id.0);
        self.notify(event::SCTP_SHUTDOWN_EVENT, &[&bytes]);
    }

    fn on_readable(&mut self) {
        let Some(assoc) = self.associations.get_mut(self.id) else { return };
        assoc.idle_since = self.now;
        let has_stopped_reading = match assoc.socket.and_then(|id| self.sockets.get(id)) {
            Some(found) => found.shut_read && !assoc.peer_ended,
            None => assoc.listener.is_none(),
        };
        if has_stopped_reading {
            self.ports.drop_received(self.now, assoc.key);
        }
    }

    fn on_lost(&mut self, reason: &LossReason) {
        let Some(assoc) = self.associations.get_mut(self.id) else { return };
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
        self.notify_change(change, error, (0, 0), &info);
        self.on_ended();
    }

    fn on_ended(&mut self) {
        set_full(self.sockets, self.associations, self.id, false);
        if let Some(assoc) = self.associations.get_mut(self.id) {
            assoc.phase = AssocPhase::Ended;
        }
    }

    fn on_path(&mut self, path: PathId, remote: SocketAddr, change: PathChange) {
        let was_known = self.associations.get(self.id).is_some_and(|it| it.paths.len() > 1);
        self.associations.refresh_paths(self.ports, self.id);
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
        let Some(assoc) = self.associations.get(self.id) else { return };
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
        let bytes = notice::peer_address_change(shown, state, 0, self.id.0);
        self.notify(event::SCTP_PEER_ADDR_CHANGE, &[&bytes]);
    }

    fn on_send_failed(&mut self, info: &SndRcvInfo, sent: bool, data: &[u8]) {
        let Some(assoc) = self.associations.get_mut(self.id) else { return };
        let count = if sent { &mut assoc.abandoned.1 } else { &mut assoc.abandoned.0 };
        *count += 1;
        let size = assoc.fragmentation_point(self.ports).max(1);
        // Linux reports each chunk, with the flags needed to reassemble the message.
        let last = data.len().saturating_sub(1) / size;
        for (number, piece) in data.chunks(size).enumerate() {
            let begins = u16::from(number == 0) * CHUNK_BEGINS;
            let ends = u16::from(number == last) * CHUNK_ENDS;
            let unordered = (info.flags & flag::SCTP_UNORDERED) * CHUNK_UNORDERED;
            let flags = begins | ends | unordered;
            let old = SndRcvInfo { flags, ..*info };
            let head = notice::send_failed(sent, 0, &old.encode(), self.id.0, piece.len());
            self.notify(event::SCTP_SEND_FAILED, &[&head, piece]);
            let new = SndInfo {
                stream: info.stream,
                flags,
                ppid: info.ppid,
                context: info.context,
                association: self.id.0,
            };
            let head = notice::send_failed_event(sent, 0, &new.encode(), self.id.0, piece.len());
            self.notify(event::SCTP_SEND_FAILED_EVENT, &[&head, piece]);
        }
    }

    fn on_streams_reset(
        &mut self,
        outgoing: bool,
        streams: &[StreamId],
        outcome: ReconfigurationOutcome,
    ) {
        let direction = if outgoing { 2 } else { 1 };
        let head = notice::stream_reset(direction | flags_of(outcome), self.id.0, streams.len());
        let mut list = alloc::vec![0; 2 * streams.len()];
        for (place, stream) in streams.iter().enumerate() {
            put_u16(&mut list, 2 * place, stream.0);
        }
        self.notify(event::SCTP_STREAM_RESET_EVENT, &[&head, &list]);
    }

    fn notify_change(&mut self, change: AssocChange, error: u16, streams: (u16, u16), info: &[u8]) {
        // On a one-to-many socket, an association that was never established has no identifier.
        let holder = self.associations.get(self.id).and_then(|assoc| assoc.socket);
        let is_one_to_many =
            holder.and_then(|id| self.sockets.get(id)).is_some_and(|it| !it.is_single());
        let shown =
            if change == AssocChange::CannotStart && is_one_to_many { 0 } else { self.id.0 };
        let head = notice::assoc_change(change, error, streams, shown, info.len());
        self.notify(event::SCTP_ASSOC_CHANGE, &[&head, info]);
        // Data in the packet that established the association comes after this notification.
        if change == AssocChange::Up
            && let Some(assoc) = self.associations.get_mut(self.id)
        {
            assoc.delivery.hasten_last_notification();
        }
    }

    /// Queues a notification, if the program has subscribed to its type.
    fn notify(&mut self, kind: u16, parts: &[&[u8]]) {
        if let Some(assoc) = self.associations.get_mut(self.id) {
            assoc.notify(self.now, self.ports, kind, parts);
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
