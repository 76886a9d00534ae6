//! Whom an option is about: the socket, one association, or all of them (RFC 6458 §7.1).

use alloc::vec::Vec;

use super::Stack;
use super::association::Assoc;
use crate::abi::Errno;
use crate::abi::number::association::{SCTP_ALL_ASSOC, SCTP_CURRENT_ASSOC, SCTP_FUTURE_ASSOC};
use crate::io::{AssocId, SocketId};
use crate::settings::Settings;

impl Stack {
    /// The association that an option names; `None` stands for the socket itself. One-to-one sockets
    /// have one, whatever is named.
    pub(super) fn named(&self, socket: SocketId, id: i32) -> Result<Option<AssocId>, Errno> {
        let found = self.socket_of(socket)?;
        if found.is_single() {
            let only =
                found.only().filter(|id| self.associations.get(id).is_some_and(Assoc::is_up));
            return Ok(only);
        }
        if (SCTP_FUTURE_ASSOC..=SCTP_ALL_ASSOC).contains(&id) {
            return Ok(None);
        }
        let id = AssocId(id);
        let is_here = found.associations.contains(&id);
        if is_here { Ok(Some(id)) } else { Err(Errno::EINVAL) }
    }

    /// The association that must be there.
    pub(super) fn named_association(&self, socket: SocketId, id: i32) -> Result<AssocId, Errno> {
        self.named(socket, id)?.ok_or(Errno::EINVAL)
    }

    /// The settings of whom an option names.
    pub(super) fn settings(&self, socket: SocketId, id: i32) -> Result<&Settings, Errno> {
        match self.named(socket, id)? {
            Some(id) => self.associations.get(&id).map(|it| &it.settings).ok_or(Errno::EINVAL),
            None => Ok(&self.socket_of(socket)?.settings),
        }
    }

    /// Changes the settings of whom an option names, and what follows from them.
    pub(super) fn change(
        &mut self,
        socket: SocketId,
        id: i32,
        change: impl Fn(&mut Settings),
    ) -> Result<(), Errno> {
        let associations: Vec<AssocId> = match self.named(socket, id)? {
            Some(one) => alloc::vec![one],
            None => {
                let single = self.socket_of(socket)?.is_single();
                let found = self.socket_mut(socket)?;
                if single || id != SCTP_CURRENT_ASSOC {
                    change(&mut found.settings);
                }
                let all = !single && id != SCTP_FUTURE_ASSOC;
                found.associations.iter().copied().filter(|_| all).collect()
            }
        };
        for id in associations {
            if let Some(assoc) = self.associations.get_mut(&id) {
                change(&mut assoc.settings);
            }
            self.apply_settings(id);
        }
        self.refresh_listening(socket);
        Ok(())
    }

    /// Lets an association behave as its settings say now.
    pub(super) fn apply_settings(&mut self, id: AssocId) {
        let Some(assoc) = self.associations.get(&id) else { return };
        let Some(found) = assoc.socket.and_then(|id| self.sockets.get(&id)) else { return };
        let config = self.association_config(&found.shared, &assoc.settings);
        let (key, inner) = (assoc.port, assoc.inner);
        self.at_port(key, |endpoint, now| {
            // One that has ended has nothing to change.
            let association = endpoint.association_mut(now, inner);
            let _ = association.and_then(|mut association| association.configure(&config));
        });
    }

    /// Lets all associations of a socket behave as its options say now.
    pub(super) fn apply_shared(&mut self, socket: SocketId) {
        let Some(found) = self.sockets.get(&socket) else { return };
        let all: Vec<AssocId> = found.associations.iter().copied().collect();
        all.into_iter().for_each(|id| self.apply_settings(id));
        self.refresh_listening(socket);
    }
}
