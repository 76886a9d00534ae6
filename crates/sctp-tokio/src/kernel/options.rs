//! The options of a socket of the kernel's SCTP (RFC 6458 §8), with the numbers and layouts of
//! `linux/sctp.h`. On a one-to-one socket the kernel ignores the association identifier that most
//! of these begin with.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use eyas_sctp::config::AssociationConfig;
use eyas_sctp::endpoint::PathState;
use eyas_sctp::endpoint::{AgreedExtensions, AssociationState, PathStatus, Status};
use eyas_sctp::error::Error as Misuse;
use eyas_sctp::identifier::{PathId, StreamId};
use nix::errno::Errno;
use nix::libc::c_int;
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};
use socket2::Socket;

use super::address::{self, STORAGE, V4, V6};
use crate::carrier::IPPROTO_SCTP;

const SCTP_INITMSG: c_int = 2;
const SCTP_NODELAY: c_int = 3;
const SCTP_PRIMARY_ADDR: c_int = 6;
const SCTP_EVENTS: c_int = 11;
const SCTP_STATUS: c_int = 14;
const SCTP_RECVRCVINFO: c_int = 32;
const SCTP_SOCKOPT_BINDX_ADD: c_int = 100;
const SCTP_SOCKOPT_BINDX_REM: c_int = 101;
const SCTP_PR_SUPPORTED: c_int = 113;
const SCTP_RECONFIG_SUPPORTED: c_int = 117;
const SCTP_ENABLE_STREAM_RESET: c_int = 118;
const SCTP_RESET_STREAMS: c_int = 119;
const SCTP_ADD_STREAMS: c_int = 121;
const SCTP_INTERLEAVING_SUPPORTED: c_int = 125;
const SCTP_ASCONF_SUPPORTED: c_int = 128;
const SCTP_AUTH_SUPPORTED: c_int = 129;
const SCTP_ECN_SUPPORTED: c_int = 130;

/// The maximum number of streams in one request.
const MAX_RESET: usize = 128;
/// The size of a `struct sctp_reset_streams` with this many streams.
const RESET: usize = 8 + 2 * MAX_RESET;
/// Bytes of a `struct sctp_status`.
const STATUS: usize = 176;
/// The offset of the primary path in it: a `struct sctp_paddrinfo`.
const PRIMARY: usize = 24;

sockopt_impl!(NoDelay, SetOnly, IPPROTO_SCTP, SCTP_NODELAY, bool);
sockopt_impl!(ReceiveInfo, SetOnly, IPPROTO_SCTP, SCTP_RECVRCVINFO, bool);
sockopt_impl!(InitMessage, SetOnly, IPPROTO_SCTP, SCTP_INITMSG, [u16; 4]);
sockopt_impl!(Events, SetOnly, IPPROTO_SCTP, SCTP_EVENTS, [u8; 14]);
sockopt_impl!(StatusOf, GetOnly, IPPROTO_SCTP, SCTP_STATUS, [u8; STATUS]);
sockopt_impl!(Primary, SetOnly, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, [u8; 4 + STORAGE]);
sockopt_impl!(AddV4, SetOnly, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, [u8; V4]);
sockopt_impl!(AddV6, SetOnly, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, [u8; V6]);
sockopt_impl!(RemoveV4, SetOnly, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_REM, [u8; V4]);
sockopt_impl!(RemoveV6, SetOnly, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_REM, [u8; V6]);
sockopt_impl!(PartialReliability, GetOnly, IPPROTO_SCTP, SCTP_PR_SUPPORTED, [u32; 2]);
sockopt_impl!(Reconfiguration, Both, IPPROTO_SCTP, SCTP_RECONFIG_SUPPORTED, [u32; 2]);
sockopt_impl!(StreamReset, SetOnly, IPPROTO_SCTP, SCTP_ENABLE_STREAM_RESET, [u32; 2]);
sockopt_impl!(ResetStreams, SetOnly, IPPROTO_SCTP, SCTP_RESET_STREAMS, [u8; RESET]);
sockopt_impl!(AddStreams, SetOnly, IPPROTO_SCTP, SCTP_ADD_STREAMS, [u8; 8]);
sockopt_impl!(Interleaving, GetOnly, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, [u32; 2]);
sockopt_impl!(DynamicAddresses, GetOnly, IPPROTO_SCTP, SCTP_ASCONF_SUPPORTED, [u32; 2]);
sockopt_impl!(Authentication, GetOnly, IPPROTO_SCTP, SCTP_AUTH_SUPPORTED, [u32; 2]);
sockopt_impl!(Ecn, GetOnly, IPPROTO_SCTP, SCTP_ECN_SUPPORTED, [u32; 2]);

/// Applies a configuration to a socket; the associations that it accepts inherit it.
pub(super) fn prepare(socket: &Socket, config: &AssociationConfig) -> io::Result<()> {
    setsockopt(socket, NoDelay, &!config.nagle)?;
    setsockopt(socket, ReceiveInfo, &true)?;
    let attempts = u16::try_from(config.max_init_retransmits).unwrap_or(u16::MAX);
    let streams = [config.outbound_streams, config.max_inbound_streams, attempts, 0];
    setsockopt(socket, InitMessage, &streams)?;
    subscribe(socket, false)?;
    if config.extensions.reconfiguration {
        // Kernels before 4.15 do not support it: there, streams end with the association.
        let _ = setsockopt(socket, Reconfiguration, &[0, 1]);
        let _ = setsockopt(socket, StreamReset, &[0, 1 | 4]);
    }
    // The kernel may grant less.
    let _ = socket.set_send_buffer_size(config.send_buffer);
    let _ = socket.set_recv_buffer_size(config.receive_buffer);
    Ok(())
}

/// Subscribes to the notifications that eyas has events for. With `dry`, also to the one that
/// everything has been acknowledged; if that is already so, the kernel sends it at once.
pub(super) fn subscribe(socket: &Socket, dry: bool) -> io::Result<()> {
    // In the order of their numbers: data, association, address, send failure (the old one), peer
    // error, shutdown, partial delivery, adaptation, authentication, sender dry, stream reset,
    // association reset, stream change, send failure.
    let events = [0, 1, 1, 0, 1, 1, 1, 0, 0, u8::from(dry), 1, 1, 1, 1];
    Ok(setsockopt(socket, Events, &events)?)
}

/// Binds a listening socket to another address, or announces one to the peer (RFC 5061).
pub(super) fn add_address(socket: &Socket, address: SocketAddr) -> Result<(), Misuse> {
    let bytes = address::encode(address);
    let added = match address {
        SocketAddr::V4(_) => bytes.first_chunk().map(|v4| setsockopt(socket, AddV4, v4)),
        SocketAddr::V6(_) => bytes.first_chunk().map(|v6| setsockopt(socket, AddV6, v6)),
    };
    added.unwrap_or(Err(Errno::EINVAL)).map_err(address_error)
}

/// Withdraws an address (RFC 5061).
pub(super) fn remove_address(socket: &Socket, address: SocketAddr) -> Result<(), Misuse> {
    let bytes = address::encode(address);
    let removed = match address {
        SocketAddr::V4(_) => bytes.first_chunk().map(|v4| setsockopt(socket, RemoveV4, v4)),
        SocketAddr::V6(_) => bytes.first_chunk().map(|v6| setsockopt(socket, RemoveV6, v6)),
    };
    removed.unwrap_or(Err(Errno::EINVAL)).map_err(address_error)
}

fn address_error(errno: Errno) -> Misuse {
    match errno {
        Errno::EPERM | Errno::EACCES => Misuse::NotSupported,
        Errno::EBUSY | Errno::EAGAIN => Misuse::Busy,
        Errno::ENOTCONN => Misuse::NoAssociation,
        _ => Misuse::BadAddress,
    }
}

/// Makes the path to this address the primary one.
pub(super) fn set_primary(socket: &Socket, address: SocketAddr) -> Result<(), Misuse> {
    let mut bytes = [0; 4 + STORAGE];
    bytes[4..].copy_from_slice(&address::encode(address));
    setsockopt(socket, Primary, &bytes).map_err(|_| Misuse::NoSuchPath)
}

/// Requests a reset of streams; of all if `streams` is empty (RFC 6525).
pub(super) fn reset_streams(
    socket: &Socket,
    outgoing: bool,
    streams: &[StreamId],
) -> Result<(), Misuse> {
    if streams.len() > MAX_RESET {
        return Err(Misuse::TooManyStreams { limit: MAX_RESET });
    }
    let mut bytes = [0; RESET];
    let flags: u16 = if outgoing { 2 } else { 1 };
    let count = u16::try_from(streams.len()).unwrap_or_default();
    bytes[4..6].copy_from_slice(&flags.to_ne_bytes());
    bytes[6..8].copy_from_slice(&count.to_ne_bytes());
    for (entry, stream) in bytes[8..].chunks_exact_mut(2).zip(streams) {
        entry.copy_from_slice(&stream.0.to_ne_bytes());
    }
    setsockopt(socket, ResetStreams, &bytes).map_err(reconfiguration_error)
}

/// Requests more streams (RFC 6525).
pub(super) fn add_streams(socket: &Socket, outbound: u16, inbound: u16) -> Result<(), Misuse> {
    let mut bytes = [0; 8];
    bytes[4..6].copy_from_slice(&inbound.to_ne_bytes());
    bytes[6..8].copy_from_slice(&outbound.to_ne_bytes());
    setsockopt(socket, AddStreams, &bytes).map_err(reconfiguration_error)
}

/// Converts the kernel's refusal of a re-configuration: `EAGAIN` if streams still have data to
/// send.
fn reconfiguration_error(errno: Errno) -> Misuse {
    match errno {
        Errno::EAGAIN | Errno::EINPROGRESS => Misuse::Busy,
        Errno::ENOPROTOOPT | Errno::EPERM | Errno::EACCES => Misuse::NotSupported,
        Errno::ENOTCONN | Errno::EPIPE => Misuse::WrongState,
        _ => Misuse::NoSuchStream,
    }
}

/// Returns whether both sides can reset streams.
pub(super) fn can_reset(socket: &Socket) -> bool {
    getsockopt(socket, Reconfiguration).is_ok_and(|value| value[1] != 0)
}

/// Returns the current state of the association; `None` once it is over. Only its primary path is
/// included, with this number.
pub(super) fn status(socket: &Socket, number: impl Fn(SocketAddr) -> PathId) -> Option<Status> {
    let bytes = getsockopt(socket, StatusOf).ok()?;
    let address = |address: io::Result<socket2::SockAddr>| address.ok()?.as_socket();
    let local = address(socket.local_addr())?;
    let primary = primary(bytes.get(PRIMARY..)?, &number)?;
    let mut status = Status::new(state(long(&bytes, 4)?)?, primary.0);
    status.local_port = local.port();
    status.remote_port = primary.1;
    status.peer_window = long(&bytes, 8)?;
    status.inbound_streams = short(&bytes, 16)?;
    status.outbound_streams = short(&bytes, 18)?;
    status.agreed = agreed(socket);
    Some(status)
}

/// Parses a `struct sctp_paddrinfo` and its port.
fn primary(bytes: &[u8], number: impl Fn(SocketAddr) -> PathId) -> Option<(PathStatus, u16)> {
    let remote = address::decode(bytes.get(4..)?)?;
    let rest = bytes.get(4 + STORAGE..)?;
    let state = match long(rest, 0)? {
        0 => PathState::Inactive,
        1 => PathState::PotentiallyFailed,
        2 => PathState::Active,
        _ => PathState::Unconfirmed,
    };
    let mut path = PathStatus::new(number(remote), SocketAddr::new(remote.ip(), 0), state);
    let milliseconds = |value: u32| Duration::from_millis(value.into());
    path.congestion_window = long(rest, 4)? as usize;
    path.smoothed_rtt = Some(long(rest, 8)?).filter(|rtt| *rtt != 0).map(milliseconds);
    path.rto = milliseconds(long(rest, 12)?);
    path.mtu = long(rest, 16)? as usize;
    Some((path, remote.port()))
}

/// Returns the state with this number in `linux/sctp.h`.
fn state(number: u32) -> Option<AssociationState> {
    Some(match number {
        1 => AssociationState::Closed,
        2 => AssociationState::CookieWait,
        3 => AssociationState::CookieEchoed,
        4 => AssociationState::Established,
        5 => AssociationState::ShutdownPending,
        6 => AssociationState::ShutdownSent,
        7 => AssociationState::ShutdownReceived,
        8 => AssociationState::ShutdownAckSent,
        _ => return None,
    })
}

/// Returns what both sides support. Options unknown to the kernel count as unsupported.
fn agreed(socket: &Socket) -> AgreedExtensions {
    let is_supported = |value: nix::Result<[u32; 2]>| value.is_ok_and(|value| value[1] != 0);
    let mut agreed = AgreedExtensions::default();
    agreed.interleaving = is_supported(getsockopt(socket, Interleaving));
    agreed.partial_reliability = is_supported(getsockopt(socket, PartialReliability));
    agreed.reconfiguration = can_reset(socket);
    agreed.dynamic_addresses = is_supported(getsockopt(socket, DynamicAddresses));
    agreed.authentication = is_supported(getsockopt(socket, Authentication));
    agreed.ecn = is_supported(getsockopt(socket, Ecn));
    agreed
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
