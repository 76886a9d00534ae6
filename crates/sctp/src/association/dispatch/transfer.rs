//! Data and its acknowledgement between the sender, the receiver and the paths (RFC 9260
//! §6).

use core::time::Duration;

use crate::association::report::report_invalid_stream;
use crate::association::state::AssociationPhase;
use crate::association::{Association, AssociationEnding};
use crate::counters::EndpointCounters;
use crate::event::{Event, LossReason};
use crate::identifier::PathId;
use crate::receive::{DataOutcome, DataViolation};
use crate::wire::{DataChunk, ErrorCause, SackChunk};

impl Association {
    /// Handles DATA or I-DATA. Returns whether to continue with the packet.
    pub(super) fn handle_data(
        &mut self,
        path: PathId,
        data: &mut DataChunk,
        counters: &mut EndpointCounters,
    ) -> bool {
        if !self.state.accepts_data() {
            counters.unexpected_chunks += 1;
            return !matches!(self.state, AssociationPhase::Closed);
        }
        match self.receiver.handle_data(data, counters) {
            DataOutcome::Accepted | DataOutcome::Duplicate | DataOutcome::OverWindow => true,
            DataOutcome::InvalidStream(stream) => {
                report_invalid_stream(&mut self.queues, path, stream, counters);
                true
            }
            DataOutcome::Violation(violation) => {
                self.abort_for_violation(cause_of(violation));
                false
            }
        }
    }

    /// Handles a SACK or NR-SACK.
    pub(super) fn handle_sack(
        &mut self,
        now: Duration,
        sack: &SackChunk,
        arrived_on: PathId,
        counters: &mut EndpointCounters,
    ) {
        if self.state.sends_data() {
            self.sender.handle_sack(now, sack, arrived_on, &mut self.paths, counters);
        }
    }

    /// Handles the T3-rtx, RACK and tail loss probe timers of the sender (§6.3.3).
    pub(super) fn handle_data_timers(&mut self, now: Duration) {
        let outcome = self.sender.handle_timeout(now, &mut self.paths);
        for expired in outcome.expired {
            if expired.is_error && self.state.is_up() {
                self.paths.on_error(expired.path, &self.config);
            }
        }
        self.give_up_if_unreachable();
    }

    /// Ends the association after too many consecutive errors (§8.1).
    pub(super) fn give_up_if_unreachable(&mut self) {
        if self.state.is_up() && self.paths.is_peer_given_up(&self.config) {
            self.end(AssociationEnding::DiscardQueued, Event::Lost(LossReason::PeerUnreachable));
        }
    }
}

/// Returns the cause with which the association ends because of data, or an end of data, that
/// contradicts the protocol.
#[cold]
pub(super) fn cause_of(violation: DataViolation) -> ErrorCause {
    match violation {
        DataViolation::NoUserData(tsn) => ErrorCause::NoUserData { tsn },
        DataViolation::WrongKind => ErrorCause::violation("DATA and I-DATA mixed"),
        DataViolation::Inconsistent => ErrorCause::violation("fragments that do not fit together"),
    }
}
