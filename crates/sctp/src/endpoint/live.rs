//! Changes to a running endpoint, for programs that give each socket its own settings (RFC 6458
//! §8.1).

use alloc::sync::Arc;
use core::{net::SocketAddr, time::Duration};

use super::Endpoint;
use super::registry::PeerPorts;
use crate::config::AssociationConfig;
use crate::identifier::AssociationId;
use crate::wire::PacketParser;

impl Endpoint {
    /// Starts listening on this SCTP port, or stops listening. A cookie that was issued before is
    /// accepted only at the port that is listened on when it returns.
    pub fn listen(&mut self, port: Option<u16>) {
        self.config.listen_port = port;
    }

    /// Sets the configuration of associations that peers open from now on.
    pub fn accept_with(&mut self, association: AssociationConfig) {
        self.config.association = association;
        self.accepting = Arc::new(self.config.association.clone());
        self.update_ample_memory();
    }

    /// Returns the configuration of an association, if it exists.
    #[must_use]
    pub fn association_config(&self, id: AssociationId) -> Option<&AssociationConfig> {
        Some(self.association(id)?.config())
    }

    /// Returns the number of bytes of user data of an association that are not acknowledged yet.
    #[must_use]
    pub fn queued(&self, id: AssociationId) -> usize {
        self.association(id).map_or(0, |association| association.sender().queued_bytes())
    }

    /// Causes [`crate::event::Event::Writable`] once there is space for a message of this length,
    /// as if it had been refused.
    pub fn wait_for_room(&mut self, now: Duration, id: AssociationId, length: usize) {
        let _ = self.change_association(now, id, |association, _, _| {
            association.wait_for_room(length);
            Ok(())
        });
    }

    /// Returns the number of messages, or parts of messages, that [`Self::receive`] can return now.
    #[must_use]
    pub fn receivable(&self, id: AssociationId) -> usize {
        self.association(id).map_or(0, |association| association.receiver().receivable())
    }

    /// Returns whether a packet from `remote` belongs to an association of this endpoint, judging
    /// by its header. For several endpoints that share an SCTP port.
    #[must_use]
    pub fn has_association_of(&self, remote: SocketAddr, packet: &[u8]) -> bool {
        let Ok(header) = PacketParser::header(packet) else { return false };
        let (remote_port, local_port) = (header.source_port, header.destination_port);
        let peer = PeerPorts { remote, remote_port, local_port, identity: None };
        self.registry.has_tag(header.tag.0) || self.registry.by_peer(&peer).is_some()
    }

    /// Returns the association whose peer has sent this packet, judging by its header and `remote`.
    #[must_use]
    pub fn association_of(&self, remote: SocketAddr, packet: &[u8]) -> Option<AssociationId> {
        let header = PacketParser::header(packet).ok()?;
        let (remote_port, local_port) = (header.source_port, header.destination_port);
        let peer = PeerPorts { remote, remote_port, local_port, identity: None };
        self.registry.id(self.registry.by_peer(&peer)?)
    }

    /// Returns whether there are no associations.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.registry.len() == 0
    }
}
