//! Options that start a procedure of an association or change its keys: resetting and adding
//! streams (RFC 6525), AUTH keys (RFC 4895).

use alloc::vec::Vec;
use bytes::Bytes;

use eyas_sctp::identifier::StreamId;

use super::super::super::names::read_name;
use super::super::call::OptionCall;
use super::super::target::{TargetPath, target_path};
use super::OptionChange;
use crate::abi::Errno;
use crate::abi::layout::{i32_at, u16_at};
use crate::abi::number::option::*;

impl OptionChange<'_> {
    pub(super) fn change_streams(&mut self) -> Result<(), Errno> {
        let OptionCall { name, value, .. } = self.call;
        let minimum = match name {
            SCTP_RESET_ASSOC => 4,
            _ => 8,
        };
        if value.len() < minimum {
            return Err(Errno::EINVAL);
        }
        let id = self.association()?;
        let (first, second) = (u16_at(value, 4), u16_at(value, 6));
        match name {
            SCTP_RESET_ASSOC => self.with_association(id, |association| association.reset()),
            SCTP_ADD_STREAMS => {
                self.with_association(id, |association| association.add_streams(second, first))
            }
            _ => {
                let list = value.get(8..8 + 2 * usize::from(second)).ok_or(Errno::EINVAL)?;
                let streams: Vec<StreamId> =
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

    pub(super) fn set_key(&mut self) -> Result<(), Errno> {
        let OptionCall { name, value, .. } = self.call;
        let is_new = name == SCTP_AUTH_KEY;
        if is_new && value.len() < 8 {
            return Err(Errno::EINVAL);
        }
        if !is_new {
            self.call.check_length(&[8])?;
        }
        if !self.socket()?.shared.extensions.authentication {
            return Err(Errno::EACCES);
        }
        let (id, key_id) = (i32_at(value, 0), u16_at(value, 4));
        let secret = if is_new {
            let end = 8 + usize::from(u16_at(value, 6));
            Bytes::copy_from_slice(value.get(8..end).ok_or(Errno::EINVAL)?)
        } else {
            Bytes::new()
        };
        if let Some(id) = self.target(id)? {
            return self.with_association(id, |association| match name {
                SCTP_AUTH_KEY => association.set_shared_key(key_id, secret),
                SCTP_AUTH_ACTIVE_KEY => association.activate_shared_key(key_id),
                _ => association.remove_shared_key(key_id),
            });
        }
        let keys = &mut self.socket_mut()?.settings.keys;
        let result = match name {
            SCTP_AUTH_KEY => keys.set(key_id, secret),
            SCTP_AUTH_ACTIVE_KEY => keys.activate(key_id),
            _ => keys.remove(key_id),
        };
        self.update_listening();
        result.map_err(|_| Errno::EINVAL)
    }

    /// `SPP_HB_DEMAND` of `SCTP_PEER_ADDR_PARAMS`: for the given address, or for the primary one.
    pub(super) fn demand_heartbeat(&mut self) -> Result<(), Errno> {
        let named = read_name(self.socket()?, &self.call.value[4..]).ok();
        let (id, path) = if named.is_some_and(|(address, _)| !address.ip().is_unspecified()) {
            let found = self.path()?;
            (found.id, found.path.id)
        } else {
            let id = self.association()?;
            let status = self.associations.status(self.ports, id);
            (id, status.ok_or(Errno::EINVAL)?.primary)
        };
        self.with_association(id, |association| association.request_heartbeat(path))
    }

    pub(super) fn set_primary(&mut self) -> Result<(), Errno> {
        self.call.check_length(&[132])?;
        let TargetPath { id, path, .. } = self.path()?;
        self.with_association(id, |association| association.set_primary(path.id))?;
        self.associations.refresh_paths(self.ports, id);
        Ok(())
    }

    pub(super) fn set_peer_primary(&mut self) -> Result<(), Errno> {
        self.call.check_length(&[132])?;
        let (address, _) = read_name(self.socket()?, &self.call.value[4..])?;
        let id = self.association()?;
        self.with_association(id, |association| association.set_peer_primary(address.ip()))
    }

    /// Returns the path whose address follows the number of the association.
    fn path(&self) -> Result<TargetPath, Errno> {
        let name = &self.call.value[4..];
        target_path(self.socket()?, self.associations, self.ports, self.call.id(), name)
    }
}
