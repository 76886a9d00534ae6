//! Handles the events of endpoints.

mod effect;

use alloc::vec::Vec;
use core::net::SocketAddr;

use eyas_sctp::event::Event;
use eyas_sctp::identifier::PathId;

use super::Stack;
use super::association::SocketAssociation;
use super::names::with_port;
use super::ports::AssociationKey;

use effect::EventEffect;

impl Stack {
    pub(super) fn handle_event(&mut self, key: AssociationKey, event: Event) {
        if let Event::Up { by_peer: true, .. } = event {
            self.register(key);
        }
        let Some(id) = self.ports.association(key) else { return };
        let Self { now, sockets, associations, ports, .. } = self;
        EventEffect { now: *now, sockets, associations, ports, id }.apply(event);
        let notified = self.associations.get(id).and_then(SocketAssociation::notified_socket);
        if let Some(socket) = notified {
            self.sockets.touch(socket);
        }
        self.schedule(id);
        self.forget_if_ended(id);
    }

    /// Registers an association that a peer has opened.
    fn register(&mut self, key: AssociationKey) {
        if self.ports.association(key).is_some() {
            return;
        }
        let owner = self.ports.owner(key.port);
        let owner = owner.and_then(|id| Some((id, self.sockets.get(id)?)));
        let (Some((listener, found)), Some(status)) = (owner, self.ports.status(key)) else {
            return;
        };
        let peers = |path: &eyas_sctp::endpoint::PathStatus| {
            (path.id, with_port(path.remote, status.remote_port))
        };
        let paths: Vec<(PathId, SocketAddr)> = status.paths.iter().map(peers).collect();
        let primary = paths.iter().find(|(path, _)| *path == status.primary);
        let Some(peer) = primary.or(paths.first()).map(|(_, peer)| *peer) else { return };
        let mut assoc = SocketAssociation::new(key, peer, found.settings.clone(), self.now);
        assoc.paths = paths;
        let waits = found.is_one_to_one();
        if waits {
            assoc.listener = Some(listener);
        } else {
            assoc.socket = Some(listener);
        }
        let id = self.add_association(assoc);
        if let Some(found) = self.sockets.get_mut(listener) {
            if waits {
                found.accepting.push_back(id);
                found.has_arrived = true;
            } else {
                found.associations.insert(id);
            }
        }
        self.refresh_listening(listener);
    }
}
