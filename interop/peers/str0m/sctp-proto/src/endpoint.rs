//! The first packet of a peer, or an outgoing connection; all further packets go to the association.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::association::{Association, AssociationEvent, EndpointEvent};
use crate::config::{ClientConfig, EndpointConfig, ServerConfig};
use crate::names::{EcnCodepoint, Error, Transmit};

/// Identifies an association; there is only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AssociationHandle(pub usize);

/// The result of a packet.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "str0m expects the association unboxed")]
pub enum DatagramEvent {
    NewAssociation(Association),
    AssociationEvent(AssociationEvent),
}

/// Accepts the first packet.
#[derive(Debug)]
pub struct Endpoint {
    config: Arc<EndpointConfig>,
    server: Option<Arc<ServerConfig>>,
    has_association: bool,
}

impl Endpoint {
    #[must_use]
    pub fn new(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Self {
        Self { config, server, has_association: false }
    }

    pub fn connect(
        &mut self,
        config: ClientConfig,
        remote: SocketAddr,
    ) -> Result<(AssociationHandle, Association), Error> {
        let association = Association::connect(&config, self.config.max_payload, remote)?;
        self.has_association = true;
        Ok((AssociationHandle(0), association))
    }

    pub fn handle(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        _local: Option<IpAddr>,
        _ecn: Option<EcnCodepoint>,
        packet: Bytes,
    ) -> Option<(AssociationHandle, DatagramEvent)> {
        let event = AssociationEvent { now, packet };
        if self.has_association {
            return Some((AssociationHandle(0), DatagramEvent::AssociationEvent(event)));
        }
        let server = self.server.as_ref()?;
        let mut association =
            Association::listen(&server.transport, self.config.max_payload, remote);
        association.handle_event(event);
        self.has_association = true;
        Some((AssociationHandle(0), DatagramEvent::NewAssociation(association)))
    }

    /// Returns nothing: only associations send packets.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        None
    }

    pub fn handle_event(
        &mut self,
        _: AssociationHandle,
        event: EndpointEvent,
    ) -> Option<AssociationEvent> {
        match event {}
    }
}
