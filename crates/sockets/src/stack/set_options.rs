//! `setsockopt`.

use core::time::Duration;

use eyas_sctp::identifier::StreamId;

use super::Stack;
use super::get_options::EVENTS;
use super::names::read_name;
use super::send_room::update_full_of_all;
use crate::abi::Errno;
use crate::abi::control::{SndInfo, SndRcvInfo};
use crate::abi::layout::{i32_at, u16_at, u32_at};
use crate::abi::number::option::*;
use crate::abi::number::{level, so};
use crate::io::SocketId;
use crate::settings::{AssocSettings, RtoInfo, spp};

/// The smallest buffers in Linux.
const MIN_SEND_BUFFER: usize = 4608;
const MIN_RECEIVE_BUFFER: usize = 2304;
/// The longest delay of an acknowledgement, in milliseconds.
const MAX_SACK_DELAY: u32 = 500;

impl Stack {
    /// `setsockopt`. `BINDX_ADD` and `BINDX_REM` work here, too; for the variants of `CONNECTX` see
    /// [`Self::connectx`]. The caller checks that a program has the privileges for options that
    /// need them ([`needs_privileges`](crate::needs_privileges)).
    ///
    /// # Errors
    /// `ENOPROTOOPT`, `EINVAL`, …
    pub fn setsockopt(
        &mut self,
        now: Duration,
        socket: SocketId,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        self.advance_to(now);
        self.sockets.find(socket)?;
        let outcome = match level {
            level::SOL_SCTP => self.set_sctp(socket, name, value),
            level::SOL_SOCKET => self.set_socket(socket, name, value),
            _ => self.set_ip(socket, level, name, value),
        };
        self.unsupported.count(level, name, &outcome);
        outcome
    }

    fn set_socket(&mut self, socket: SocketId, name: i32, value: &[u8]) -> Result<(), Errno> {
        if name == so::SO_BINDTODEVICE {
            // No device: the only state here.
            let is_none = value.first().is_none_or(|first| *first == 0);
            return if is_none { Ok(()) } else { Err(Errno::ENOPROTOOPT) };
        }
        if value.len() < 4 {
            return Err(Errno::EINVAL);
        }
        let number = u32_at(value, 0);
        let sizes = &self.config;
        // Negative numbers are the largest ones here, but the smallest ones if forced.
        let doubled = |max: usize| 2 * max.min(number as usize);
        let forced = 2 * sizes.max_forced_buffer.min(usize::try_from(number as i32).unwrap_or(0));
        let sends = doubled(sizes.max_send_buffer);
        let receives = doubled(sizes.max_receive_buffer);
        let shared = &mut self.sockets.find_mut(socket)?.shared;
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
            _ => return self.set_general(socket, level::SOL_SOCKET, name, number as i32),
        }
        let found = self.sockets.find(socket)?;
        let (port, sharing) = (found.port, found.sharing());
        if let Some(key) = port {
            self.ports.set_sharing(key, socket, sharing);
        }
        self.apply_shared(socket);
        let Self { now, sockets, associations, ports, .. } = self;
        update_full_of_all(*now, sockets, associations, ports, socket);
        Ok(())
    }

    fn set_sctp(&mut self, socket: SocketId, name: i32, value: &[u8]) -> Result<(), Errno> {
        let number = i32_at(value, 0);
        match name {
            SCTP_SOCKOPT_BINDX_ADD => self.bindx(self.now, socket, value, true),
            SCTP_SOCKOPT_BINDX_REM => self.bindx(self.now, socket, value, false),
            SCTP_AUTOCLOSE if self.sockets.find(socket)?.is_single() => Err(Errno::EOPNOTSUPP),
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
                check_length(value, &[4])?;
                self.set_shared(socket, name, number as u32)
            }
            SCTP_PR_SUPPORTED
            | SCTP_RECONFIG_SUPPORTED
            | SCTP_INTERLEAVING_SUPPORTED
            | SCTP_ASCONF_SUPPORTED
            | SCTP_AUTH_SUPPORTED
            | SCTP_ECN_SUPPORTED => {
                check_length(value, &[8])?;
                self.set_extension(socket, name, value)
            }
            SCTP_EVENTS => self.set_events(socket, value),
            SCTP_PEER_ADDR_PARAMS => {
                check_length(value, &[152, 156])?;
                self.set_peer_address_params(socket, value)
            }
            SCTP_PRIMARY_ADDR => {
                check_length(value, &[132])?;
                let (id, path, _) = self.target_path(socket, number, &value[4..])?;
                self.with_association(id, |association| association.set_primary(path.id))?;
                self.associations.refresh_paths(&self.ports, id);
                Ok(())
            }
            SCTP_SET_PEER_PRIMARY_ADDR => {
                check_length(value, &[132])?;
                let (address, _) = read_name(self.sockets.find(socket)?, &value[4..])?;
                let id = self.target_association(socket, number)?;
                self.with_association(id, |association| association.set_peer_primary(address.ip()))
            }
            SCTP_AUTH_CHUNK => {
                check_length(value, &[1])?;
                let shared = &mut self.sockets.find_mut(socket)?.shared;
                if !shared.extensions.authentication {
                    return Err(Errno::EACCES);
                }
                if !shared.authenticated_chunks.contains(&value[0]) {
                    shared.authenticated_chunks.push(value[0]);
                }
                Ok(())
            }
            SCTP_RESET_STREAMS | SCTP_RESET_ASSOC | SCTP_ADD_STREAMS => {
                self.set_streams(socket, name, value)
            }
            SCTP_AUTH_KEY | SCTP_AUTH_ACTIVE_KEY | SCTP_AUTH_DELETE_KEY => {
                self.set_key(socket, name, value)
            }
            _ => self.set_setting(socket, name, value),
        }
    }

    fn set_shared(&mut self, socket: SocketId, name: i32, number: u32) -> Result<(), Errno> {
        let found = self.sockets.find_mut(socket)?;
        let one_to_one = found.is_one_to_one();
        let has_port = found.port.is_some();
        let shared = &mut found.shared;
        let on = number != 0;
        match name {
            SCTP_NODELAY => shared.no_delay = on,
            SCTP_AUTOCLOSE => shared.autoclose = number,
            SCTP_ADAPTATION_LAYER => shared.adaptation = number,
            SCTP_DISABLE_FRAGMENTS => shared.disable_fragments = on,
            SCTP_I_WANT_MAPPED_V4_ADDR => shared.mapped = on,
            SCTP_FRAGMENT_INTERLEAVE => shared.fragment_interleave = on.into(),
            SCTP_PARTIAL_DELIVERY_POINT if number as usize > shared.receive_buffer / 2 => {
                return Err(Errno::EINVAL);
            }
            SCTP_PARTIAL_DELIVERY_POINT => shared.partial_delivery_point = number,
            SCTP_AUTO_ASCONF => shared.auto_asconf = on,
            SCTP_RECVRCVINFO => shared.receive_rcvinfo = on,
            SCTP_RECVNXTINFO => shared.receive_nxtinfo = on,
            SCTP_REUSE_PORT if !one_to_one => return Err(Errno::EOPNOTSUPP),
            SCTP_REUSE_PORT if has_port => return Err(Errno::EFAULT),
            _ => shared.sctp_reuse_port = on,
        }
        self.apply_shared(socket);
        Ok(())
    }

    fn set_extension(&mut self, socket: SocketId, name: i32, value: &[u8]) -> Result<(), Errno> {
        let id = i32_at(value, 0);
        if self.target(socket, id)?.is_some() && name != SCTP_PR_SUPPORTED {
            return Err(Errno::EINVAL);
        }
        let on = u32_at(value, 4) != 0;
        let shared = &mut self.sockets.find_mut(socket)?.shared;
        let offers = &mut shared.extensions;
        match name {
            SCTP_PR_SUPPORTED => offers.partial_reliability = on,
            SCTP_RECONFIG_SUPPORTED => offers.reconfiguration = on,
            // Incomplete messages would block each other (RFC 8260 §4.3.1).
            SCTP_INTERLEAVING_SUPPORTED if on && shared.fragment_interleave == 0 => {
                return Err(Errno::EPERM);
            }
            SCTP_INTERLEAVING_SUPPORTED => offers.interleaving = on,
            SCTP_ASCONF_SUPPORTED => offers.dynamic_addresses = on,
            SCTP_AUTH_SUPPORTED => offers.authentication = on,
            _ => offers.ecn = on,
        }
        self.refresh_listening(socket);
        Ok(())
    }

    /// Sets as many subscriptions as `value` has bytes, and leaves the others unchanged.
    fn set_events(&mut self, socket: SocketId, value: &[u8]) -> Result<(), Errno> {
        if value.len() > EVENTS {
            return Err(Errno::EINVAL);
        }
        let mut events = self.sockets.find(socket)?.settings.events;
        for (bit, on) in value.iter().enumerate() {
            events = if *on != 0 { events | 1 << bit } else { events & !(1 << bit) };
        }
        let found = self.sockets.find_mut(socket)?;
        found.settings.events = events;
        let all: alloc::vec::Vec<_> = found.associations.iter().copied().collect();
        for id in all {
            if let Some(assoc) = self.associations.get_mut(id) {
                assoc.settings.events = events;
            }
        }
        Ok(())
    }

    fn set_peer_address_params(&mut self, socket: SocketId, value: &[u8]) -> Result<(), Errno> {
        let flags = u32_at(value, 146);
        let contradicts = |on: u32, off: u32| flags & on != 0 && flags & off != 0;
        let path_mtu = u32_at(value, 138);
        let sack_delay = u32_at(value, 142);
        if contradicts(spp::HB_ENABLE, spp::HB_DISABLE)
            || contradicts(spp::PMTUD_ENABLE, spp::PMTUD_DISABLE)
            || contradicts(spp::SACKDELAY_ENABLE, spp::SACKDELAY_DISABLE)
            || sack_delay > MAX_SACK_DELAY
            || (path_mtu > 0 && path_mtu < 512)
        {
            return Err(Errno::EINVAL);
        }
        if flags & spp::HB_DEMAND != 0 {
            self.demand_heartbeat(socket, value)?;
        }
        let interval = u32_at(value, 132);
        let max_retrans = u16_at(value, 136);
        let flow_label = u32_at(value, 150);
        let dscp = value.get(154).copied().unwrap_or_default();
        self.change(socket, i32_at(value, 0), |own| {
            let address = &mut own.peer_address;
            for (on, off) in [
                (spp::HB_ENABLE, spp::HB_DISABLE),
                (spp::PMTUD_ENABLE, spp::PMTUD_DISABLE),
                (spp::SACKDELAY_ENABLE, spp::SACKDELAY_DISABLE),
            ] {
                if flags & (on | off) != 0 {
                    address.flags = address.flags & !(on | off) | flags & (on | off);
                }
            }
            if flags & spp::HB_TIME_IS_ZERO != 0 || (flags & spp::HB_ENABLE != 0 && interval > 0) {
                address.hb_interval = interval;
            }
            if max_retrans > 0 {
                address.path_max_retrans = max_retrans;
            }
            if flags & spp::PMTUD_DISABLE != 0 && path_mtu > 0 {
                address.path_mtu = path_mtu;
            }
            if sack_delay > 0 {
                own.sack_delay = sack_delay;
            }
            if flags & spp::IPV6_FLOWLABEL != 0 {
                address.flow_label = flow_label;
            }
            if flags & spp::DSCP != 0 {
                address.dscp = dscp;
            }
        })
    }

    fn set_setting(&mut self, socket: SocketId, name: i32, value: &[u8]) -> Result<(), Errno> {
        let id = i32_at(value, 0);
        let second = u32_at(value, 4);
        match name {
            SCTP_RTOINFO => {
                check_length(value, &[16])?;
                let current = self.settings(socket, id)?.rto;
                let or = |new: u32, old: u32| if new == 0 { old } else { new };
                let rto = RtoInfo {
                    initial: or(second, current.initial),
                    max: or(u32_at(value, 8), current.max),
                    min: or(u32_at(value, 12), current.min),
                };
                if rto.min > rto.max {
                    return Err(Errno::EINVAL);
                }
                self.change(socket, id, |own| own.rto = rto)
            }
            SCTP_ASSOCINFO => {
                check_length(value, &[20])?;
                let (retrans, life) = (u16_at(value, 4), u32_at(value, 16));
                self.change(socket, id, |own| {
                    if retrans > 0 {
                        own.association_max_retrans = retrans;
                    }
                    if life > 0 {
                        own.cookie_life = life;
                    }
                })
            }
            SCTP_INITMSG => self.set_init(socket, value),
            SCTP_DEFAULT_SEND_PARAM => {
                check_length(value, &[SndRcvInfo::LENGTH])?;
                let info = SndRcvInfo::read(value);
                self.change(socket, info.association, |own| own.default_send = info)
            }
            SCTP_DEFAULT_SNDINFO => {
                check_length(value, &[SndInfo::LENGTH])?;
                let info = SndInfo::read(value);
                self.change(socket, info.association, |own| {
                    let send = &mut own.default_send;
                    (send.stream, send.flags) = (info.stream, info.flags);
                    (send.ppid, send.context) = (info.ppid, info.context);
                })
            }
            SCTP_DEFAULT_PRINFO => {
                check_length(value, &[12])?;
                let policy = u16_at(value, 8);
                if policy & !0x30 != 0 {
                    return Err(Errno::EINVAL);
                }
                self.change(socket, id, |own| {
                    own.default_send.flags = own.default_send.flags & !0x30 | policy;
                    own.default_send.time_to_live = second;
                })
            }
            SCTP_DELAYED_SACK => self.set_delayed_sack(socket, value),
            _ => self.set_value(socket, name, value),
        }
    }

    fn set_init(&mut self, socket: SocketId, value: &[u8]) -> Result<(), Errno> {
        check_length(value, &[8])?;
        let field = |offset, old| match u16_at(value, offset) {
            0 => old,
            new => new,
        };
        let init = &mut self.sockets.find_mut(socket)?.settings.init;
        init.outbound = field(0, init.outbound);
        init.max_inbound = field(2, init.max_inbound);
        init.max_attempts = field(4, init.max_attempts);
        init.max_timeout = field(6, init.max_timeout);
        self.refresh_listening(socket);
        Ok(())
    }

    fn set_delayed_sack(&mut self, socket: SocketId, value: &[u8]) -> Result<(), Errno> {
        check_length(value, &[8, 12])?;
        let (delay, frequency) = (u32_at(value, 4), u32_at(value, 8));
        if delay > MAX_SACK_DELAY {
            return Err(Errno::EINVAL);
        }
        self.change(socket, i32_at(value, 0), |own| {
            if delay > 0 {
                own.sack_delay = delay;
            }
            let off = frequency == 1 || (value.len() == 8 && delay == 0);
            let delays = spp::SACKDELAY_ENABLE;
            let flags = &mut own.peer_address.flags;
            if off {
                *flags = *flags & !delays | spp::SACKDELAY_DISABLE;
            } else {
                *flags = *flags & !spp::SACKDELAY_DISABLE | delays;
            }
            if frequency > 0 {
                own.sack_frequency = frequency;
            }
        })
    }

    /// Sets an option with a single number.
    fn set_value(&mut self, socket: SocketId, name: i32, value: &[u8]) -> Result<(), Errno> {
        let change: fn(&mut AssocSettings, u32) = match name {
            SCTP_MAXSEG => |own, number| own.max_segment = number,
            SCTP_MAX_BURST => |own, number| own.max_burst = number,
            SCTP_CONTEXT => |own, number| own.receive_context = number,
            SCTP_STREAM_SCHEDULER => |own, number| own.scheduler = number,
            SCTP_ENABLE_STREAM_RESET => |own, number| own.stream_reset = number,
            SCTP_EXPOSE_POTENTIALLY_FAILED_STATE => |own, number| own.expose_pf = number,
            SCTP_STREAM_SCHEDULER_VALUE => |_, _| {},
            SCTP_EVENT => |_, _| {},
            _ => return self.set_rare(socket, name, value),
        };
        let may_be_int = matches!(name, SCTP_MAXSEG | SCTP_MAX_BURST);
        check_length(value, if may_be_int { &[4, 8] } else { &[8] })?;
        let (id, number) = match value.len() {
            4 => (0, u32_at(value, 0)),
            _ => (i32_at(value, 0), u32_at(value, 4)),
        };
        let is_invalid = match name {
            SCTP_MAXSEG => number != 0 && !(8..=65_515).contains(&number),
            SCTP_STREAM_SCHEDULER => number > 4,
            SCTP_ENABLE_STREAM_RESET => number > 7,
            SCTP_EXPOSE_POTENTIALLY_FAILED_STATE => number > 2,
            SCTP_EVENT => !(0x8000..0x800e).contains(&u32::from(u16_at(value, 4))),
            _ => false,
        };
        if is_invalid {
            return Err(Errno::EINVAL);
        }
        let (kind, on) = (u16_at(value, 4), value.get(6).is_some_and(|on| *on != 0));
        let (stream, weight) = (StreamId(kind), u16_at(value, 6));
        self.change(socket, id, |own| match name {
            SCTP_EVENT => {
                let bit = 1 << (kind & 0xf);
                own.events = if on { own.events | bit } else { own.events & !bit };
            }
            SCTP_STREAM_SCHEDULER_VALUE => {
                own.stream_values.retain(|(other, _)| *other != stream);
                own.stream_values.push((stream, weight));
            }
            _ => change(own, number),
        })
    }
}

pub(super) fn check_length(value: &[u8], allowed: &[usize]) -> Result<(), Errno> {
    if allowed.contains(&value.len()) { Ok(()) } else { Err(Errno::EINVAL) }
}
