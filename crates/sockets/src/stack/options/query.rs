//! `getsockopt`.

mod association;
mod rare;
mod settings;

use alloc::vec::Vec;

use super::super::association_table::AssociationTable;
use super::super::ports::PortTable;
use super::super::socket::{SctpSocket, SocketState};
use super::call::{OptionCall, ints};
use super::general::{DEFAULT_HOP_LIMIT, general_value};
use super::target::{target, target_settings};
use crate::abi::Errno;
use crate::abi::number::option::*;
use crate::abi::number::{ip, ipv6, level, so, socket};
use crate::config::StackConfig;
use crate::io::{AssocId, SocketDomain, SocketStyle};
use crate::settings::AssocSettings;

/// A call of `getsockopt`, with what it reads.
pub(super) struct OptionQuery<'a> {
    config: &'a StackConfig,
    socket: &'a SctpSocket,
    associations: &'a AssociationTable,
    ports: &'a PortTable,
    call: OptionCall<'a>,
}

impl<'a> OptionQuery<'a> {
    pub(super) fn new(
        config: &'a StackConfig,
        socket: &'a SctpSocket,
        associations: &'a AssociationTable,
        ports: &'a PortTable,
        call: OptionCall<'a>,
    ) -> Self {
        Self { config, socket, associations, ports, call }
    }

    /// Returns the value of the option.
    pub(super) fn perform(&self) -> Result<Vec<u8>, Errno> {
        match self.call.level {
            level::SOL_SCTP => self.sctp(),
            level::SOL_SOCKET => self.general(),
            _ => self.ip(),
        }
    }

    /// `SOL_SCTP`.
    fn sctp(&self) -> Result<Vec<u8>, Errno> {
        let shared = &self.socket.shared;
        let offers = &shared.extensions;
        let flag = match self.call.name {
            SCTP_NODELAY => u32::from(shared.no_delay),
            SCTP_AUTOCLOSE if self.socket.is_single() => {
                return Err(Errno::EOPNOTSUPP);
            }
            SCTP_AUTOCLOSE => shared.autoclose,
            SCTP_ADAPTATION_LAYER => shared.adaptation,
            SCTP_DISABLE_FRAGMENTS => shared.disable_fragments.into(),
            SCTP_I_WANT_MAPPED_V4_ADDR => shared.mapped.into(),
            SCTP_FRAGMENT_INTERLEAVE => shared.fragment_interleave,
            SCTP_PARTIAL_DELIVERY_POINT => shared.partial_delivery_point,
            SCTP_AUTO_ASCONF => shared.auto_asconf.into(),
            SCTP_RECVRCVINFO => shared.receive_rcvinfo.into(),
            SCTP_RECVNXTINFO => shared.receive_nxtinfo.into(),
            SCTP_REUSE_PORT => shared.sctp_reuse_port.into(),
            SCTP_GET_ASSOC_NUMBER => self.live_associations()?.len() as u32,
            SCTP_EVENTS => return self.events(),
            SCTP_STATUS => return self.status(),
            SCTP_GET_PEER_ADDR_INFO => return self.peer_address_info(),
            SCTP_SQINFO => return self.send_queue(),
            SCTP_PEER_ADDR_PARAMS => return self.peer_address_params(),
            SCTP_PRIMARY_ADDR => return self.primary(),
            SCTP_GET_PEER_ADDRS => return self.peer_addresses(),
            SCTP_GET_LOCAL_ADDRS => return self.local_addresses(),
            SCTP_GET_ASSOC_ID_LIST => {
                let ids = self.live_associations()?;
                let mut list = alloc::vec![ids.len() as u32];
                list.extend(ids.iter().map(|id| id.0 as u32));
                return self.call.exact(ints(&list));
            }
            SCTP_GET_ASSOC_STATS => return self.statistics(),
            SCTP_PR_SUPPORTED => return self.extension(offers.partial_reliability),
            SCTP_RECONFIG_SUPPORTED => return self.extension(offers.reconfiguration),
            SCTP_INTERLEAVING_SUPPORTED => return self.extension(offers.interleaving),
            SCTP_ASCONF_SUPPORTED => return self.extension(offers.dynamic_addresses),
            SCTP_AUTH_SUPPORTED => return self.extension(offers.authentication),
            SCTP_ECN_SUPPORTED => return self.extension(offers.ecn),
            _ => return self.setting(),
        };
        self.call.exact(ints(&[flag]))
    }

    /// `SOL_SOCKET`.
    fn general(&self) -> Result<Vec<u8>, Errno> {
        let found = self.socket;
        let shared = &found.shared;
        let number = match self.call.name {
            so::SO_TYPE if found.style == SocketStyle::OneToMany => socket::SOCK_SEQPACKET,
            so::SO_TYPE => socket::SOCK_STREAM,
            so::SO_PROTOCOL => socket::IPPROTO_SCTP,
            so::SO_DOMAIN if found.domain == SocketDomain::Inet => socket::AF_INET,
            so::SO_DOMAIN => socket::AF_INET6,
            so::SO_SNDBUF => shared.send_buffer as i32,
            so::SO_RCVBUF => shared.receive_buffer as i32,
            so::SO_SNDBUFFORCE | so::SO_RCVBUFFORCE => return Err(Errno::ENOPROTOOPT),
            so::SO_REUSEADDR => shared.reuse_address.into(),
            so::SO_REUSEPORT => shared.reuse_port.into(),
            so::SO_ACCEPTCONN => (found.state == SocketState::Listening).into(),
            so::SO_LINGER => {
                let (on, seconds) = shared.linger.map_or((0, 0), |wait| (1, wait.as_secs() as u32));
                return Ok(self.call.truncated(ints(&[on, seconds])));
            }
            so::SO_MARK => shared.markings.v4.mark as i32,
            so::SO_BINDTODEVICE => return Ok(Vec::new()),
            _ => general_value(found, level::SOL_SOCKET, self.call.name)?,
        };
        Ok(self.call.truncated(ints(&[number as u32])))
    }

    /// `SOL_IP`, `SOL_IPV6`.
    fn ip(&self) -> Result<Vec<u8>, Errno> {
        let OptionCall { level, name, .. } = self.call;
        let found = self.socket;
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
        Ok(self.call.truncated(ints(&[number as u32])))
    }

    /// Returns whether an extension is offered, as an `sctp_assoc_value`.
    fn extension(&self, on: bool) -> Result<Vec<u8>, Errno> {
        let id = self.call.id_of_at_least(8)?;
        target(self.socket, self.associations, id)?;
        Ok(self.call.truncated(ints(&[id as u32, on.into()])))
    }

    /// Returns the association that the option applies to, which must exist, if the value has at
    /// least this length.
    fn association(&self, length: usize) -> Result<AssocId, Errno> {
        let id = self.call.id_of_at_least(length)?;
        target(self.socket, self.associations, id)?.ok_or(Errno::EINVAL)
    }

    /// Returns the settings that the option applies to.
    fn settings(&self, id: i32) -> Result<&'a AssocSettings, Errno> {
        target_settings(self.socket, self.associations, id)
    }
}
