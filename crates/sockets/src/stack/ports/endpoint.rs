//! What sockets do at the endpoint of their port.

use bytes::Bytes;
use core::time::Duration;

use eyas_sctp::config::ConnectOptions;
use eyas_sctp::endpoint::{AssociationMut, AssociationQueueInfo, Endpoint, PacketMemory, Status};
use eyas_sctp::error::Error;
use eyas_sctp::message::Message;

use super::{AssociationKey, PortKey, PortTable};
use crate::abi::Errno;
use crate::io::AssocId;

/// Performs an action on an endpoint, lending it the shared packet memory: otherwise an endpoint
/// that sends little would keep as much memory as one that sends much.
pub(super) fn with_packet_memory<T>(
    memory: &mut PacketMemory,
    endpoint: &mut Endpoint,
    action: impl FnOnce(&mut Endpoint) -> T,
) -> T {
    endpoint.swap_packet_memory(memory);
    let outcome = action(endpoint);
    endpoint.swap_packet_memory(memory);
    outcome
}

impl PortTable {
    /// Performs an action on the endpoint of a port, after which it may have outputs.
    pub(in crate::stack) fn with_endpoint<T>(
        &mut self,
        key: PortKey,
        action: impl FnOnce(&mut Endpoint) -> T,
    ) -> Option<T> {
        let port = self.ports.get_mut(&key)?;
        let outcome = with_packet_memory(&mut self.packet_memory, &mut port.endpoint, action);
        self.schedule.touch(key, &mut port.turn);
        Some(outcome)
    }

    /// Returns the endpoint of a port, to read from it.
    fn endpoint(&self, key: PortKey) -> Option<&Endpoint> {
        self.ports.get(&key).map(|port| &port.endpoint)
    }

    /// Opens an association from a port, whose number replaces that of the options.
    pub(in crate::stack) fn connect(
        &mut self,
        now: Duration,
        key: PortKey,
        mut options: ConnectOptions,
    ) -> Result<AssociationKey, Errno> {
        options.local_port = self.number(key).ok_or(Errno::EINVAL)?;
        let opened = self.with_endpoint(key, |endpoint| endpoint.connect(now, &options));
        let inner = opened.ok_or(Errno::EINVAL)?.map_err(|error| match error {
            // Another socket at this port has an association with that peer.
            Error::Busy => Errno::EADDRNOTAVAIL,
            Error::TooManyAssociations => Errno::ENOMEM,
            _ => Errno::EINVAL,
        })?;
        Ok(AssociationKey { port: key, inner })
    }

    /// Performs an action on an association.
    pub(in crate::stack) fn with_association(
        &mut self,
        now: Duration,
        key: AssociationKey,
        action: impl FnOnce(&mut AssociationMut<'_>) -> Result<(), Error>,
    ) -> Result<(), Errno> {
        let result = self.with_endpoint(key.port, |endpoint| {
            action(&mut endpoint.association_mut(now, key.inner)?)
        });
        result.ok_or(Errno::EINVAL)?.map_err(|error| match error {
            Error::NotSupported => Errno::ENOPROTOOPT,
            Error::Busy => Errno::EINPROGRESS,
            Error::WrongState => Errno::ENOTCONN,
            _ => Errno::EINVAL,
        })
    }

    /// Shuts an association down gracefully.
    pub(in crate::stack) fn shutdown(&mut self, now: Duration, key: AssociationKey) {
        self.with_endpoint(key.port, |endpoint| {
            // It may already have ended.
            let _ = endpoint.shutdown(now, key.inner);
        });
    }

    /// Aborts an association.
    pub(in crate::stack) fn abort(&mut self, now: Duration, key: AssociationKey, reason: Bytes) {
        self.with_endpoint(key.port, |endpoint| {
            // It may already have ended.
            let _ = endpoint.abort(now, key.inner, reason);
        });
    }

    /// Takes the first message of an association.
    pub(in crate::stack) fn receive(
        &mut self,
        now: Duration,
        key: AssociationKey,
    ) -> Option<Message> {
        self.with_endpoint(key.port, |endpoint| endpoint.receive(now, key.inner)).flatten()
    }

    /// Drops all messages of an association, and returns whether there were any.
    pub(in crate::stack) fn drop_received(&mut self, now: Duration, key: AssociationKey) -> bool {
        let dropped = self.with_endpoint(key.port, |endpoint| {
            let mut any = false;
            while endpoint.receive(now, key.inner).is_some() {
                any = true;
            }
            any
        });
        dropped.unwrap_or_default()
    }

    /// Returns the number of messages, or parts of them, that an association has received.
    pub(in crate::stack) fn receivable(&self, key: AssociationKey) -> usize {
        self.endpoint(key.port).map_or(0, |endpoint| endpoint.receivable(key.inner))
    }

    pub(in crate::stack) fn status(&self, key: AssociationKey) -> Option<Status> {
        self.endpoint(key.port)?.status(key.inner)
    }

    pub(in crate::stack) fn queue_info(&self, key: AssociationKey) -> Option<AssociationQueueInfo> {
        self.endpoint(key.port)?.queue_info(key.inner)
    }

    /// Returns the identifier that programs use for an association.
    pub(in crate::stack) fn association(&self, key: AssociationKey) -> Option<AssocId> {
        self.ports.get(&key.port)?.associations.get(&key.inner).copied()
    }

    /// Adds an association under the identifier that programs use for it.
    pub(in crate::stack) fn add_association(&mut self, key: AssociationKey, id: AssocId) {
        if let Some(port) = self.ports.get_mut(&key.port) {
            port.associations.insert(key.inner, id);
        }
    }

    /// Removes an association that has ended, after which its port may end.
    pub(in crate::stack) fn remove_association(&mut self, now: Duration, key: AssociationKey) {
        self.with_endpoint(key.port, |endpoint| endpoint.forget(now, key.inner));
        if let Some(port) = self.ports.get_mut(&key.port) {
            port.associations.remove(&key.inner);
        }
    }
}
