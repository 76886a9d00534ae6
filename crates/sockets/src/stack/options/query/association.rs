//! `getsockopt` for what an association or its endpoint reports.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use eyas_sctp::endpoint::{AssociationState, PathState, PathStatus};

use super::super::call::ints;
use super::super::target::target_path;
use super::OptionQuery;
use crate::abi::layout::{put_i32, put_u16, put_u32, put_u64, write_field};
use crate::abi::{Errno, STORAGE};
use crate::io::AssocId;

/// The size of `SCTP_SQINFO` without the streams.
const SQINFO: usize = 16;

impl OptionQuery<'_> {
    pub(super) fn status(&self) -> Result<Vec<u8>, Errno> {
        let id = self.association(176)?;
        let status = self.associations.status(self.ports, id).ok_or(Errno::EINVAL)?;
        let mut bytes = alloc::vec![0; 176];
        put_i32(&mut bytes, 0, id.0);
        put_i32(&mut bytes, 4, state_number(status.state));
        put_u32(&mut bytes, 8, status.peer_window);
        put_u16(&mut bytes, 16, status.inbound_streams);
        put_u16(&mut bytes, 18, status.outbound_streams);
        let largest = self.associations.get(id).map_or(0, |it| it.fragmentation_point(self.ports));
        put_u32(&mut bytes, 20, largest as u32);
        let primary = status.paths.iter().find(|path| path.id == status.primary);
        if let Some(path) = primary {
            write_field(&mut bytes, 24, &self.path_info(id, path, status.remote_port));
        }
        Ok(self.call.truncated(bytes))
    }

    /// Only the number of paths is known.
    pub(super) fn statistics(&self) -> Result<Vec<u8>, Errno> {
        let id = self.association(4)?;
        let mut bytes = alloc::vec![0; 256];
        put_i32(&mut bytes, 0, id.0);
        let status = self.associations.status(self.ports, id).ok_or(Errno::EINVAL)?;
        put_u64(&mut bytes, 136, status.paths.len() as u64);
        Ok(self.call.truncated(bytes))
    }

    /// Returns the contents of the send buffer: its limit, all bytes, the number of streams, and the
    /// bytes of each, as far as the program's buffer reaches.
    pub(super) fn send_queue(&self) -> Result<Vec<u8>, Errno> {
        let value = self.call.value;
        let id = self.association(SQINFO)?;
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

    fn path_info(&self, id: AssocId, path: &PathStatus, port: u16) -> Vec<u8> {
        let mut bytes = alloc::vec![0; 152];
        let address = SocketAddr::new(path.remote.ip(), port);
        put_i32(&mut bytes, 0, id.0);
        write_field(&mut bytes, 4, self.socket.name(address).as_bytes());
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
        bytes
    }

    pub(super) fn peer_address_info(&self) -> Result<Vec<u8>, Errno> {
        let id = self.call.id_of_at_least(152)?;
        let name = &self.call.value[4..];
        let found = target_path(self.socket, self.associations, self.ports, id, name)?;
        Ok(self.call.truncated(self.path_info(found.id, &found.path, found.port)))
    }

    pub(super) fn primary(&self) -> Result<Vec<u8>, Errno> {
        let id = self.association(132)?;
        let peer = self.associations.get(id).map(|assoc| assoc.peer).ok_or(Errno::EINVAL)?;
        let mut bytes = alloc::vec![0; 132];
        put_i32(&mut bytes, 0, id.0);
        write_field(&mut bytes, 4, self.socket.name(peer).as_bytes());
        Ok(self.call.truncated(bytes))
    }

    pub(super) fn peer_addresses(&self) -> Result<Vec<u8>, Errno> {
        let id = self.association(8)?;
        let paths = self.associations.get(id).map(|assoc| &assoc.paths).ok_or(Errno::EINVAL)?;
        self.list_names(id.0, paths.iter().map(|(_, peer)| *peer))
    }

    pub(super) fn local_addresses(&self) -> Result<Vec<u8>, Errno> {
        let id = self.call.id_of_at_least(8)?;
        let found = self.socket;
        let key = found.port.ok_or(Errno::EINVAL)?;
        let number = self.ports.number(key).ok_or(Errno::EINVAL)?;
        let bound = self.ports.bound_addresses(key).unwrap_or_default();
        let all = self.ports.local_addresses().iter().filter(|ip| found.accepts(**ip));
        let names = bound.iter().chain(all.filter(|_| bound.is_empty()));
        let own = |ip: &IpAddr| SocketAddr::new(*ip, number);
        let names = names.map(|ip| self.associations.own_name(found, own(ip)));
        self.list_names(id, names)
    }

    fn list_names(
        &self,
        id: i32,
        addresses: impl Iterator<Item = SocketAddr>,
    ) -> Result<Vec<u8>, Errno> {
        let found = self.socket;
        let mut bytes = ints(&[id as u32, 0]);
        let mut count = 0;
        for address in addresses {
            bytes.extend_from_slice(found.name(address).as_bytes());
            count += 1;
        }
        put_u32(&mut bytes, 4, count);
        if bytes.len() > self.call.value.len() { Err(Errno::ENOMEM) } else { Ok(bytes) }
    }

    pub(super) fn live_associations(&self) -> Result<Vec<AssocId>, Errno> {
        let found = self.socket;
        if found.is_one_to_one() {
            return Err(Errno::EOPNOTSUPP);
        }
        let all = found.associations.iter().copied();
        Ok(all.filter(|id| self.associations.is_alive(*id)).collect())
    }
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
