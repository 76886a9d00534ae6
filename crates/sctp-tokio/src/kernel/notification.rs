//! The kernel's notifications about an association, in Linux's layout (RFC 6458 §6.1).

use std::net::SocketAddr;

use bytes::Bytes;
use eyas_sctp::event::{Event, LossReason, PathChange, ReconfigurationOutcome};
use eyas_sctp::identifier::{Ppid, StreamId};
use eyas_sctp::serial::Tsn;

use super::address;

const SCTP_ASSOC_CHANGE: u16 = 0x8001;
const SCTP_PEER_ADDR_CHANGE: u16 = 0x8002;
const SCTP_REMOTE_ERROR: u16 = 0x8004;
const SCTP_SHUTDOWN_EVENT: u16 = 0x8005;
const SCTP_PARTIAL_DELIVERY_EVENT: u16 = 0x8006;
const SCTP_SENDER_DRY_EVENT: u16 = 0x8009;
const SCTP_STREAM_RESET_EVENT: u16 = 0x800a;
const SCTP_ASSOC_RESET_EVENT: u16 = 0x800b;
const SCTP_STREAM_CHANGE_EVENT: u16 = 0x800c;
const SCTP_SEND_FAILED_EVENT: u16 = 0x800d;

const SCTP_STREAM_RESET_OUTGOING_SSN: u16 = 2;
/// Flags of a re-configuration.
const DENIED: u16 = 4;
const FAILED: u16 = 8;
/// A flag of a message that could not be delivered: a part of it may have arrived.
const SCTP_DATA_SENT: u16 = 1;
/// A flag that the message was sent with.
const SCTP_UNORDERED: u16 = 1;

/// The cause of a user-initiated abort (RFC 9260 §3.3.10.12), followed by the reason.
const USER_INITIATED_ABORT: u16 = 12;
/// The size of an association change notification, without the causes that the kernel appends.
const ASSOC_CHANGE: usize = 20;
/// The size of the notification of a message that could not be delivered, without its data.
const SEND_FAILED_EVENT: usize = 32;

/// A notification, converted to events of eyas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notification {
    Event(Event),
    /// A change of a path, whose number the association knows.
    Path(SocketAddr, PathChange),
}

/// Parses a notification; `None` for one that was not requested.
pub(super) fn parse(bytes: &[u8], by_peer: bool) -> Option<Notification> {
    let (kind, flags) = (short(bytes, 0)?, short(bytes, 2)?);
    let event = match kind {
        SCTP_ASSOC_CHANGE => assoc_change(bytes, by_peer)?,
        SCTP_PEER_ADDR_CHANGE => return path_change(bytes),
        SCTP_REMOTE_ERROR => {
            Event::RemoteError { cause: u16::from_be_bytes(*bytes.get(8..)?.first_chunk()?) }
        }
        SCTP_SHUTDOWN_EVENT => Event::PeerShutdown,
        SCTP_PARTIAL_DELIVERY_EVENT => {
            let stream = long(bytes, 16).and_then(|stream| u16::try_from(stream).ok());
            Event::PartialDeliveryAborted { stream: StreamId(stream?) }
        }
        SCTP_SENDER_DRY_EVENT => Event::SenderDry,
        SCTP_STREAM_RESET_EVENT => Event::StreamsReset {
            outgoing: flags & SCTP_STREAM_RESET_OUTGOING_SSN != 0,
            streams: streams(bytes.get(12..)?),
            outcome: outcome(flags),
        },
        SCTP_ASSOC_RESET_EVENT => Event::AssociationReset {
            outcome: outcome(flags),
            next_tsn: Tsn(long(bytes, 12)?),
            expected_tsn: Tsn(long(bytes, 16)?),
        },
        SCTP_STREAM_CHANGE_EVENT => Event::StreamsAdded {
            inbound: short(bytes, 12)?,
            outbound: short(bytes, 14)?,
            outcome: outcome(flags),
        },
        SCTP_SEND_FAILED_EVENT => Event::SendFailed {
            stream: StreamId(short(bytes, 12)?),
            context: long(bytes, 20)?,
            ppid: Ppid(u32::from_be(long(bytes, 16)?)),
            unordered: short(bytes, 14)? & SCTP_UNORDERED != 0,
            sent: flags & SCTP_DATA_SENT != 0,
            data: Bytes::copy_from_slice(bytes.get(SEND_FAILED_EVENT..).unwrap_or_default()),
        },
        _ => return None,
    };
    Some(Notification::Event(event))
}

/// Parses a `struct sctp_assoc_change`.
fn assoc_change(bytes: &[u8], by_peer: bool) -> Option<Event> {
    let causes = bytes.get(ASSOC_CHANGE..).unwrap_or_default();
    match short(bytes, 8)? {
        0 => {
            let (outbound, inbound) = (short(bytes, 12)?, short(bytes, 14)?);
            Some(Event::Up { outbound, inbound, by_peer })
        }
        1 if causes.is_empty() => Some(Event::Lost(LossReason::PeerUnreachable)),
        1 => Some(Event::Lost(aborted(causes))),
        2 => Some(Event::Restarted),
        3 => Some(Event::Closed),
        4 => Some(Event::Lost(LossReason::NoAnswer)),
        _ => None,
    }
}

/// Parses the error causes of the peer's ABORT, each with code and length, padded.
fn aborted(mut rest: &[u8]) -> LossReason {
    let (mut causes, mut reason) = (Vec::new(), Bytes::new());
    while let (Some(code), Some(length)) =
        (rest.first_chunk(), rest.get(2..).and_then(|bytes| bytes.first_chunk()))
    {
        let code = u16::from_be_bytes(*code);
        let length = usize::from(u16::from_be_bytes(*length));
        causes.push(code);
        if code == USER_INITIATED_ABORT {
            reason = Bytes::copy_from_slice(rest.get(4..length).unwrap_or_default());
        }
        if length < 4 {
            break;
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    LossReason::AbortedByPeer { causes, reason }
}

/// Parses a `struct sctp_paddr_change`.
fn path_change(bytes: &[u8]) -> Option<Notification> {
    let remote = address::decode(bytes.get(8..8 + address::STORAGE)?)?;
    let change = match long(bytes, 8 + address::STORAGE)? {
        0 => PathChange::Active,
        1 => PathChange::Inactive,
        2 => PathChange::Removed,
        3 => PathChange::Added,
        4 => PathChange::MadePrimary,
        5 => PathChange::Confirmed,
        6 => PathChange::PotentiallyFailed,
        _ => return None,
    };
    Some(Notification::Path(remote, change))
}

fn streams(list: &[u8]) -> Vec<StreamId> {
    list.chunks_exact(2).map(|two| StreamId(u16::from_ne_bytes([two[0], two[1]]))).collect()
}

fn outcome(flags: u16) -> ReconfigurationOutcome {
    match flags {
        _ if flags & FAILED != 0 => ReconfigurationOutcome::Failed,
        _ if flags & DENIED != 0 => ReconfigurationOutcome::Denied,
        _ => ReconfigurationOutcome::Performed,
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notification(kind: u16, flags: u16, rest: &[&[u8]]) -> Vec<u8> {
        let mut bytes = [kind.to_ne_bytes(), flags.to_ne_bytes()].concat();
        let length: usize = rest.iter().map(|part| part.len()).sum();
        bytes.extend(u32::try_from(8 + length).unwrap().to_ne_bytes());
        rest.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes
    }

    fn association(state: u16, info: &[u8]) -> Vec<u8> {
        let streams = [state, 0, 10, 20].map(u16::to_ne_bytes).concat();
        notification(SCTP_ASSOC_CHANGE, 0, &[&streams, &[0; 4], info])
    }

    fn event(bytes: &[u8]) -> Event {
        match parse(bytes, true) {
            Some(Notification::Event(event)) => event,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_life_cycle_of_an_association_is_reported() {
        let up = Event::Up { outbound: 10, inbound: 20, by_peer: true };
        assert_eq!(event(&association(0, &[])), up);
        assert_eq!(event(&association(1, &[])), Event::Lost(LossReason::PeerUnreachable));
        assert_eq!(event(&association(2, &[])), Event::Restarted);
        assert_eq!(event(&association(3, &[])), Event::Closed);
        assert_eq!(event(&notification(SCTP_SHUTDOWN_EVENT, 0, &[&[0; 4]])), Event::PeerShutdown);
    }

    #[test]
    fn an_abort_has_its_causes_and_its_reason() {
        let causes = [0, 13, 0, 5, 1, 0, 0, 0, 0, 12, 0, 8, b'a', b'w', b'a', b'y'];
        let reason =
            LossReason::AbortedByPeer { causes: vec![13, 12], reason: Bytes::from_static(b"away") };
        assert_eq!(event(&association(1, &causes)), Event::Lost(reason));
        // A length of zero ends the list, whatever follows.
        let causes = [0, 6, 0, 0, 0, 12, 0, 4];
        let reason = LossReason::AbortedByPeer { causes: vec![6], reason: Bytes::new() };
        assert_eq!(event(&association(1, &causes)), Event::Lost(reason));
    }

    #[test]
    fn reset_streams_are_reported() {
        let list = [3_u16, 4].map(u16::to_ne_bytes).concat();
        let bytes = notification(SCTP_STREAM_RESET_EVENT, 1, &[&[0; 4], &list]);
        let outcome = ReconfigurationOutcome::Performed;
        let streams = vec![StreamId(3), StreamId(4)];
        assert_eq!(event(&bytes), Event::StreamsReset { outgoing: false, streams, outcome });
        let bytes = notification(SCTP_STREAM_RESET_EVENT, 2 | 4, &[&[0; 4]]);
        let outcome = ReconfigurationOutcome::Denied;
        assert_eq!(event(&bytes), Event::StreamsReset { outgoing: true, streams: vec![], outcome });
    }

    #[test]
    fn a_path_change_has_the_address_of_the_path() {
        let remote = "192.0.2.2:5000".parse().unwrap();
        let storage = address::encode(remote);
        let state = 1_u32.to_ne_bytes();
        let bytes = notification(SCTP_PEER_ADDR_CHANGE, 0, &[&storage, &state, &[0; 8]]);
        assert_eq!(parse(&bytes, false), Some(Notification::Path(remote, PathChange::Inactive)));
    }

    #[test]
    fn a_truncated_notification_is_ignored() {
        for bytes in [association(0, &[]), notification(SCTP_STREAM_CHANGE_EVENT, 0, &[&[0; 8]])] {
            for length in 0..bytes.len().min(16) {
                assert_eq!(parse(&bytes[..length], false), None, "{length}");
            }
        }
    }
}
