//! The timers of an association, combined.

use core::time::Duration;

use crate::association::state::AssociationPhase;
use crate::association::{Association, AssociationEnding};
use crate::counters::EndpointCounters;
use crate::event::{Event, LossReason};
use crate::wire::Causes;

impl Association {
    /// Returns when to call [`Self::handle_timeout`] at the latest.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        let opening_or_up = !matches!(self.state, AssociationPhase::Closed);
        let transfer = [
            self.sender.next_timeout(&self.paths),
            self.receiver.next_timeout(),
            self.paths.next_timeout(),
            self.reconfiguration.next_timeout(),
            self.dynamic_address.as_ref().and_then(|dynamic| dynamic.next_timeout()),
            self.paced_until,
            self.lingering_timeout(),
        ];
        let running = transfer.into_iter().flatten().filter(|_| opening_or_up);
        self.state.due().into_iter().chain(running).min()
    }

    /// Frees the memory that an idle association does not need.
    pub(crate) fn shrink(&mut self) {
        self.queues.shrink();
        self.sender.shrink();
        self.receiver.shrink();
    }

    /// Handles the timers that are due. May be called too early.
    pub(crate) fn handle_timeout(&mut self, now: Duration, counters: &mut EndpointCounters) {
        if self.paced_until.is_some_and(|at| at <= now) {
            self.paced_until = None;
        }
        if self.state.due().is_some_and(|due| due <= now) {
            match self.handshake_and_context(now) {
                Some((handshake, mut context)) => {
                    if let Err(reason) = handshake.handle_t1(&mut context, counters) {
                        self.end(AssociationEnding::DiscardQueued, Event::Lost(reason));
                    }
                }
                None => self.handle_t2(now, counters),
            }
        }
        if matches!(self.state, AssociationPhase::Closed) {
            return;
        }
        if self.sender.next_timeout(&self.paths).is_some_and(|due| due <= now) {
            self.handle_data_timers(now);
        }
        if self.paths.next_timeout().is_some_and(|due| due <= now) {
            self.paths.handle_timeout(now, &self.config);
            self.give_up_if_unreachable();
        }
        self.handle_reconfiguration_timer(now, counters);
        self.handle_asconf_timer(now, counters);
        if self.lingering_timeout().is_some_and(|due| due <= now) {
            let stall = self.config.shutdown_stall.unwrap_or_default();
            if !self.lingering.handle_timeout(now, self.sender.queued_bytes(), stall) {
                self.abort_with(Causes::default(), LossReason::Stalled);
            }
        }
        self.advance_shutdown(now, counters);
        self.collect_events();
        self.collect_path_changes(now);
    }

    /// Returns the deadline for data that delays the shutdown.
    fn lingering_timeout(&self) -> Option<Duration> {
        self.lingering.due().filter(|_| self.state.waits_for_drain())
    }

    /// Handles the expiry of T4-RTO (RFC 5061 §5.1, B1 to B5).
    fn handle_asconf_timer(&mut self, now: Duration, counters: &mut EndpointCounters) {
        let expired = self.dynamic_address.as_ref().and_then(|dynamic| dynamic.expired(now));
        let Some(last) = expired else { return };
        self.paths.on_request_timeout(last, &self.config);
        self.give_up_if_unreachable();
        if let Some((dynamic, mut context)) = self.dynamic_address_and_context(now) {
            dynamic.retransmit(last, &mut context, counters);
        }
    }
}
