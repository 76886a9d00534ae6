//! Options of IPv4, IPv6 and of sockets in general. Each has its effect, or has none on Linux's SCTP
//! sockets either, or is refused unless the value is what applies anyway.

use super::super::socket::SctpSocket;
use crate::abi::Errno;
use crate::abi::number::{ip, ipv6, level, so, socket};

/// The hop limit that Linux shows for the host's default.
pub(super) const DEFAULT_HOP_LIMIT: i32 = 64;

/// How an option is handled that has no effect here.
enum OptionHandling {
    /// It has none on Linux either, so any value is stored; this is the default.
    Stored(i32),
    /// It would have one, so this is the only possible value.
    Only(i32),
}
use OptionHandling::{Only, Stored};

/// Returns whether Linux requires privileges (`CAP_NET_ADMIN`) for setting an option.
#[must_use]
pub const fn needs_privileges(level: i32, name: i32) -> bool {
    level == level::SOL_SOCKET
        && matches!(name, so::SO_SNDBUFFORCE | so::SO_RCVBUFFORCE | so::SO_MARK)
}

/// Returns the value of an option without effect.
pub(super) fn general_value(found: &SctpSocket, level: i32, name: i32) -> Result<i32, Errno> {
    match handling(level, name) {
        Some(Stored(default)) => Ok(found.stored.get(&(level, name)).copied().unwrap_or(default)),
        Some(Only(possible)) => Ok(possible),
        None if (level, name) == (level::SOL_SOCKET, so::SO_SNDLOWAT) => Ok(1),
        None => Err(Errno::ENOPROTOOPT),
    }
}

/// Sets an option without effect.
pub(super) fn set_general_value(
    found: &mut SctpSocket,
    level: i32,
    name: i32,
    number: i32,
) -> Result<(), Errno> {
    match handling(level, name) {
        Some(Stored(_)) => {
            found.stored.insert((level, name), number);
            Ok(())
        }
        Some(Only(possible)) if number == possible => Ok(()),
        _ => Err(Errno::ENOPROTOOPT),
    }
}

/// Returns a hop limit; -1 is the host's default.
pub(super) fn hop_limit(number: i32, is_invalid: bool) -> Result<Option<u8>, Errno> {
    match u8::try_from(number) {
        Ok(limit) if !is_invalid => Ok(Some(limit)),
        _ if number == -1 => Ok(None),
        _ => Err(Errno::EINVAL),
    }
}

fn handling(level: i32, name: i32) -> Option<OptionHandling> {
    Some(match (level, name) {
        (level::SOL_SOCKET, so::SO_RCVLOWAT) => Stored(1),
        (level::SOL_SOCKET, so::SO_INCOMING_CPU) => Stored(-1),
        (
            level::SOL_SOCKET,
            so::SO_DEBUG
            | so::SO_BROADCAST
            | so::SO_KEEPALIVE
            | so::SO_OOBINLINE
            | so::SO_NO_CHECK
            | so::SO_BSDCOMPAT
            | so::SO_PASSCRED
            | so::SO_LOCK_FILTER
            | so::SO_SELECT_ERR_QUEUE
            | so::SO_BUSY_POLL,
        ) => Stored(0),
        (level::SOL_SOCKET, so::SO_MAX_PACING_RATE) => Only(-1),
        (
            level::SOL_SOCKET,
            so::SO_DONTROUTE
            | so::SO_PRIORITY
            | so::SO_TIMESTAMP
            | so::SO_TIMESTAMPNS
            | so::SO_TIMESTAMPING
            | so::SO_RXQ_OVFL
            | so::SO_ZEROCOPY
            | so::SO_BINDTOIFINDEX,
        ) => Only(0),
        (level::SOL_IP, ip::IP_MULTICAST_LOOP | ip::IP_MULTICAST_ALL) => Stored(1),
        (level::SOL_IP, ip::IP_BIND_ADDRESS_NO_PORT) => Stored(0),
        (level::SOL_IP, ip::IP_MULTICAST_TTL) => Only(1),
        (level::SOL_IP, ip::IP_MTU_DISCOVER) => Only(socket::IP_PMTUDISC_WANT),
        (
            level::SOL_IP,
            ip::IP_RECVOPTS
            | ip::IP_RETOPTS
            | ip::IP_PKTINFO
            | ip::IP_RECVERR
            | ip::IP_RECVTTL
            | ip::IP_RECVTOS
            | ip::IP_RECVORIGDSTADDR
            | ip::IP_FREEBIND
            | ip::IP_TRANSPARENT
            | ip::IP_MINTTL
            | ip::IP_UNICAST_IF,
        ) => Only(0),
        (level::SOL_IPV6, ipv6::IPV6_MULTICAST_LOOP) => Stored(1),
        (level::SOL_IPV6, ipv6::IPV6_MTU_DISCOVER) => Only(socket::IP_PMTUDISC_WANT),
        (level::SOL_IPV6, ipv6::IPV6_AUTOFLOWLABEL) => Only(1),
        (
            level::SOL_IPV6,
            ipv6::IPV6_RECVERR
            | ipv6::IPV6_FLOWINFO_SEND
            | ipv6::IPV6_RECVPKTINFO
            | ipv6::IPV6_RECVHOPLIMIT
            | ipv6::IPV6_RECVTCLASS
            | ipv6::IPV6_DONTFRAG
            | ipv6::IPV6_MINHOPCOUNT
            | ipv6::IPV6_TRANSPARENT
            | ipv6::IPV6_FREEBIND
            | ipv6::IPV6_UNICAST_IF,
        ) => Only(0),
        _ => return None,
    })
}
