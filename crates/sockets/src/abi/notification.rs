//! Encodes notifications (RFC 6458 §6.1). Each begins with its type (16 bits), flags (16 bits) and
//! length (32 bits).

use core::net::SocketAddr;

use super::layout::{put_i32, put_u16, put_u32, write_field};
use super::name::{STORAGE, SocketName};
use super::number::event;

/// `sac_state` of an association change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssocChange {
    /// `SCTP_COMM_UP`.
    Up = 0,
    /// `SCTP_COMM_LOST`.
    Lost = 1,
    /// `SCTP_RESTART`.
    Restart = 2,
    /// `SCTP_SHUTDOWN_COMP`.
    ShutdownComplete = 3,
    /// `SCTP_CANT_STR_ASSOC`.
    CannotStart = 4,
}

/// `spc_state` of a change of an address of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressChange {
    /// `SCTP_ADDR_AVAILABLE`.
    Available = 0,
    /// `SCTP_ADDR_UNREACHABLE`.
    Unreachable = 1,
    /// `SCTP_ADDR_REMOVED`.
    Removed = 2,
    /// `SCTP_ADDR_ADDED`.
    Added = 3,
    /// `SCTP_ADDR_MADE_PRIM`.
    MadePrimary = 4,
    /// `SCTP_ADDR_CONFIRMED`.
    Confirmed = 5,
    /// `SCTP_ADDR_POTENTIALLY_FAILED`.
    PotentiallyFailed = 6,
}

/// The size of `SCTP_SEND_FAILED` before the message.
pub const SEND_FAILED_LENGTH: usize = 48;
/// The size of `SCTP_SEND_FAILED_EVENT` before the message.
pub const SEND_FAILED_EVENT_LENGTH: usize = 32;

fn header<const N: usize>(kind: u16, flags: u16, extra: usize) -> [u8; N] {
    let mut bytes = [0; N];
    put_u16(&mut bytes, 0, kind);
    put_u16(&mut bytes, 2, flags);
    put_u32(&mut bytes, 4, u32::try_from(N + extra).unwrap_or(u32::MAX));
    bytes
}

/// `struct sctp_assoc_change`, before `info` bytes of `sac_info`. As in Linux, `error` is a cause
/// in network byte order, or an errno.
#[must_use]
pub fn assoc_change(
    change: AssocChange,
    error: u16,
    streams: (u16, u16),
    association: i32,
    info: usize,
) -> [u8; 20] {
    let mut bytes = header(event::SCTP_ASSOC_CHANGE, 0, info);
    put_u16(&mut bytes, 8, change as u16);
    put_u16(&mut bytes, 10, error);
    put_u16(&mut bytes, 12, streams.0);
    put_u16(&mut bytes, 14, streams.1);
    put_i32(&mut bytes, 16, association);
    bytes
}

/// `struct sctp_paddr_change`.
#[must_use]
pub fn peer_address_change(
    address: SocketAddr,
    change: AddressChange,
    error: i32,
    association: i32,
) -> [u8; 20 + STORAGE] {
    let mut bytes = header(event::SCTP_PEER_ADDR_CHANGE, 0, 0);
    write_field(&mut bytes, 8, SocketName::new(address).as_bytes());
    put_i32(&mut bytes, 8 + STORAGE, change as i32);
    put_i32(&mut bytes, 12 + STORAGE, error);
    put_i32(&mut bytes, 16 + STORAGE, association);
    bytes
}

/// `struct sctp_remote_error`, before `data` bytes of the cause.
#[must_use]
pub fn remote_error(error: u16, association: i32, data: usize) -> [u8; 16] {
    let mut bytes = header(event::SCTP_REMOTE_ERROR, 0, data);
    put_u16(&mut bytes, 8, error);
    put_i32(&mut bytes, 12, association);
    bytes
}

/// `struct sctp_send_failed`, before `data` bytes of the message; `info` is its `sndrcvinfo`.
#[must_use]
pub fn send_failed(
    sent: bool,
    error: u32,
    info: &[u8; 32],
    association: i32,
    data: usize,
) -> [u8; SEND_FAILED_LENGTH] {
    let mut bytes = header(event::SCTP_SEND_FAILED, u16::from(sent), data);
    put_u32(&mut bytes, 8, error);
    write_field(&mut bytes, 12, info);
    put_i32(&mut bytes, 44, association);
    bytes
}

/// `struct sctp_send_failed_event`, before `data` bytes of the message; `info` is its `sndinfo`.
#[must_use]
pub fn send_failed_event(
    sent: bool,
    error: u32,
    info: &[u8; 16],
    association: i32,
    data: usize,
) -> [u8; SEND_FAILED_EVENT_LENGTH] {
    let mut bytes = header(event::SCTP_SEND_FAILED_EVENT, u16::from(sent), data);
    put_u32(&mut bytes, 8, error);
    write_field(&mut bytes, 12, info);
    put_i32(&mut bytes, 28, association);
    bytes
}

/// `struct sctp_shutdown_event`, `sctp_sender_dry_event`: only the association.
#[must_use]
pub fn plain(kind: u16, association: i32) -> [u8; 12] {
    let mut bytes = header(kind, 0, 0);
    put_i32(&mut bytes, 8, association);
    bytes
}

/// `struct sctp_pdapi_event`: a partially delivered message was abandoned.
#[must_use]
pub fn partial_delivery_aborted(association: i32, stream: u16) -> [u8; 24] {
    let mut bytes = header(event::SCTP_PARTIAL_DELIVERY_EVENT, 0, 0);
    put_i32(&mut bytes, 12, association);
    put_u32(&mut bytes, 16, stream.into());
    bytes
}

/// `struct sctp_authkey_event` with `SCTP_AUTH_NO_AUTH`: the peer does not authenticate.
#[must_use]
pub fn no_authentication(association: i32) -> [u8; 20] {
    let mut bytes = header(event::SCTP_AUTHENTICATION_EVENT, 0, 0);
    put_u32(&mut bytes, 12, 2);
    put_i32(&mut bytes, 16, association);
    bytes
}

/// `struct sctp_stream_reset_event`, before two bytes for each stream.
#[must_use]
pub fn stream_reset(flags: u16, association: i32, streams: usize) -> [u8; 12] {
    let mut bytes = header(event::SCTP_STREAM_RESET_EVENT, flags, 2 * streams);
    put_i32(&mut bytes, 8, association);
    bytes
}

/// `struct sctp_assoc_reset_event`: the next TSNs of this end and of the peer.
#[must_use]
pub fn assoc_reset(flags: u16, association: i32, local_tsn: u32, remote_tsn: u32) -> [u8; 20] {
    let mut bytes = header(event::SCTP_ASSOC_RESET_EVENT, flags, 0);
    put_i32(&mut bytes, 8, association);
    put_u32(&mut bytes, 12, local_tsn);
    put_u32(&mut bytes, 16, remote_tsn);
    bytes
}

/// `struct sctp_stream_change_event`: the new numbers of inbound and outbound streams.
#[must_use]
pub fn stream_change(flags: u16, association: i32, inbound: u16, outbound: u16) -> [u8; 16] {
    let mut bytes = header(event::SCTP_STREAM_CHANGE_EVENT, flags, 0);
    put_i32(&mut bytes, 8, association);
    put_u16(&mut bytes, 12, inbound);
    put_u16(&mut bytes, 14, outbound);
    bytes
}
