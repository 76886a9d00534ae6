//! FORWARD-TSN and I-FORWARD-TSN: data that the peer abandoned (RFC 3758 §3.6, RFC 8260 §2.3.1).

use alloc::vec::Vec;

use super::{AssociationReceiver, DataViolation, TsnPosition};
use crate::counters::EndpointCounters;
use crate::wire::{ForwardTsnChunk, IForwardTsnChunk};

impl AssociationReceiver {
    /// Processes a FORWARD-TSN chunk.
    ///
    /// # Errors
    /// If I-FORWARD-TSN was negotiated.
    pub fn handle_forward_tsn(
        &mut self,
        chunk: &ForwardTsnChunk,
        counters: &mut EndpointCounters,
    ) -> Result<(), DataViolation> {
        if self.reassembly.is_interleaved() {
            counters.unexpected_chunks += 1;
            return Err(DataViolation::WrongKind);
        }
        let Some(position) = self.advances_to(chunk.new_cumulative_tsn) else { return Ok(()) };
        let mut dropped = Vec::new();
        self.reassembly.skip_to(position, &mut dropped);
        self.release_dropped(dropped);
        for skip in chunk.skipped() {
            if skip.stream.0 >= self.inbound {
                counters.inconsistent_data += 1;
                continue;
            }
            let due = self.delivery.due(skip.stream);
            let ahead = skip.ssn.0.wrapping_sub(due as u16);
            if ahead.cast_signed() >= 0 {
                self.delivery.skip(skip.stream, due + u64::from(ahead));
            }
        }
        self.skip_to(position, counters)
    }

    /// Processes an I-FORWARD-TSN chunk.
    ///
    /// # Errors
    /// If I-FORWARD-TSN was not negotiated.
    pub fn handle_i_forward_tsn(
        &mut self,
        chunk: &IForwardTsnChunk,
        counters: &mut EndpointCounters,
    ) -> Result<(), DataViolation> {
        if !self.reassembly.is_interleaved() {
            counters.unexpected_chunks += 1;
            return Err(DataViolation::WrongKind);
        }
        let Some(position) = self.advances_to(chunk.new_cumulative_tsn) else { return Ok(()) };
        let mut dropped = Vec::new();
        for skip in chunk.skipped() {
            if skip.stream.0 >= self.inbound {
                counters.inconsistent_data += 1;
            } else if skip.unordered {
                self.reassembly.skip_unordered(skip.stream, skip.mid, &mut dropped);
            } else {
                let due = self.delivery.due(skip.stream);
                let ahead = skip.mid.0.wrapping_sub(due as u32);
                if ahead.cast_signed() >= 0 {
                    let number = due + u64::from(ahead);
                    self.reassembly.skip_ordered(skip.stream, number, &mut dropped);
                    self.delivery.skip(skip.stream, number);
                }
            }
        }
        self.release_dropped(dropped);
        self.skip_to(position, counters)
    }

    /// Returns the position of a new cumulative TSN, unless it is behind. At the current one it is
    /// out of date by RFC 3758 §3.6, but may abandon a message whose rest was never sent, and so has
    /// no TSN to skip to; otherwise the next message would contradict it. A SACK is sent in any case,
    /// as the last one may have been lost.
    fn advances_to(&mut self, new_cumulative_tsn: crate::serial::Tsn) -> Option<TsnPosition> {
        self.acknowledgement.on_chunk();
        self.acknowledgement.request_now();
        let position = self.tracking.position(new_cumulative_tsn);
        (position >= self.tracking.cumulative()).then_some(position)
    }

    fn skip_to(
        &mut self,
        position: TsnPosition,
        counters: &mut EndpointCounters,
    ) -> Result<(), DataViolation> {
        self.skipped = true;
        self.tracking.skip_to(position);
        self.drop_stranded(counters).map_err(|_| {
            counters.inconsistent_data += 1;
            DataViolation::Inconsistent
        })
    }
}
