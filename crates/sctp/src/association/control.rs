//! Queued control chunks, and packets that carry a single chunk.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::PacketArrival;
use crate::counters::EndpointCounters;
use crate::identifier::{PathId, VerificationTag};
use crate::path::AssociationPaths;
use crate::serial::Tsn;
use crate::wire::{Chunk, ChunkType, ErrorCause, ErrorChunk, PacketWriter};

/// The most control chunks that wait. What a peer provokes beyond that (HEARTBEAT ACK, ERROR) is
/// left out and counted.
const MAX_QUEUED: usize = 64;

/// A queued control chunk.
#[derive(Debug)]
struct ControlChunk {
    /// The path that it must take, or `None` for any.
    path: Option<PathId>,
    chunk: Chunk,
}

/// A chunk that is sent in a packet of its own: INIT, ABORT, SHUTDOWN COMPLETE (RFC 9260 §6.10).
#[derive(Debug)]
pub(crate) struct StandaloneChunk {
    pub(crate) path: PathId,
    pub(crate) tag: VerificationTag,
    pub(crate) chunk: Chunk,
}

/// Chunks queued for sending, apart from data and acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct ChunkQueues {
    standalone: VecDeque<StandaloneChunk>,
    control: VecDeque<ControlChunk>,
}

impl ChunkQueues {
    /// Frees the memory of empty queues, which an association rarely needs.
    pub(crate) fn shrink(&mut self) {
        if self.standalone.is_empty() && self.standalone.capacity() > 0 {
            self.standalone = VecDeque::new();
        }
        if self.control.is_empty() && self.control.capacity() > 0 {
            self.control = VecDeque::new();
        }
    }

    /// Queues a chunk, unless the queue is full.
    pub(crate) fn push(
        &mut self,
        path: Option<PathId>,
        chunk: Chunk,
        counters: &mut EndpointCounters,
    ) {
        if self.control.len() < MAX_QUEUED {
            self.control.push_back(ControlChunk { path, chunk });
        } else {
            counters.answers_withheld += 1;
        }
    }

    /// Queues an ERROR with one cause, unless the queue is full.
    pub(crate) fn push_error(
        &mut self,
        path: Option<PathId>,
        cause: ErrorCause,
        counters: &mut EndpointCounters,
    ) {
        self.push(path, Chunk::Error(ErrorChunk { causes: cause.into() }), counters);
    }

    /// Queues a chunk to be sent in a packet of its own, unless the queue is full.
    pub(crate) fn push_standalone(&mut self, path: PathId, tag: VerificationTag, chunk: Chunk) {
        if self.standalone.len() < MAX_QUEUED {
            self.standalone.push_back(StandaloneChunk { path, tag, chunk });
        }
    }

    /// Queues a SHUTDOWN, unless there is one already: its cumulative TSN is filled in when it is
    /// written.
    pub(super) fn push_shutdown(
        &mut self,
        path: PathId,
        cumulative_tsn: Tsn,
        counters: &mut EndpointCounters,
    ) {
        if !self.types().any(|kind| kind == ChunkType::SHUTDOWN) {
            self.push(Some(path), Chunk::Shutdown { cumulative_tsn }, counters);
        }
    }

    /// Queues a COOKIE ACK to the address that the COOKIE ECHO came from (§6.4), with a heartbeat
    /// if that address is unconfirmed (§5.4).
    pub(super) fn acknowledge_cookie(
        &mut self,
        now: Duration,
        arrival: &PacketArrival,
        paths: &mut AssociationPaths,
        counters: &mut EndpointCounters,
    ) {
        let known = paths.by_remote(arrival.remote, arrival.local);
        let path = known.or_else(|| paths.by_address(arrival.remote.ip()));
        self.push(path, Chunk::CookieAck, counters);
        if let Some(heartbeat) = path.and_then(|path| paths.verification_heartbeat(now, path)) {
            self.push(path, heartbeat.chunk(), counters);
        }
    }

    /// Removes the queued control chunks of a type.
    pub(super) fn withdraw(&mut self, kind: ChunkType) {
        self.control.retain(|control| control.chunk.chunk_type() != kind);
    }

    /// Removes all queued control chunks.
    pub(super) fn discard_control(&mut self) {
        self.control.clear();
    }

    /// Removes all chunks that wait for a packet of their own.
    pub(super) fn discard_standalone(&mut self) {
        self.standalone.clear();
    }

    /// Returns whether a chunk waits for a packet of its own.
    pub(super) fn has_standalone(&self) -> bool {
        !self.standalone.is_empty()
    }

    /// Returns the next chunk that goes in a packet of its own.
    #[inline]
    pub(super) fn pop_standalone(&mut self) -> Option<StandaloneChunk> {
        self.standalone.pop_front()
    }

    /// Returns the types of the queued control chunks, in order.
    #[inline]
    pub(super) fn types(&self) -> impl Iterator<Item = ChunkType> + '_ {
        self.control.iter().map(|control| control.chunk.chunk_type())
    }

    /// Returns the path of the next control chunk, if there is one. One whose path is gone, or that
    /// may take any, goes over the default path.
    #[inline]
    pub(super) fn path(&self, paths: &AssociationPaths) -> Option<PathId> {
        let next = self.control.front()?;
        let wanted = next.path.filter(|path| paths.get(*path).is_some());
        Some(wanted.unwrap_or_else(|| paths.default_path()))
    }

    /// Writes the control chunks for a path, as many as fit, in order. Returns whether an ASCONF is
    /// among them.
    #[inline]
    pub(super) fn write(
        &mut self,
        path: PathId,
        paths: &AssociationPaths,
        cumulative: Tsn,
        packet: &mut PacketWriter<'_>,
    ) -> bool {
        let mut has_asconf = false;
        while let Some(control) = self.control.front_mut() {
            let other = control.path.is_some_and(|wanted| wanted != path);
            if other && control.path.is_some_and(|wanted| paths.get(wanted).is_some()) {
                return has_asconf;
            }
            if let Chunk::Shutdown { cumulative_tsn } = &mut control.chunk {
                *cumulative_tsn = cumulative;
            }
            if !packet.append(&control.chunk) && !packet.is_empty() {
                return has_asconf;
            }
            has_asconf |= control.chunk.chunk_type() == ChunkType::ASCONF;
            // A chunk that does not even fit an empty packet never will.
            self.control.pop_front();
        }
        has_asconf
    }
}
