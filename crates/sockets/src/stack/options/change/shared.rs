//! `setsockopt` for settings that a socket has for all its associations.

use alloc::vec::Vec;

use super::super::call::{EVENTS, OptionCall};
use super::OptionChange;
use crate::abi::Errno;
use crate::abi::layout::u32_at;
use crate::abi::number::option::*;
use crate::io::AssocId;

impl OptionChange<'_> {
    /// Sets an option with a single number.
    pub(super) fn set_shared(&mut self) -> Result<(), Errno> {
        let OptionCall { name, value, .. } = self.call;
        let number = u32_at(value, 0);
        let found = self.socket_mut()?;
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
        self.apply_shared();
        Ok(())
    }

    /// Sets whether an extension is offered.
    pub(super) fn set_extension(&mut self) -> Result<(), Errno> {
        let OptionCall { name, value, .. } = self.call;
        if self.target(self.call.id())?.is_some() && name != SCTP_PR_SUPPORTED {
            return Err(Errno::EINVAL);
        }
        let on = u32_at(value, 4) != 0;
        let shared = &mut self.socket_mut()?.shared;
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
        self.update_listening();
        Ok(())
    }

    /// Adds a type of chunks that peers have to authenticate.
    pub(super) fn add_authenticated_chunk(&mut self) -> Result<(), Errno> {
        let value = self.call.value;
        self.call.check_length(&[1])?;
        let shared = &mut self.socket_mut()?.shared;
        if !shared.extensions.authentication {
            return Err(Errno::EACCES);
        }
        if !shared.authenticated_chunks.contains(&value[0]) {
            shared.authenticated_chunks.push(value[0]);
        }
        Ok(())
    }

    /// Sets as many subscriptions as `value` has bytes, and leaves the others unchanged.
    pub(super) fn set_events(&mut self) -> Result<(), Errno> {
        let value = self.call.value;
        if value.len() > EVENTS {
            return Err(Errno::EINVAL);
        }
        let mut events = self.socket()?.settings.events;
        for (bit, on) in value.iter().enumerate() {
            events = if *on != 0 { events | 1 << bit } else { events & !(1 << bit) };
        }
        let found = self.socket_mut()?;
        found.settings.events = events;
        let all: Vec<AssocId> = found.associations.iter().copied().collect();
        for id in all {
            if let Some(assoc) = self.associations.get_mut(id) {
                assoc.settings.events = events;
            }
        }
        Ok(())
    }
}
