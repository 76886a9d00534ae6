//! Outputs: events and packets of associations that have any, then the next timeout.

use core::time::Duration;

use super::Endpoint;
use super::packet_buffer::{PacketBuffer, TrainContents};
use crate::io::Output;

impl Endpoint {
    /// Returns the next output; call it again until it returns [`Output::Timeout`].
    pub fn poll_output(&mut self, now: Duration) -> Output {
        self.advance_time(now);
        self.run_timers();
        self.share_memory();
        if let Some(answer) = self.answers.pop_front() {
            self.count(&answer);
            return answer.into();
        }
        while let Some(&slot) = self.pending.front() {
            let Some(entry) = self.registry.entry_mut(slot) else {
                self.pending.pop_front();
                continue;
            };
            let association = &mut *entry.association;
            if let Some(event) = association.poll_event() {
                return Output::Event(association.id, event);
            }
            if let Some(source) = association.wants_to_verify(self.now) {
                let permitted = self.probes.allows(self.now, source);
                association.permit_verification(self.now, permitted);
            }
            if !entry.drained {
                let (train, counters) = (&mut self.train, &mut self.counters);
                let transmit = association.poll_transmit(self.now, train, counters);
                // Polling once more would cost about as much as writing a packet.
                entry.drained = train.is_exhausted() && !association.has_events();
                if let Some(transmit) = transmit {
                    self.count(&transmit);
                    return transmit.into();
                }
            }
            // Sending may have ended something.
            if association.has_events() {
                continue;
            }
            self.finish(slot);
        }
        if let Some(transmit) = self.train.gather(|_: &mut PacketBuffer| None) {
            // Packets of an association that was dropped meanwhile.
            self.count(&transmit);
            return transmit.into();
        }
        Output::Timeout(match (self.timers.next(), self.memory_timeout()) {
            (Some(timer), Some(memory)) => Some(timer.min(memory)),
            (timer, memory) => timer.or(memory),
        })
    }

    fn count(&mut self, trainload: &TrainContents) {
        self.counters.packets_out += trainload.packets() as u64;
    }

    /// Handles the timers of associations that are due.
    fn run_timers(&mut self) {
        while let Some(slot) = self.timers.expired(self.now) {
            if let Some(entry) = self.registry.entry_mut(slot) {
                entry.scheduled = None;
                entry.association.handle_timeout(self.now, &mut self.counters);
                self.mark_pending(slot);
            }
        }
    }

    /// Completes an association that has no more output for now.
    fn finish(&mut self, slot: u32) {
        self.pending.pop_front();
        let Some(entry) = self.registry.entry_mut(slot) else { return };
        entry.pending = false;
        if entry.association.is_over() {
            self.drop_slot(slot);
            return;
        }
        entry.association.shrink();
        let wanted = entry.association.next_timeout();
        let scheduled = &mut entry.scheduled;
        self.timers.schedule(slot, scheduled, wanted);
        if entry.association.take_lookup_changed() {
            self.registry.index(slot);
        }
    }
}
