//! `setsockopt`.

mod commands;
mod effect;
mod rare;
mod settings;
mod shared;

use core::time::Duration;

use super::super::association_table::AssociationTable;
use super::super::ports::PortTable;
use super::super::send_room::update_full_of_all;
use super::super::socket_table::SocketTable;
use super::call::OptionCall;
use super::general::{hop_limit, set_general_value};
use crate::abi::Errno;
use crate::abi::layout::{i32_at, u32_at};
use crate::abi::number::option::*;
use crate::abi::number::{ip, ipv6, level, so};
use crate::config::StackConfig;
use crate::io::{SocketDomain, SocketStyle};
use crate::settings::ECN_BITS;

/// The smallest buffers in Linux.
const MIN_SEND_BUFFER: usize = 4608;
const MIN_RECEIVE_BUFFER: usize = 2304;

/// A call of `setsockopt`, with what it changes.
pub(super) struct OptionChange<'a> {
    now: Duration,
    config: &'a StackConfig,
    sockets: &'a mut SocketTable,
    associations: &'a mut AssociationTable,
    ports: &'a mut PortTable,
    call: OptionCall<'a>,
}

impl<'a> OptionChange<'a> {
    pub(super) fn new(
        now: Duration,
        config: &'a StackConfig,
        sockets: &'a mut SocketTable,
        associations: &'a mut AssociationTable,
        ports: &'a mut PortTable,
        call: OptionCall<'a>,
    ) -> Self {
        Self { now, config, sockets, associations, ports, call }
    }

    /// Sets the option, and applies it.
    pub(super) fn perform(mut self) -> Result<(), Errno> {
        match self.call.level {
            level::SOL_SCTP => self.set_sctp(),
            level::SOL_SOCKET => self.set_general(),
            _ => self.set_ip(),
        }
    }

    /// `SOL_SCTP`.
    fn set_sctp(&mut self) -> Result<(), Errno> {
        match self.call.name {
            SCTP_AUTOCLOSE if self.socket()?.is_single() => Err(Errno::EOPNOTSUPP),
            SCTP_NODELAY
            | SCTP_AUTOCLOSE
            | SCTP_ADAPTATION_LAYER
            | SCTP_DISABLE_FRAGMENTS
            | SCTP_I_WANT_MAPPED_V4_ADDR
            | SCTP_FRAGMENT_INTERLEAVE
            | SCTP_PARTIAL_DELIVERY_POINT
            | SCTP_AUTO_ASCONF
            | SCTP_RECVRCVINFO
            | SCTP_RECVNXTINFO
            | SCTP_REUSE_PORT => {
                self.call.check_length(&[4])?;
                self.set_shared()
            }
            SCTP_PR_SUPPORTED
            | SCTP_RECONFIG_SUPPORTED
            | SCTP_INTERLEAVING_SUPPORTED
            | SCTP_ASCONF_SUPPORTED
            | SCTP_AUTH_SUPPORTED
            | SCTP_ECN_SUPPORTED => {
                self.call.check_length(&[8])?;
                self.set_extension()
            }
            SCTP_EVENTS => self.set_events(),
            SCTP_PEER_ADDR_PARAMS => {
                self.call.check_length(&[152, 156])?;
                self.set_peer_address_params()
            }
            SCTP_PRIMARY_ADDR => self.set_primary(),
            SCTP_SET_PEER_PRIMARY_ADDR => self.set_peer_primary(),
            SCTP_AUTH_CHUNK => self.add_authenticated_chunk(),
            SCTP_RESET_STREAMS | SCTP_RESET_ASSOC | SCTP_ADD_STREAMS => self.change_streams(),
            SCTP_AUTH_KEY | SCTP_AUTH_ACTIVE_KEY | SCTP_AUTH_DELETE_KEY => self.set_key(),
            _ => self.set_setting(),
        }
    }

    /// `SOL_SOCKET`.
    fn set_general(&mut self) -> Result<(), Errno> {
        let OptionCall { socket, name, value, .. } = self.call;
        if name == so::SO_BINDTODEVICE {
            // No device: the only state here.
            let is_none = value.first().is_none_or(|first| *first == 0);
            return if is_none { Ok(()) } else { Err(Errno::ENOPROTOOPT) };
        }
        if value.len() < 4 {
            return Err(Errno::EINVAL);
        }
        let number = u32_at(value, 0);
        let sizes = self.config;
        // Negative numbers are the largest ones here, but the smallest ones if forced.
        let doubled = |max: usize| 2 * max.min(number as usize);
        let forced = 2 * sizes.max_forced_buffer.min(usize::try_from(number as i32).unwrap_or(0));
        let sends = doubled(sizes.max_send_buffer);
        let receives = doubled(sizes.max_receive_buffer);
        let found = self.sockets.find_mut(socket)?;
        let shared = &mut found.shared;
        match name {
            so::SO_SNDBUF => shared.send_buffer = sends.max(MIN_SEND_BUFFER),
            so::SO_RCVBUF => shared.receive_buffer = receives.max(MIN_RECEIVE_BUFFER),
            so::SO_SNDBUFFORCE => shared.send_buffer = forced.max(MIN_SEND_BUFFER),
            so::SO_RCVBUFFORCE => shared.receive_buffer = forced.max(MIN_RECEIVE_BUFFER),
            so::SO_REUSEADDR => shared.reuse_address = number != 0,
            so::SO_REUSEPORT => shared.reuse_port = number != 0,
            so::SO_LINGER if value.len() < 8 => return Err(Errno::EINVAL),
            so::SO_LINGER => {
                let wait = Duration::from_secs(u32_at(value, 4).into());
                shared.linger = (number != 0).then_some(wait);
            }
            so::SO_TYPE | so::SO_PROTOCOL | so::SO_DOMAIN | so::SO_ERROR | so::SO_ACCEPTCONN => {
                return Err(Errno::ENOPROTOOPT);
            }
            so::SO_MARK => {
                shared.markings.v4.mark = number;
                shared.markings.v6.mark = number;
            }
            _ => return set_general_value(found, level::SOL_SOCKET, name, number as i32),
        }
        let (port, sharing) = (found.port, found.sharing());
        if let Some(key) = port {
            self.ports.set_sharing(key, socket, sharing);
        }
        self.apply_shared();
        update_full_of_all(self.now, self.sockets, self.associations, self.ports, socket);
        Ok(())
    }

    /// `SOL_IP`, `SOL_IPV6`.
    fn set_ip(&mut self) -> Result<(), Errno> {
        let OptionCall { level, name, value, .. } = self.call;
        let found = self.sockets.find_mut(self.call.socket)?;
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
            _ => return set_general_value(found, level, name, number),
        }
        self.apply_shared();
        Ok(())
    }
}
