//! RE-CONFIG between [`crate::association::reconfiguration`] and the peer (RFC 6525 §5).

use core::time::Duration;

use crate::association::Association;
use crate::association::reconfiguration::{ReconfigurationState, ResendReason, SenderAndReceiver};
use crate::counters::EndpointCounters;
use crate::identifier::PathId;
use crate::wire::{Chunk, ReconfigChunk};

impl Association {
    /// Handles a RE-CONFIG.
    pub(super) fn handle_reconfig(
        &mut self,
        now: Duration,
        path: PathId,
        chunk: &ReconfigChunk,
        counters: &mut EndpointCounters,
    ) {
        if !self.state.is_up() {
            counters.unexpected_chunks += 1;
            return;
        }
        let rto = self.paths.timeout_of(path, &self.config);
        let (reconfiguration, mut halves) = self.reconfiguration_and_halves();
        reconfiguration.handle_chunk(now, rto, chunk, &mut halves, counters);
        self.send_reconfiguration(now, Some(path), counters);
    }

    /// Continues the requests that waited for data or acknowledgements.
    #[inline]
    pub(super) fn advance_reconfiguration(
        &mut self,
        now: Duration,
        counters: &mut EndpointCounters,
    ) {
        if !self.reconfiguration.waits() {
            return;
        }
        let (reconfiguration, mut halves) = self.reconfiguration_and_halves();
        reconfiguration.advance(&mut halves);
        self.send_reconfiguration(now, None, counters);
    }

    /// Handles the expiry of the request timer (RFC 6525 §5.1.1, §5.2.7).
    pub(super) fn handle_reconfiguration_timer(
        &mut self,
        now: Duration,
        counters: &mut EndpointCounters,
    ) {
        let Some(why) = self.reconfiguration.handle_timeout(now) else { return };
        let timed_out_on =
            self.reconfiguration.requests_sent_on().filter(|_| why == ResendReason::TimedOut);
        if let Some(path_id) = timed_out_on {
            self.paths.on_request_timeout(path_id, &self.config);
            self.give_up_if_unreachable();
        }
        if self.state.is_up() {
            self.send_reconfiguration(now, None, counters);
        }
    }

    /// Returns the part for re-configuration and those that it changes.
    pub(in crate::association) fn reconfiguration_and_halves(
        &mut self,
    ) -> (&mut ReconfigurationState, SenderAndReceiver<'_>) {
        let halves = SenderAndReceiver {
            sender: &mut self.sender,
            receiver: &mut self.receiver,
            max_inbound: self.config.max_inbound_streams,
        };
        (&mut self.reconfiguration, halves)
    }

    /// Queues chunks on the path that a request arrived on, or on the default path.
    pub(in crate::association) fn send_reconfiguration(
        &mut self,
        now: Duration,
        arrived_on: Option<PathId>,
        counters: &mut EndpointCounters,
    ) {
        let default_path = || self.paths.default_path();
        let path = arrived_on.unwrap_or_else(default_path);
        let rto = self.paths.timeout_of(path, &self.config);
        while let Some(chunk) = self.reconfiguration.poll_chunk(now, rto, path) {
            self.queues.push(Some(path), Chunk::Reconfig(chunk), counters);
        }
        self.collect_events();
    }
}
