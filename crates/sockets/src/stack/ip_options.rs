//! Options of IPv4, IPv6 and of sockets in general. Each has its effect, or has none on Linux's SCTP
//! sockets either, or is refused unless the value is what applies anyway.

use alloc::vec::Vec;

use super::Stack;
use super::get_options::{ints, truncated};
use super::socket::SctpSocket;
use crate::abi::Errno;
use crate::abi::layout::i32_at;
use crate::abi::number::{ip, ipv6, level, so, socket};
use crate::io::{SocketDomain, SocketId, SocketStyle};
use crate::settings::ECN_BITS;

/// The hop limit that Linux shows for the host's default.
const DEFAULT_HOP_LIMIT: i32 = 64;

/// How an option is handled that has no effect here.
enum OptionHandling {
    /// It has none on Linux either, so any value is stored; this is the default.
    Stored(i32),
    /// It would have one, so this is the only possible value.
    Only(i32),
}
use OptionHandling::{Only, Stored};

impl Stack {
    /// `setsockopt` for options of IPv4 and IPv6.
    pub(super) fn set_ip(
        &mut self,
        id: SocketId,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        let found = self.sockets.find_mut(id)?;
        let number = match level {
            level::SOL_IP if value.len() >= 4 => i32_at(value, 0),
            level::SOL_IP => value.first().copied().map_or(0, i32::from),
            level::SOL_IPV6 if found.domain != SocketDomain::Inet6 => {
                return Err(Errno::ENOPROTOOPT);
            }
            level::SOL_IPV6 if value.len() < 4 => return Err(Errno::EINVAL),
            level::SOL_IPV6 => i32_at(value, 0),
            _ => return Err(Errno::ENOPROTOOPT),
        };
        let is_stream = found.style == SocketStyle::OneToOne;
        // The bits of ECN belong to the protocol.
        let dscp_bits = number as u8 & !ECN_BITS;
        let (has_port, markings) = (found.port.is_some(), &mut found.shared.markings);
        match (level, name) {
            (level::SOL_IP, ip::IP_TOS) => markings.v4.dscp_bits = dscp_bits,
            (level::SOL_IP, ip::IP_TTL) => {
                markings.v4.hop_limit = hop_limit(number, number == 0)?;
            }
            (level::SOL_IP, ip::IP_OPTIONS) if value.is_empty() => {}
            (level::SOL_IP, ip::IP_OPTIONS) => return Err(Errno::ENOPROTOOPT),
            (level::SOL_IPV6, ipv6::IPV6_TCLASS) => {
                if !(-1..=255).contains(&number) {
                    return Err(Errno::EINVAL);
                }
                markings.v6.dscp_bits = if number < 0 { 0 } else { dscp_bits };
            }
            (level::SOL_IPV6, ipv6::IPV6_UNICAST_HOPS) => {
                markings.v6.hop_limit = hop_limit(number, false)?;
            }
            (level::SOL_IPV6, ipv6::IPV6_V6ONLY) if has_port => return Err(Errno::EINVAL),
            (level::SOL_IPV6, ipv6::IPV6_V6ONLY) => found.shared.v6_only = number != 0,
            (level::SOL_IP, ip::IP_MULTICAST_TTL | ip::IP_MULTICAST_IF) if is_stream => {
                return Err(Errno::EINVAL);
            }
            _ => return self.set_general(id, level, name, number),
        }
        self.apply_shared(id);
        Ok(())
    }

    /// `setsockopt` for options without effect.
    pub(super) fn set_general(
        &mut self,
        id: SocketId,
        level: i32,
        name: i32,
        number: i32,
    ) -> Result<(), Errno> {
        match handling(level, name) {
            Some(Stored(_)) => {
                self.sockets.find_mut(id)?.stored.insert((level, name), number);
                Ok(())
            }
            Some(Only(possible)) if number == possible => Ok(()),
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    /// `getsockopt` for options of IPv4 and IPv6.
    pub(super) fn get_ip(
        &self,
        id: SocketId,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        let found = self.sockets.find(id)?;
        let markings = &found.shared.markings;
        let hops = |limit: Option<u8>| limit.map_or(DEFAULT_HOP_LIMIT, i32::from);
        let number = match (level, name) {
            (level::SOL_IPV6, _) if found.domain != SocketDomain::Inet6 => {
                return Err(Errno::ENOPROTOOPT);
            }
            (level::SOL_IP, ip::IP_TOS) => markings.v4.dscp_bits.into(),
            (level::SOL_IP, ip::IP_TTL) => hops(markings.v4.hop_limit),
            (level::SOL_IP, ip::IP_OPTIONS) => return Ok(Vec::new()),
            (level::SOL_IPV6, ipv6::IPV6_TCLASS) => markings.v6.dscp_bits.into(),
            (level::SOL_IPV6, ipv6::IPV6_UNICAST_HOPS) => hops(markings.v6.hop_limit),
            (level::SOL_IPV6, ipv6::IPV6_V6ONLY) => found.shared.v6_only.into(),
            _ => general_value(found, level, name)?,
        };
        Ok(truncated(ints(&[number as u32]), value))
    }
}

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

/// Returns a hop limit; -1 is the host's default.
fn hop_limit(number: i32, is_invalid: bool) -> Result<Option<u8>, Errno> {
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
