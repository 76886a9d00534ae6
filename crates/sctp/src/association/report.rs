//! Reports of chunks that this side does not recognize, or cannot use (RFC 9260 §3.2, §3.3.10).

use bytes::BytesMut;

use super::control::ChunkQueues;
use crate::counters::EndpointCounters;
use crate::identifier::{PathId, StreamId};
use crate::wire::{Chunk, EncodeChunk, ErrorCause, UnknownChunk};

/// Unknown chunks larger than this many bytes are not reported, as the report contains the chunk.
const MAX_REPORTED: usize = 512;

/// Reports a chunk of a known type that was not negotiated as if it were unknown (RFC 3758 §3.3.1).
pub(super) fn report_chunk(
    queues: &mut ChunkQueues,
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
    queues.push_error(Some(path), cause, counters);
}

/// Handles a chunk of an unknown type. Returns whether to continue with the packet.
pub(super) fn handle_unknown(
    queues: &mut ChunkQueues,
    path: PathId,
    unknown: &UnknownChunk,
    counters: &mut EndpointCounters,
) -> bool {
    counters.unknown_chunks += 1;
    let action = unknown.action();
    if action.reports() && unknown.value.len() <= MAX_REPORTED {
        let cause = ErrorCause::UnrecognizedChunkType { chunk: unknown.whole() };
        queues.push_error(Some(path), cause, counters);
    }
    !action.stops()
}

/// Reports data for a stream that the peer may not send on (RFC 9260 §6.5).
#[cold]
pub(super) fn report_invalid_stream(
    queues: &mut ChunkQueues,
    path: PathId,
    stream: StreamId,
    counters: &mut EndpointCounters,
) {
    queues.push_error(Some(path), ErrorCause::InvalidStream { stream }, counters);
}
