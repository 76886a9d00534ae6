//! `getsockopt`.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use eyas_sctp::endpoint::{AssociationState, PathState, PathStatus};

use super::Stack;
use super::ip_options::general_value;
use super::names::read_name;
use super::socket::SocketState;
use crate::abi::layout::{i32_at, put_i32, put_u16, put_u32, put_u64, u16_at, write_field};
use crate::abi::number::option::*;
use crate::abi::number::{level, so, socket};
use crate::abi::{Errno, STORAGE};
use crate::io::{AssocId, SocketDomain, SocketId, SocketStyle};
use crate::settings::{AssocSettings, PeerAddrParams};

/// The size of `SCTP_SQINFO` without the streams.
const SQINFO: usize = 16;
/// The size of `SCTP_EVENTS`.
pub(super) const EVENTS: usize = 14;

impl Stack {
    /// `getsockopt`; `value` is the content of the program's buffer, with the length `optlen`. The
    /// result is never longer, and its length is the new `optlen`. `CONNECTX3` and `PEELOFF` have
    /// separate calls here.
    ///
    /// # Errors
    /// `ENOPROTOOPT`, `EINVAL`, `ENOTCONN`, …
    pub fn getsockopt(
        &mut self,
        now: Duration,
        socket: SocketId,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        self.advance_to(now);
        self.sockets.find(socket)?;
        let found = match level {
            level::SOL_SCTP => self.get_sctp(socket, name, value),
            level::SOL_SOCKET => self.get_socket(socket, name, value),
            _ => self.get_ip(socket, level, name, value),
        };
        self.unsupported.count(level, name, &found);
        found
    }

    fn get_socket(&mut self, id: SocketId, name: i32, value: &[u8]) -> Result<Vec<u8>, Errno> {
        let found = self.sockets.find_mut(id)?;
        let shared = &found.shared;
        let number = match name {
            so::SO_TYPE if found.style == SocketStyle::OneToMany => socket::SOCK_SEQPACKET,
            so::SO_TYPE => socket::SOCK_STREAM,
            so::SO_PROTOCOL => socket::IPPROTO_SCTP,
            so::SO_DOMAIN if found.domain == SocketDomain::Inet => socket::AF_INET,
            so::SO_DOMAIN => socket::AF_INET6,
            so::SO_ERROR => {
                let error = found.error.take().map_or(0, |error| error.0);
                self.sockets.touch(id);
                error
            }
            so::SO_SNDBUF => shared.send_buffer as i32,
            so::SO_RCVBUF => shared.receive_buffer as i32,
            so::SO_SNDBUFFORCE | so::SO_RCVBUFFORCE => return Err(Errno::ENOPROTOOPT),
            so::SO_REUSEADDR => shared.reuse_address.into(),
            so::SO_REUSEPORT => shared.reuse_port.into(),
            so::SO_ACCEPTCONN => (found.state == SocketState::Listening).into(),
            so::SO_LINGER => {
                let (on, seconds) = shared.linger.map_or((0, 0), |wait| (1, wait.as_secs() as u32));
                return Ok(truncated([ints(&[on]), ints(&[seconds])].concat(), value));
            }
            so::SO_MARK => shared.markings.v4.mark as i32,
            so::SO_BINDTODEVICE => return Ok(Vec::new()),
            _ => general_value(found, level::SOL_SOCKET, name)?,
        };
        Ok(truncated(ints(&[number as u32]), value))
    }

    fn get_sctp(&mut self, socket: SocketId, name: i32, value: &[u8]) -> Result<Vec<u8>, Errno> {
        let shared = &self.sockets.find(socket)?.shared;
        let offers = &shared.extensions;
        let flag = match name {
            SCTP_NODELAY => u32::from(shared.no_delay),
            SCTP_AUTOCLOSE if self.sockets.find(socket)?.is_single() => {
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
            SCTP_GET_ASSOC_NUMBER => self.live_associations(socket)?.len() as u32,
            SCTP_EVENTS => return self.get_events(socket, value),
            SCTP_STATUS => return self.get_status(socket, value),
            SCTP_GET_PEER_ADDR_INFO => return self.get_peer_address_info(socket, value),
            SCTP_SQINFO => return self.get_send_queue(socket, value),
            SCTP_PEER_ADDR_PARAMS => return self.get_peer_address_params(socket, value),
            SCTP_PRIMARY_ADDR => return self.get_primary(socket, value),
            SCTP_GET_PEER_ADDRS => return self.get_peer_addresses(socket, value),
            SCTP_GET_LOCAL_ADDRS => return self.get_local_addresses(socket, value),
            SCTP_GET_ASSOC_ID_LIST => {
                let ids = self.live_associations(socket)?;
                let mut list = alloc::vec![ids.len() as u32];
                list.extend(ids.iter().map(|id| id.0 as u32));
                return exact(ints(&list), value);
            }
            SCTP_GET_ASSOC_STATS => {
                let id = self.target_association(socket, at_least(value, 4)?)?;
                let mut bytes = alloc::vec![0; 256];
                put_i32(&mut bytes, 0, id.0);
                let status = self.associations.status(&self.ports, id).ok_or(Errno::EINVAL)?;
                put_u64(&mut bytes, 136, status.paths.len() as u64);
                return Ok(truncated(bytes, value));
            }
            SCTP_PR_SUPPORTED => {
                return extension_value(self, socket, value, offers.partial_reliability);
            }
            SCTP_RECONFIG_SUPPORTED => {
                return extension_value(self, socket, value, offers.reconfiguration);
            }
            SCTP_INTERLEAVING_SUPPORTED => {
                return extension_value(self, socket, value, offers.interleaving);
            }
            SCTP_ASCONF_SUPPORTED => {
                return extension_value(self, socket, value, offers.dynamic_addresses);
            }
            SCTP_AUTH_SUPPORTED => {
                return extension_value(self, socket, value, offers.authentication);
            }
            SCTP_ECN_SUPPORTED => return extension_value(self, socket, value, offers.ecn),
            _ => return self.get_setting(socket, name, value),
        };
        exact(ints(&[flag]), value)
    }

    /// Options that each association has.
    fn get_setting(&self, socket: SocketId, name: i32, value: &[u8]) -> Result<Vec<u8>, Errno> {
        let of = |offset: usize| {
            let id = if value.len() >= offset + 4 { i32_at(value, offset) } else { 0 };
            Ok::<(i32, &AssocSettings), Errno>((id, self.settings(socket, id)?))
        };
        let bytes = match name {
            SCTP_RTOINFO => {
                let (id, own) = of(0)?;
                ints(&[id as u32, own.rto.initial, own.rto.max, own.rto.min])
            }
            SCTP_ASSOCINFO => self.get_association_info(socket, of(0)?)?,
            SCTP_INITMSG => {
                let init = self.sockets.find(socket)?.settings.init;
                let fields = [init.outbound, init.max_inbound, init.max_attempts, init.max_timeout];
                fields.iter().flat_map(|field| field.to_ne_bytes()).collect()
            }
            SCTP_DEFAULT_SEND_PARAM => {
                let (id, own) = of(28)?;
                let mut info = own.default_send;
                info.association = id;
                info.encode().to_vec()
            }
            SCTP_DEFAULT_SNDINFO => {
                let (id, own) = of(12)?;
                let info = own.default_send;
                let mut bytes = ints(&[0, info.ppid, info.context, id as u32]);
                put_u16(&mut bytes, 0, info.stream);
                put_u16(&mut bytes, 2, info.flags);
                bytes
            }
            SCTP_DEFAULT_PRINFO => {
                let (id, own) = of(0)?;
                let policy = u32::from(own.default_send.flags & 0x30);
                ints(&[id as u32, own.default_send.time_to_live, policy])
            }
            SCTP_DELAYED_SACK if value.len() == 8 => {
                let (id, own) = of(0)?;
                ints(&[id as u32, own.sack_delay])
            }
            SCTP_DELAYED_SACK => {
                let (id, own) = of(0)?;
                ints(&[id as u32, own.sack_delay, own.sack_frequency])
            }
            SCTP_MAXSEG if value.len() == 4 => ints(&[self.settings(socket, 0)?.max_segment]),
            SCTP_MAX_BURST if value.len() == 4 => ints(&[self.settings(socket, 0)?.max_burst]),
            SCTP_MAXSEG => id_and_value(of(0)?, |own| own.max_segment),
            SCTP_MAX_BURST => id_and_value(of(0)?, |own| own.max_burst),
            SCTP_CONTEXT => id_and_value(of(0)?, |own| own.receive_context),
            SCTP_STREAM_SCHEDULER => id_and_value(of(0)?, |own| own.scheduler),
            SCTP_ENABLE_STREAM_RESET => id_and_value(of(0)?, |own| own.stream_reset),
            SCTP_EXPOSE_POTENTIALLY_FAILED_STATE => id_and_value(of(0)?, |own| own.expose_pf),
            SCTP_EVENT => {
                let (id, own) = of(0)?;
                event_subscription(id, own, value)
            }
            SCTP_HMAC_IDENT => {
                let hmacs = &self.sockets.find(socket)?.shared.hmacs;
                let mut bytes = ints(&[hmacs.len() as u32]);
                bytes.extend(hmacs.iter().flat_map(|hmac| hmac.to_ne_bytes()));
                bytes
            }
            SCTP_AUTH_ACTIVE_KEY => {
                let (id, own) = of(0)?;
                ints(&[id as u32, own.keys.active().into()])
            }
            _ => return self.get_rare(socket, name, value),
        };
        exact(bytes, value)
    }

    fn get_association_info(
        &self,
        socket: SocketId,
        (id, own): (i32, &AssocSettings),
    ) -> Result<Vec<u8>, Errno> {
        let status =
            self.target(socket, id)?.and_then(|id| self.associations.status(&self.ports, id));
        let mut bytes = ints(&[id as u32, 0, 0, 0, own.cookie_life]);
        put_u16(&mut bytes, 4, own.association_max_retrans);
        if let Some(status) = status {
            put_u16(&mut bytes, 6, status.paths.len() as u16);
            put_u32(&mut bytes, 8, status.peer_window);
            put_u32(&mut bytes, 12, status.window);
        }
        Ok(bytes)
    }

    /// Returns `min(optlen, 14)` bytes, one for each type of notification.
    fn get_events(&self, socket: SocketId, value: &[u8]) -> Result<Vec<u8>, Errno> {
        if value.is_empty() {
            return Err(Errno::EINVAL);
        }
        let events = self.sockets.find(socket)?.settings.events;
        Ok((0..value.len().min(EVENTS)).map(|bit| u8::from(events & 1 << bit != 0)).collect())
    }

    fn get_status(&self, socket: SocketId, value: &[u8]) -> Result<Vec<u8>, Errno> {
        let id = self.target_association(socket, at_least(value, 176)?)?;
        let status = self.associations.status(&self.ports, id).ok_or(Errno::EINVAL)?;
        let mut bytes = alloc::vec![0; 176];
        put_i32(&mut bytes, 0, id.0);
        put_i32(&mut bytes, 4, state_number(status.state));
        put_u32(&mut bytes, 8, status.peer_window);
        put_u16(&mut bytes, 16, status.inbound_streams);
        put_u16(&mut bytes, 18, status.outbound_streams);
        let largest = self.associations.get(id).map_or(0, |it| it.fragmentation_point(&self.ports));
        put_u32(&mut bytes, 20, largest as u32);
        let primary = status.paths.iter().find(|path| path.id == status.primary);
        if let Some(path) = primary {
            write_field(&mut bytes, 24, &self.path_info(socket, id, path, status.remote_port)?);
        }
        Ok(truncated(bytes, value))
    }

    /// Returns the contents of the send buffer: its limit, all bytes, the number of streams, and the
    /// bytes of each, as far as the program's buffer reaches.
    fn get_send_queue(&self, socket: SocketId, value: &[u8]) -> Result<Vec<u8>, Errno> {
        let id = self.target_association(socket, at_least(value, SQINFO)?)?;
        let info = self
            .associations
            .get(id)
            .and_then(|it| self.ports.queue_info(it.key))
            .ok_or(Errno::EINVAL)?;
        let (limit, queued) = (info.limit as u32, info.queued as u32);
        let mut bytes = ints(&[id.0 as u32, limit, queued, info.streams.into()]);
        let streams = usize::from(info.streams).min((value.len() - SQINFO) / 4);
        bytes.resize(SQINFO + 4 * streams, 0);
        for (stream, queue) in &info.by_stream {
            if usize::from(stream.0) < streams {
                put_u32(&mut bytes, SQINFO + 4 * usize::from(stream.0), queue.total() as u32);
            }
        }
        Ok(bytes)
    }

    fn path_info(
        &self,
        socket: SocketId,
        id: AssocId,
        path: &PathStatus,
        port: u16,
    ) -> Result<Vec<u8>, Errno> {
        let mut bytes = alloc::vec![0; 152];
        let address = SocketAddr::new(path.remote.ip(), port);
        put_i32(&mut bytes, 0, id.0);
        write_field(&mut bytes, 4, self.sockets.find(socket)?.name(address).as_bytes());
        let state = match path.state {
            PathState::Active => 2,
            PathState::Unconfirmed => 3,
            PathState::PotentiallyFailed => 1,
            _ => 0,
        };
        put_i32(&mut bytes, 4 + STORAGE, state);
        put_u32(&mut bytes, 8 + STORAGE, path.congestion_window as u32);
        let rtt = path.smoothed_rtt.unwrap_or_default();
        put_u32(&mut bytes, 12 + STORAGE, rtt.as_millis() as u32);
        put_u32(&mut bytes, 16 + STORAGE, path.rto.as_millis() as u32);
        put_u32(&mut bytes, 20 + STORAGE, path.mtu as u32 + 20);
        Ok(bytes)
    }

    /// Returns the association and the path that an option applies to.
    pub(super) fn target_path(
        &self,
        socket: SocketId,
        id: i32,
        name: &[u8],
    ) -> Result<(AssocId, PathStatus, u16), Errno> {
        let (address, _) =
            read_name(self.sockets.find(socket)?, name).map_err(|_| Errno::EINVAL)?;
        let target = self.target(socket, id)?;
        let found = self.sockets.find(socket)?;
        let id = target.or_else(|| self.associations.find_peer(found, address));
        let id = id.ok_or(Errno::EINVAL)?;
        let status = self.associations.status(&self.ports, id).ok_or(Errno::EINVAL)?;
        let port = status.remote_port;
        let mut paths = status.paths.into_iter();
        let is_named = |path: &PathStatus| path.remote.ip() == address.ip();
        let path = paths.find(|path| is_named(path) && port == address.port());
        let path = path.ok_or(Errno::EINVAL)?;
        Ok((id, path, port))
    }

    fn get_peer_address_info(&self, socket: SocketId, value: &[u8]) -> Result<Vec<u8>, Errno> {
        let id = at_least(value, 152)?;
        let (id, path, port) = self.target_path(socket, id, &value[4..])?;
        Ok(truncated(self.path_info(socket, id, &path, port)?, value))
    }

    fn get_peer_address_params(&self, socket: SocketId, value: &[u8]) -> Result<Vec<u8>, Errno> {
        let id = at_least(value, 152)?;
        let own = self.settings(socket, id)?;
        let PeerAddrParams { hb_interval, path_max_retrans, path_mtu, flags, flow_label, dscp } =
            own.peer_address;
        let mut bytes = value.get(..value.len().min(156)).unwrap_or_default().to_vec();
        put_u32(&mut bytes, 132, hb_interval);
        put_u16(&mut bytes, 136, path_max_retrans);
        put_u32(&mut bytes, 138, path_mtu);
        put_u32(&mut bytes, 142, own.sack_delay);
        put_u32(&mut bytes, 146, flags);
        put_u32(&mut bytes, 150, flow_label);
        write_field(&mut bytes, 154, &[dscp]);
        Ok(bytes)
    }

    fn get_primary(&self, socket: SocketId, value: &[u8]) -> Result<Vec<u8>, Errno> {
        let id = self.target_association(socket, at_least(value, 132)?)?;
        let peer = self.associations.get(id).map(|assoc| assoc.peer).ok_or(Errno::EINVAL)?;
        let mut bytes = alloc::vec![0; 132];
        put_i32(&mut bytes, 0, id.0);
        write_field(&mut bytes, 4, self.sockets.find(socket)?.name(peer).as_bytes());
        Ok(truncated(bytes, value))
    }

    fn get_peer_addresses(&self, socket: SocketId, value: &[u8]) -> Result<Vec<u8>, Errno> {
        let id = at_least(value, 8)?;
        let id = self.target_association(socket, id)?;
        let paths = self.associations.get(id).map(|assoc| &assoc.paths).ok_or(Errno::EINVAL)?;
        self.list_names(socket, id.0, paths.iter().map(|(_, peer)| *peer), value)
    }

    fn get_local_addresses(&self, socket: SocketId, value: &[u8]) -> Result<Vec<u8>, Errno> {
        let id = at_least(value, 8)?;
        let found = self.sockets.find(socket)?;
        let key = found.port.ok_or(Errno::EINVAL)?;
        let number = self.ports.number(key).ok_or(Errno::EINVAL)?;
        let bound = self.ports.bound_addresses(key).unwrap_or_default();
        let all = self.ports.local_addresses().iter().filter(|ip| found.accepts(**ip));
        let names = bound.iter().chain(all.filter(|_| bound.is_empty()));
        let own = |ip: &IpAddr| SocketAddr::new(*ip, number);
        let names = names.map(|ip| self.associations.own_name(found, own(ip)));
        self.list_names(socket, id, names, value)
    }

    fn list_names(
        &self,
        socket: SocketId,
        id: i32,
        addresses: impl Iterator<Item = SocketAddr>,
        value: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        let found = self.sockets.find(socket)?;
        let mut bytes = ints(&[id as u32, 0]);
        let mut count = 0;
        for address in addresses {
            bytes.extend_from_slice(found.name(address).as_bytes());
            count += 1;
        }
        put_u32(&mut bytes, 4, count);
        if bytes.len() > value.len() { Err(Errno::ENOMEM) } else { Ok(bytes) }
    }

    fn live_associations(&self, socket: SocketId) -> Result<Vec<AssocId>, Errno> {
        let found = self.sockets.find(socket)?;
        if found.is_one_to_one() {
            return Err(Errno::EOPNOTSUPP);
        }
        let all = found.associations.iter().copied();
        Ok(all.filter(|id| self.associations.is_alive(*id)).collect())
    }
}

/// Returns whether the program has subscribed to a type of notification, as an `sctp_event`.
fn event_subscription(id: i32, own: &AssocSettings, value: &[u8]) -> Vec<u8> {
    let kind = u16_at(value, 4);
    let on = own.events & 1 << (kind & 0xf) != 0;
    let mut bytes = ints(&[id as u32, 0]);
    put_u16(&mut bytes, 4, kind);
    write_field(&mut bytes, 6, &[on.into()]);
    bytes
}

fn id_and_value(
    (id, own): (i32, &AssocSettings),
    field: impl Fn(&AssocSettings) -> u32,
) -> Vec<u8> {
    ints(&[id as u32, field(own)])
}

/// Returns whether an extension is offered, as an `sctp_assoc_value`.
fn extension_value(
    stack: &Stack,
    socket: SocketId,
    value: &[u8],
    on: bool,
) -> Result<Vec<u8>, Errno> {
    let id = at_least(value, 8)?;
    stack.target(socket, id)?;
    Ok(truncated(ints(&[id as u32, on.into()]), value))
}

/// Returns the bytes of 32-bit numbers.
pub(super) fn ints(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

/// Returns the number at the start of a buffer, which must have at least this length.
fn at_least(value: &[u8], length: usize) -> Result<i32, Errno> {
    if value.len() < length { Err(Errno::EINVAL) } else { Ok(i32_at(value, 0)) }
}

/// Returns the bytes, or an error if the buffer is too small.
fn exact(bytes: Vec<u8>, value: &[u8]) -> Result<Vec<u8>, Errno> {
    if value.len() < bytes.len() { Err(Errno::EINVAL) } else { Ok(bytes) }
}

/// Returns the bytes, truncated to the buffer.
pub(super) fn truncated(mut bytes: Vec<u8>, value: &[u8]) -> Vec<u8> {
    bytes.truncate(value.len());
    bytes
}

fn state_number(state: AssociationState) -> i32 {
    match state {
        AssociationState::CookieWait | AssociationState::Held => 2,
        AssociationState::CookieEchoed => 3,
        AssociationState::Established => 4,
        AssociationState::ShutdownPending => 5,
        AssociationState::ShutdownSent => 6,
        AssociationState::ShutdownReceived => 7,
        AssociationState::ShutdownAckSent => 8,
        _ => 1,
    }
}
