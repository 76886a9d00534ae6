//! What can be changed and asked while an endpoint runs, for those who give each socket of a program
//! settings of its own (RFC 6458 §8.1).

use alloc::sync::Arc;
use core::{net::SocketAddr, time::Duration};

use super::Endpoint;
use super::registry::Peer;
use crate::config::AssociationConfig;
use crate::identifier::AssociationId;
use crate::wire::Packet;

impl Endpoint {
    /// Listens at this SCTP port from now on, or takes nobody in. A peer that was answered before and
    /// brings its cookie is taken in only at the port that is listened on then.
    pub fn listen(&mut self, port: Option<u16>) {
        self.config.listen_port = port;
    }

    /// How the associations behave that peers open from now on.
    pub fn accept_with(&mut self, association: AssociationConfig) {
        self.config.association = association;
        self.accepting = Arc::new(self.config.association.clone());
    }

    /// How an association behaves, while there is one.
    #[must_use]
    pub fn association_config(&self, id: AssociationId) -> Option<&AssociationConfig> {
        Some(self.association(id)?.config())
    }

    /// Bytes of user data of an association that were handed in and are not yet acknowledged.
    #[must_use]
    pub fn queued(&self, id: AssociationId) -> usize {
        self.association(id).map_or(0, |association| association.queued())
    }

    /// Lets [`crate::event::Event::Writable`] come once there is room for a message of so many bytes,
    /// as if it had been refused.
    pub fn wait_for_room(&mut self, now: Duration, id: AssociationId, length: usize) {
        let _ = self.with(now, id, |association, _, _| {
            association.wait_for_room(length);
            Ok(())
        });
    }

    /// Messages, or parts of one, that [`Self::receive`] would give now.
    #[must_use]
    pub fn receivable(&self, id: AssociationId) -> usize {
        self.association(id).map_or(0, |association| association.receivable())
    }

    /// Whether a packet that came from `remote` is one of an association here, as far as its header
    /// tells: where several endpoints share an SCTP port, it is for this one.
    #[must_use]
    pub fn has_association_of(&self, remote: SocketAddr, packet: &[u8]) -> bool {
        let Ok(header) = Packet::header(packet) else { return false };
        let peer =
            Peer { remote, remote_port: header.source_port, local_port: header.destination_port };
        self.registry.has_tag(header.tag.0) || self.registry.by_peer(&peer).is_some()
    }

    /// The association whose peer has sent a packet, as far as its header and `remote` tell.
    #[must_use]
    pub fn association_of(&self, remote: SocketAddr, packet: &[u8]) -> Option<AssociationId> {
        let header = Packet::header(packet).ok()?;
        let (remote_port, local_port) = (header.source_port, header.destination_port);
        self.registry.id(self.registry.by_peer(&Peer { remote, remote_port, local_port })?)
    }

    /// Whether there is no association.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.registry.len() == 0
    }
}
