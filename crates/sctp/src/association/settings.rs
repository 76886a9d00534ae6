//! Changes of an association's settings by its user (RFC 6458 §8.1).

use alloc::sync::Arc;
use core::time::Duration;

use super::authentication::KeyChange;
use super::dynamic_address::AsconfRequest;
use super::state::AssociationPhase;
use super::{Association, addresses};
use crate::config::AssociationConfig;
use crate::counters::EndpointCounters;
use crate::error::Error;

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

    /// Returns the bytes that are waiting to be sent or acknowledged.
    pub(crate) fn queued(&self) -> usize {
        self.sender.queued_bytes()
    }

    /// Requests a notification once the send buffer has `length` bytes of room.
    pub(crate) fn wait_for_room(&mut self, length: usize) {
        self.sender.wait_for_room(length);
        self.collect_events();
    }

    /// Returns the number of messages, or parts of them, that the user can receive.
    pub(crate) fn receivable(&self) -> usize {
        self.receiver.receivable()
    }
}
