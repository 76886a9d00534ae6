//! Applies changed settings to the endpoints.

use alloc::vec::Vec;

use eyas_sctp::endpoint::AssociationMut;
use eyas_sctp::error::Error;

use super::super::super::socket::SctpSocket;
use super::super::target::{change_target, target, target_settings};
use super::OptionChange;
use crate::abi::Errno;
use crate::io::AssocId;
use crate::settings::{AssocSettings, association_config};

impl OptionChange<'_> {
    pub(super) fn socket(&self) -> Result<&SctpSocket, Errno> {
        self.sockets.find(self.call.socket)
    }

    pub(super) fn socket_mut(&mut self) -> Result<&mut SctpSocket, Errno> {
        self.sockets.find_mut(self.call.socket)
    }

    /// Returns the association that the option applies to, or `None` for the socket itself.
    pub(super) fn target(&self, id: i32) -> Result<Option<AssocId>, Errno> {
        target(self.socket()?, self.associations, id)
    }

    /// Returns the association at the start of the value, which must exist.
    pub(super) fn association(&self) -> Result<AssocId, Errno> {
        self.target(self.call.id())?.ok_or(Errno::EINVAL)
    }

    /// Returns the settings that the option applies to.
    pub(super) fn settings(&self, id: i32) -> Result<&AssocSettings, Errno> {
        target_settings(self.socket()?, self.associations, id)
    }

    /// Changes the settings that the option applies to, and applies the changes.
    pub(super) fn change(
        &mut self,
        id: i32,
        change: impl Fn(&mut AssocSettings),
    ) -> Result<(), Errno> {
        let found = self.sockets.find_mut(self.call.socket)?;
        for id in change_target(found, self.associations, id, change)? {
            self.apply_settings(id);
        }
        self.update_listening();
        Ok(())
    }

    /// Applies changed settings to an association.
    fn apply_settings(&mut self, id: AssocId) {
        let Some(assoc) = self.associations.get(id) else { return };
        let Some(found) = assoc.socket.and_then(|id| self.sockets.get(id)) else { return };
        let base = &self.config.association;
        let config = association_config(base, &found.shared, &assoc.settings);
        // This fails if the association has ended, and then nothing needs to change.
        let _ = self
            .ports
            .with_association(self.now, assoc.key, |association| association.configure(&config));
    }

    /// Applies changed settings of the socket to all its associations.
    pub(super) fn apply_shared(&mut self) {
        let Ok(found) = self.socket() else { return };
        let all: Vec<AssocId> = found.associations.iter().copied().collect();
        all.into_iter().for_each(|id| self.apply_settings(id));
        self.update_listening();
    }

    /// Applies changed settings to future associations that peers open.
    pub(super) fn update_listening(&mut self) {
        if let Some(found) = self.sockets.get(self.call.socket) {
            found.update_listening(self.call.socket, &self.config.association, self.ports);
        }
    }

    /// Performs an action on an association.
    pub(super) fn with_association(
        &mut self,
        id: AssocId,
        action: impl FnOnce(&mut AssociationMut<'_>) -> Result<(), Error>,
    ) -> Result<(), Errno> {
        let key = self.associations.get(id).ok_or(Errno::EINVAL)?.key;
        self.ports.with_association(self.now, key, action)
    }
}
