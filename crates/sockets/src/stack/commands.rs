//! Options that start a procedure of an association or change its keys: resetting and adding
//! streams (RFC 6525), AUTH keys (RFC 4895).

use bytes::Bytes;

use eyas_sctp::endpoint::AssociationMut;
use eyas_sctp::error::Error;
use eyas_sctp::identifier::StreamId;

use super::Stack;
use super::names::read_name;
use super::set_options::check_length;
use crate::abi::Errno;
use crate::abi::layout::{i32_at, u16_at};
use crate::abi::number::option::*;
use crate::io::SocketId;

impl Stack {
    pub(super) fn set_streams(
        &mut self,
        socket: SocketId,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        let minimum = match name {
            SCTP_RESET_ASSOC => 4,
            _ => 8,
        };
        if value.len() < minimum {
            return Err(Errno::EINVAL);
        }
        let id = self.target_association(socket, i32_at(value, 0))?;
        let (first, second) = (u16_at(value, 4), u16_at(value, 6));
        match name {
            SCTP_RESET_ASSOC => self.with_association(id, |association| association.reset()),
            SCTP_ADD_STREAMS => {
                self.with_association(id, |association| association.add_streams(second, first))
            }
            _ => {
                let list = value.get(8..8 + 2 * usize::from(second)).ok_or(Errno::EINVAL)?;
                let streams: alloc::vec::Vec<StreamId> =
                    list.chunks_exact(2).map(|one| StreamId(u16_at(one, 0))).collect();
                if first & 3 == 0 {
                    return Err(Errno::EINVAL);
                }
                if first & 1 != 0 {
                    self.with_association(id, |association| {
                        association.reset_streams(false, &streams)
                    })?;
                }
                if first & 2 != 0 {
                    self.with_association(id, |association| {
                        association.reset_streams(true, &streams)
                    })?;
                }
                Ok(())
            }
        }
    }

    pub(super) fn set_key(
        &mut self,
        socket: SocketId,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        let is_new = name == SCTP_AUTH_KEY;
        if is_new && value.len() < 8 {
            return Err(Errno::EINVAL);
        }
        if !is_new {
            check_length(value, &[8])?;
        }
        if !self.sockets.find(socket)?.shared.extensions.authentication {
            return Err(Errno::EACCES);
        }
        let (id, key_id) = (i32_at(value, 0), u16_at(value, 4));
        let secret = if is_new {
            let end = 8 + usize::from(u16_at(value, 6));
            Bytes::copy_from_slice(value.get(8..end).ok_or(Errno::EINVAL)?)
        } else {
            Bytes::new()
        };
        if let Some(id) = self.target(socket, id)? {
            return self.with_association(id, |association| match name {
                SCTP_AUTH_KEY => association.set_shared_key(key_id, secret),
                SCTP_AUTH_ACTIVE_KEY => association.activate_shared_key(key_id),
                _ => association.remove_shared_key(key_id),
            });
        }
        let keys = &mut self.sockets.find_mut(socket)?.settings.keys;
        let result = match name {
            SCTP_AUTH_KEY => keys.set(key_id, secret),
            SCTP_AUTH_ACTIVE_KEY => keys.activate(key_id),
            _ => keys.remove(key_id),
        };
        self.refresh_listening(socket);
        result.map_err(|_| Errno::EINVAL)
    }

    /// `SPP_HB_DEMAND` of `SCTP_PEER_ADDR_PARAMS`: for the given address, or for the primary one.
    pub(super) fn demand_heartbeat(
        &mut self,
        socket: SocketId,
        params: &[u8],
    ) -> Result<(), Errno> {
        let number = i32_at(params, 0);
        let target = read_name(self.sockets.find(socket)?, &params[4..]).ok();
        let (id, path) = if target.is_some_and(|(address, _)| !address.ip().is_unspecified()) {
            let (id, path, _) = self.target_path(socket, number, &params[4..])?;
            (id, path.id)
        } else {
            let id = self.target(socket, number)?.ok_or(Errno::EINVAL)?;
            (id, self.associations.status(&self.ports, id).ok_or(Errno::EINVAL)?.primary)
        };
        self.with_association(id, |association| association.request_heartbeat(path))
    }

    /// Performs an action on an association.
    pub(super) fn with_association(
        &mut self,
        id: crate::io::AssocId,
        action: impl FnOnce(&mut AssociationMut<'_>) -> Result<(), Error>,
    ) -> Result<(), Errno> {
        let assoc = self.associations.get(id).ok_or(Errno::EINVAL)?;
        self.ports.with_association(self.now, assoc.key, action)
    }
}
