//! The calls of an association's user (RFC 9260 §11.1, RFC 6458 §8); how it ends is elsewhere.

use alloc::sync::Arc;
use bytes::Bytes;
use core::time::Duration;

use super::authentication::KeyChange;
use super::dynamic_address::AsconfRequest;
use super::reconfiguration::ReconfigurationRequest;
use super::state::AssociationPhase;
use super::{Association, addresses};
use crate::config::AssociationConfig;
use crate::counters::EndpointCounters;
use crate::endpoint::{PathStatus, Status};
use crate::error::Error;
use crate::identifier::PathId;
use crate::message::{Message, SendInfo};
use crate::path::Path;
use crate::send::BufferAllowance;

impl Association {
    /// Returns the association's settings.
    pub(crate) fn config(&self) -> &AssociationConfig {
        &self.config
    }

    /// Applies the settings that can change while the association exists.
    pub(crate) fn configure(&mut self, config: Arc<AssociationConfig>) {
        self.sender.configure(&config);
        self.receiver.configure(&config);
        for path in self.paths.iter_mut() {
            path.rto.configure(&config);
        }
        self.config = config;
        self.collect_events();
    }

    /// Proceeds after `hold_at_init_ack`, now or as soon as the INIT ACK arrives.
    pub(crate) fn proceed(&mut self, now: Duration) {
        if let Some((handshake, context)) = self.handshake_and_context(now) {
            handshake.proceed(&context);
        }
    }

    /// Requests a change of our addresses from the peer.
    pub(crate) fn change_own_address(
        &mut self,
        now: Duration,
        request: AsconfRequest,
        counters: &mut EndpointCounters,
    ) -> Result<(), Error> {
        if !matches!(self.state, AssociationPhase::Established) {
            return Err(Error::WrongState);
        }
        if !addresses::is_unicast(request.address()) {
            return Err(Error::BadAddress);
        }
        let dynamic = self.dynamic_address_and_context(now);
        let (dynamic, mut context) = dynamic.ok_or(Error::NotSupported)?;
        dynamic.request(request, &mut context, counters)
    }

    /// Changes a key that both endpoints share.
    pub(crate) fn change_key(&mut self, change: KeyChange) -> Result<(), Error> {
        self.authentication.change_key(change)
    }

    /// Requests a notification once the send buffer has `length` bytes of room.
    pub(crate) fn wait_for_room(&mut self, length: usize) {
        self.sender.wait_for_room(length);
        self.collect_events();
    }

    /// Queues a message of the user.
    pub(crate) fn send(
        &mut self,
        now: Duration,
        info: &SendInfo,
        data: Bytes,
    ) -> Result<(), Error> {
        if !self.state.accepts_messages() {
            return Err(Error::WrongState);
        }
        self.sender.send(now, info, data, &mut self.paths)
    }

    /// Returns the next received message, or a part of one.
    pub(crate) fn receive(&mut self) -> Option<Message> {
        self.receiver.receive()
    }

    /// Returns the bytes of user data that it stores: data to be sent or acknowledged, and received
    /// data with its overhead.
    pub(crate) fn memory(&self) -> usize {
        self.sender.queued_bytes() + self.receiver.memory()
    }

    /// Limits the use of the send buffer and of the receive buffer.
    pub(crate) fn set_allowance(&mut self, allowance: BufferAllowance) {
        self.sender.set_allowance(allowance);
        self.receiver.set_allowance(allowance.bytes);
        self.collect_events();
    }

    /// Returns whether the send buffer has room for a message of `length` bytes.
    pub(crate) fn is_writable(&self, length: usize) -> bool {
        self.state.accepts_messages() && self.sender.is_writable(length)
    }

    /// Requests an immediate heartbeat on a path.
    pub(crate) fn request_heartbeat(&mut self, path: PathId) -> Result<(), Error> {
        if self.paths.get(path).is_none() {
            return Err(Error::NoSuchPath);
        }
        self.paths.request_heartbeat(path);
        Ok(())
    }

    /// Makes a path primary at the user's request.
    pub(crate) fn set_primary(&mut self, now: Duration, path: PathId) -> Result<(), Error> {
        if !self.paths.set_primary(path) {
            return Err(Error::NoSuchPath);
        }
        self.collect_path_changes(now);
        Ok(())
    }

    /// Requests a change at the user's request; events report the outcome.
    pub(crate) fn reconfigure(
        &mut self,
        now: Duration,
        request: ReconfigurationRequest,
        counters: &mut EndpointCounters,
    ) -> Result<(), Error> {
        if !matches!(self.state, AssociationPhase::Established) {
            return Err(Error::WrongState);
        }
        if !self.agreed.reconfiguration {
            return Err(Error::NotSupported);
        }
        let (reconfiguration, mut halves) = self.reconfiguration_and_halves();
        reconfiguration.submit(request, &mut halves)?;
        self.send_reconfiguration(now, None, counters);
        Ok(())
    }

    /// Returns the status (`SCTP_STATUS`).
    pub(crate) fn status(&self) -> Status {
        Status {
            state: self.state.public(),
            local_port: self.identity.local_port(),
            remote_port: self.identity.remote_port(),
            outbound_streams: self.sender.terms().outbound,
            inbound_streams: self.receiver.inbound_streams(),
            peer_window: u32::try_from(self.sender.peer_window()).unwrap_or(u32::MAX),
            window: self.receiver.window(),
            queued: self.sender.queued_bytes(),
            agreed: self.agreed,
            primary: self.paths.primary(),
            paths: self.paths.iter().map(|path| self.path_status(path)).collect(),
            peer: self.identity.peer(),
        }
    }

    fn path_status(&self, path: &Path) -> PathStatus {
        PathStatus {
            id: path.id,
            remote: path.remote,
            local: path.local,
            state: path.state(),
            congestion_window: path.congestion.window(),
            outstanding: path.outstanding(),
            smoothed_rtt: path.rto.smoothed(),
            min_rtt: path.min_rtt(),
            forward_lag: self.paths.forward_lag(path.id),
            delivery_rate: path.delivery_rate(),
            delivered: path.delivered(),
            lost: path.lost(),
            rto: path.rto.current(),
            mtu: path.mtu(),
            largest_message: self.sender.largest_message(path.mtu()),
        }
    }
}
