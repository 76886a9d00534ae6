//! Reports of chunks and parameters that the peer or this side does not recognize (RFC 9260 §3.2,
//! §3.3.10).

use bytes::BytesMut;
use core::time::Duration;

use super::Association;
use crate::counters::EndpointCounters;
use crate::event::Event;
use crate::identifier::PathId;
use crate::wire::{Chunk, ChunkType, EncodeChunk, ErrorCause, ErrorChunk, UnknownChunk};

/// The maximum number of an ERROR's causes that are reported to the user.
const MAX_CAUSES: usize = 16;

/// Unknown chunks larger than this many bytes are not reported, as the report contains the chunk.
const MAX_REPORTED: usize = 512;

impl Association {
    /// Handles an ERROR, which does not end the association.
    pub(super) fn handle_error(&mut self, now: Duration, error: &ErrorChunk) {
        for cause in error.causes.iter().take(MAX_CAUSES) {
            match cause {
                ErrorCause::StaleCookie { staleness } => {
                    // In microseconds (§3.3.10.3).
                    let staleness = Duration::from_micros(u64::from(staleness));
                    self.handle_stale_cookie(now, staleness);
                }
                ErrorCause::UnrecognizedChunkType { chunk }
                    if chunk.first() == Some(&ChunkType::ASCONF.0) =>
                {
                    if let Some(dynamic) = self.dynamic_address.take() {
                        dynamic.cancel(&mut self.paths, &mut self.events);
                    }
                    self.agreed.dynamic_addresses = false;
                }
                other => self.events.push(Event::RemoteError { cause: other.code().0 }),
            }
        }
    }

    /// Reports a chunk of a known type that was not negotiated as if it were unknown (RFC 3758
    /// §3.3.1).
    pub(super) fn report_chunk(
        &mut self,
        path: PathId,
        chunk: &Chunk,
        counters: &mut EndpointCounters,
    ) {
        if chunk.encoded_len() > MAX_REPORTED {
            return;
        }
        let mut whole = BytesMut::with_capacity(chunk.encoded_len());
        chunk.encode(&mut whole);
        let cause = ErrorCause::UnrecognizedChunkType { chunk: whole.freeze() };
        self.queues.push_error(Some(path), cause, counters);
    }

    /// Handles a chunk of an unknown type. Returns whether to continue with the packet.
    pub(super) fn handle_unknown(
        &mut self,
        path: PathId,
        unknown: &UnknownChunk,
        counters: &mut EndpointCounters,
    ) -> bool {
        counters.unknown_chunks += 1;
        let action = unknown.action();
        if action.reports() && unknown.value.len() <= MAX_REPORTED {
            let cause = ErrorCause::UnrecognizedChunkType { chunk: unknown.whole() };
            self.queues.push_error(Some(path), cause, counters);
        }
        !action.stops()
    }
}
