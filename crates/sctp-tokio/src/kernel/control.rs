//! The ancillary data of a message: `SCTP_SNDINFO`, `SCTP_PRINFO` and `SCTP_RCVINFO` (RFC 6458
//! §5.3).

use std::time::Duration;

use eyas_sctp::identifier::{Ppid, StreamId};
use eyas_sctp::message::{MessageReliability, SendInfo};
use eyas_sctp::serial::Tsn;
use nix::libc::c_int;

use crate::carrier::IPPROTO_SCTP;

const SCTP_SNDINFO: c_int = 2;
pub(super) const SCTP_RCVINFO: c_int = 3;
const SCTP_PRINFO: c_int = 5;

const SCTP_UNORDERED: u16 = 1;
/// Aborts the association; the message is the reason.
const SCTP_ABORT: u16 = 1 << 2;
const SCTP_SACK_IMMEDIATELY: u16 = 1 << 3;

const SCTP_PR_SCTP_TTL: u16 = 0x10;
const SCTP_PR_SCTP_RTX: u16 = 0x20;
const SCTP_PR_SCTP_PRIO: u16 = 0x30;

/// Space for the ancillary data of a message.
pub(super) const RECEIVED: usize = 128;

/// Returns the control messages for sending a message.
pub(super) fn for_message(info: &SendInfo) -> Vec<u8> {
    let mut flags = 0;
    if info.unordered {
        flags |= SCTP_UNORDERED;
    }
    if info.sack_immediately {
        flags |= SCTP_SACK_IMMEDIATELY;
    }
    let mut control = Vec::new();
    append_message(
        &mut control,
        SCTP_SNDINFO,
        &send_info(info.stream, flags, info.ppid, info.context),
    );
    if let Some((policy, value)) = policy(info.reliability) {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&policy.to_ne_bytes());
        bytes[4..].copy_from_slice(&value.to_ne_bytes());
        append_message(&mut control, SCTP_PRINFO, &bytes);
    }
    control
}

/// Returns the control message for aborting the association.
pub(super) fn for_abort() -> Vec<u8> {
    let mut control = Vec::new();
    append_message(&mut control, SCTP_SNDINFO, &send_info(StreamId(0), SCTP_ABORT, Ppid(0), 0));
    control
}

/// Encodes a `struct sctp_sndinfo`. The kernel passes on the PPID unchanged.
fn send_info(stream: StreamId, flags: u16, ppid: Ppid, context: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&stream.0.to_ne_bytes());
    bytes[2..4].copy_from_slice(&flags.to_ne_bytes());
    bytes[4..8].copy_from_slice(&ppid.0.to_be_bytes());
    bytes[8..12].copy_from_slice(&context.to_ne_bytes());
    bytes
}

/// Returns a policy of RFC 7496 and its value.
fn policy(reliability: MessageReliability) -> Option<(u16, u32)> {
    let milliseconds = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    match reliability {
        // 0 would mean forever.
        MessageReliability::Lifetime(time) => Some((SCTP_PR_SCTP_TTL, milliseconds(time).max(1))),
        MessageReliability::Retransmissions(count) => Some((SCTP_PR_SCTP_RTX, count.into())),
        MessageReliability::Priority(priority) => Some((SCTP_PR_SCTP_PRIO, priority)),
        _ => None,
    }
}

/// Appends one control message: length, level, type and data, as `CMSG_DATA` would place it.
fn append_message(control: &mut Vec<u8>, kind: c_int, data: &[u8]) {
    const WORD: usize = size_of::<usize>();
    let length = WORD + 2 * size_of::<c_int>() + data.len();
    control.extend_from_slice(&length.to_ne_bytes());
    control.extend_from_slice(&IPPROTO_SCTP.to_ne_bytes());
    control.extend_from_slice(&kind.to_ne_bytes());
    control.extend_from_slice(data);
    control.resize(control.len().next_multiple_of(WORD), 0);
}

/// The ancillary data of a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceiveInfo {
    pub(super) stream: StreamId,
    pub(super) number: u16,
    pub(super) unordered: bool,
    pub(super) ppid: Ppid,
    pub(super) tsn: Tsn,
}

impl ReceiveInfo {
    /// Reads a `struct sctp_rcvinfo`.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let short = |at: usize| Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let long = |at: usize| -> Option<[u8; 4]> { Some(*bytes.get(at..)?.first_chunk()?) };
        Some(Self {
            stream: StreamId(short(0)?),
            number: short(2)?,
            unordered: short(4)? & SCTP_UNORDERED != 0,
            ppid: Ppid(u32::from_be_bytes(long(8)?)),
            tsn: Tsn(u32::from_ne_bytes(long(12)?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_carries_its_stream_ppid_and_lifetime() {
        let info = SendInfo {
            stream: StreamId(7),
            ppid: Ppid(0x0102_0304),
            unordered: true,
            reliability: MessageReliability::Lifetime(Duration::from_millis(250)),
            ..SendInfo::default()
        };
        let control = for_message(&info);
        let header = size_of::<usize>() + 8;
        assert_eq!(control.len() % size_of::<usize>(), 0);
        assert_eq!(control[..size_of::<usize>()], (header + 16).to_ne_bytes());
        let send_info = &control[header..header + 16];
        assert_eq!(send_info[..2], 7_u16.to_ne_bytes());
        assert_eq!(send_info[2..4], SCTP_UNORDERED.to_ne_bytes());
        assert_eq!(send_info[4..8], [1, 2, 3, 4]);
        let policy = &control[control.len() - 8..];
        assert_eq!(policy[..2], SCTP_PR_SCTP_TTL.to_ne_bytes());
        assert_eq!(policy[4..], 250_u32.to_ne_bytes());
    }

    #[test]
    fn a_reliable_message_has_no_policy_and_a_zero_lifetime_is_rounded_up() {
        let plain = for_message(&SendInfo::default());
        assert_eq!(plain.len(), (size_of::<usize>() + 24).next_multiple_of(size_of::<usize>()));
        assert_eq!(
            policy(MessageReliability::Lifetime(Duration::ZERO)),
            Some((SCTP_PR_SCTP_TTL, 1))
        );
        assert_eq!(policy(MessageReliability::Retransmissions(0)), Some((SCTP_PR_SCTP_RTX, 0)));
    }

    #[test]
    fn ancillary_data_is_read_whole_or_not_at_all() {
        let mut bytes = [0; 28];
        bytes[..2].copy_from_slice(&3_u16.to_ne_bytes());
        bytes[2..4].copy_from_slice(&9_u16.to_ne_bytes());
        bytes[4..6].copy_from_slice(&SCTP_UNORDERED.to_ne_bytes());
        bytes[8..12].copy_from_slice(&[0, 0, 0, 51]);
        bytes[12..16].copy_from_slice(&77_u32.to_ne_bytes());
        let info = ReceiveInfo {
            stream: StreamId(3),
            number: 9,
            unordered: true,
            ppid: Ppid(51),
            tsn: Tsn(77),
        };
        assert_eq!(ReceiveInfo::parse(&bytes), Some(info));
        assert_eq!(ReceiveInfo::parse(&bytes[..12]), None);
    }
}
