//! Determines what an option applies to: the socket, one association, or all of them (RFC 6458
//! §7.1).

use alloc::vec::Vec;

use super::Stack;
use super::association::SocketAssociation;
use crate::abi::Errno;
use crate::abi::number::association::{SCTP_ALL_ASSOC, SCTP_CURRENT_ASSOC, SCTP_FUTURE_ASSOC};
use crate::io::{AssocId, SocketId};
use crate::settings::{AssocSettings, association_config};

impl Stack {
    /// Returns the association that an option applies to, or `None` for the socket itself. For
    /// one-to-one sockets the identifier is ignored.
    pub(super) fn target(&self, socket: SocketId, id: i32) -> Result<Option<AssocId>, Errno> {
        let found = self.sockets.find(socket)?;
        if found.is_single() {
            let is_up = self.associations.only_of(found).is_some_and(SocketAssociation::is_up);
            return Ok(found.only().filter(|_| is_up));
        }
        if (SCTP_FUTURE_ASSOC..=SCTP_ALL_ASSOC).contains(&id) {
            return Ok(None);
        }
        let id = AssocId(id);
        let is_of_socket = found.associations.contains(&id);
        if is_of_socket { Ok(Some(id)) } else { Err(Errno::EINVAL) }
    }

    /// Returns the association that an option applies to, which must exist.
    pub(super) fn target_association(&self, socket: SocketId, id: i32) -> Result<AssocId, Errno> {
        self.target(socket, id)?.ok_or(Errno::EINVAL)
    }

    /// Returns the settings that an option applies to.
    pub(super) fn settings(&self, socket: SocketId, id: i32) -> Result<&AssocSettings, Errno> {
        match self.target(socket, id)? {
            Some(id) => self.associations.get(id).map(|it| &it.settings).ok_or(Errno::EINVAL),
            None => Ok(&self.sockets.find(socket)?.settings),
        }
    }

    /// Changes the settings that an option applies to, and applies the changes.
    pub(super) fn change(
        &mut self,
        socket: SocketId,
        id: i32,
        change: impl Fn(&mut AssocSettings),
    ) -> Result<(), Errno> {
        let associations: Vec<AssocId> = match self.target(socket, id)? {
            Some(one) => alloc::vec![one],
            None => {
                let single = self.sockets.find(socket)?.is_single();
                let found = self.sockets.find_mut(socket)?;
                if single || id != SCTP_CURRENT_ASSOC {
                    change(&mut found.settings);
                }
                let all = !single && id != SCTP_FUTURE_ASSOC;
                found.associations.iter().copied().filter(|_| all).collect()
            }
        };
        for id in associations {
            if let Some(assoc) = self.associations.get_mut(id) {
                change(&mut assoc.settings);
            }
            self.apply_settings(id);
        }
        self.refresh_listening(socket);
        Ok(())
    }

    /// Applies changed settings to an association.
    pub(super) fn apply_settings(&mut self, id: AssocId) {
        let Some(assoc) = self.associations.get(id) else { return };
        let Some(found) = assoc.socket.and_then(|id| self.sockets.get(id)) else { return };
        let base = &self.config.association;
        let config = association_config(base, &found.shared, &assoc.settings);
        let (now, key) = (self.now, assoc.key);
        // This fails if the association has ended, and then nothing needs to change.
        let _ = self.ports.with_association(now, key, |association| association.configure(&config));
    }

    /// Updates whether the endpoint of a socket accepts associations, and their configuration.
    pub(super) fn refresh_listening(&mut self, socket: SocketId) {
        let Some(found) = self.sockets.get(socket) else { return };
        let Some(key) = found.port else { return };
        let base = &self.config.association;
        let config = || association_config(base, &found.shared, &found.settings);
        self.ports.update_listening(key, socket, found.has_backlog_room(), config);
    }

    /// Applies changed options of a socket to all its associations.
    pub(super) fn apply_shared(&mut self, socket: SocketId) {
        let Some(found) = self.sockets.get(socket) else { return };
        let all: Vec<AssocId> = found.associations.iter().copied().collect();
        all.into_iter().for_each(|id| self.apply_settings(id));
        self.refresh_listening(socket);
    }
}
