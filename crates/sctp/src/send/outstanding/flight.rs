//! The data in flight on one path, and what has to be retransmitted on it.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::{ChunkState, OutstandingChunks, SentChunk};
use crate::congestion::PacketNumber;
use crate::identifier::PathId;
use crate::send::byte_tally::{ByteTally, ItemCount};
use crate::send::loss::{RackState, TailLossProbe};
use crate::send::multipath::LowestTsns;
use crate::serial::Tsn;

/// Chunks with consecutive TSNs that were sent in one packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::send) struct PacketRun {
    pub(in crate::send) packet: PacketNumber,
    pub(in crate::send) sent: Duration,
    pub(in crate::send) first: Tsn,
    pub(in crate::send) count: u16,
}

/// A recovery period, in which the window is not reduced again (RFC 9260 §7.2.4).
#[derive(Clone, Copy, Debug)]
pub(in crate::send) struct RecoveryPeriod {
    /// The fast recovery exit point: the highest TSN outstanding when it began.
    pub(in crate::send) exit: Tsn,
    /// The first packet after its start.
    pub(in crate::send) packet: PacketNumber,
    /// Whether T3 started it: then the window grows from one packet immediately.
    pub(in crate::send) by_timeout: bool,
    /// Chunks marked as lost that are not yet known to have arrived after all.
    pub(in crate::send) suspects: u32,
}

/// What one SACK reported about the path.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::send) struct SackFindings {
    /// Whether it newly acknowledged data.
    pub(in crate::send) acknowledged: bool,
    /// Whether some of that was sent on no other path.
    pub(in crate::send) works: bool,
    /// Whether its cumulative TSN ack newly covers data sent on the path.
    pub(in crate::send) cumulative: bool,
    /// The newest packet with newly acknowledged data.
    pub(in crate::send) newest: Option<PacketNumber>,
    /// The newest packet with newly acknowledged data that was sent once.
    pub(in crate::send) newest_sent_once: Option<PacketNumber>,
    /// The highest newly acknowledged TSN.
    pub(in crate::send) highest: Option<Tsn>,
    /// The lowest newly acknowledged TSN; only set if several paths are used at once.
    pub(in crate::send) lowest: Option<Tsn>,
    /// Whether it acknowledged the TSN that the path waited for; likewise.
    pub(in crate::send) pseudo_cumulative: bool,
    /// Whether it acknowledged data that was marked as lost.
    pub(in crate::send) late: bool,
    /// Whether losses were detected.
    pub(in crate::send) lost: bool,
}

/// The data in flight on one path. All per-path state of the multipath algorithms is here.
#[derive(Debug)]
pub(in crate::send) struct PathFlight {
    /// Its path; `None` once that has been removed.
    pub(in crate::send) path: Option<PathId>,
    /// The data sent, oldest first; completed runs are dropped from the front.
    runs: VecDeque<PacketRun>,
    /// TSNs to be retransmitted on this path, lowest first; some may have been acknowledged since.
    retransmissions: VecDeque<Tsn>,
    /// Whether `retransmissions` is out of order.
    unsorted: bool,
    /// The number of them that are still needed.
    pending: ItemCount,
    pub(in crate::send) recovery: Option<RecoveryPeriod>,
    /// The highest TSN that was acknowledged on this path so far.
    pub(in crate::send) highest_acknowledged: Option<Tsn>,
    pub(in crate::send) rack: RackState,
    pub(in crate::send) probe: TailLossProbe,
    /// The oldest packet in flight when T3 was last started.
    pub(in crate::send) timed: Option<PacketNumber>,
    /// When the path's silence casts doubt on it.
    pub(in crate::send) doubt: Option<Duration>,
    pub(in crate::send) seen: SackFindings,
    /// Bytes last sent on the path and still in the send buffer; only maintained if several paths
    /// are used at once, like the following field.
    queued: ByteTally,
    /// The TSNs that the path waits for.
    pub(in crate::send) lowest: LowestTsns,
}

impl PathFlight {
    pub(super) fn new(path: PathId) -> Self {
        Self {
            path: Some(path),
            runs: VecDeque::new(),
            retransmissions: VecDeque::new(),
            unsorted: false,
            pending: ItemCount::default(),
            recovery: None,
            highest_acknowledged: None,
            rack: RackState::default(),
            probe: TailLossProbe::default(),
            timed: None,
            doubt: None,
            seen: SackFindings::default(),
            queued: ByteTally::default(),
            lowest: LowestTsns::default(),
        }
    }

    /// Returns the number of chunks to be retransmitted on this path.
    #[inline]
    pub(in crate::send) fn pending_retransmissions(&self) -> usize {
        self.pending.get()
    }

    /// Returns the bytes last sent on the path and still in the send buffer; 0 if one path is used
    /// at a time.
    pub(in crate::send) fn queued(&self) -> usize {
        self.queued.get()
    }

    /// Adds `bytes` that are sent or queued on this path.
    #[inline]
    pub(super) fn enqueue(&mut self, bytes: usize) {
        self.queued.add(bytes);
    }

    /// Removes `bytes` that left the send buffer, or moved to another path.
    #[inline]
    pub(super) fn dequeue(&mut self, bytes: usize) {
        self.queued.subtract(bytes);
    }

    /// Records a chunk that was sent, or counts as sent, on this path.
    #[inline]
    pub(super) fn on_sent(&mut self, packet: PacketNumber, now: Duration, tsn: Tsn) {
        if let Some(run) = self.runs.back_mut()
            && run.packet == packet
            && run.first.plus(run.count.into()) == tsn
            && run.count < u16::MAX
        {
            run.count += 1;
            return;
        }
        self.runs.push_back(PacketRun { packet, sent: now, first: tsn, count: 1 });
    }

    /// Records a chunk on which the peer reneged: it is in flight again, as part of the latest
    /// packet.
    pub(super) fn on_reneged(&mut self, packet: PacketNumber, now: Duration, tsn: Tsn) {
        let holds = |run: &PacketRun| tsn.distance_from(run.first) < u32::from(run.count);
        let mut latest = self.runs.iter().rev().take_while(|run| run.packet == packet);
        if !latest.any(holds) {
            self.on_sent(packet, now, tsn);
        }
    }

    /// Returns when a packet was sent, if that is still known.
    pub(in crate::send) fn sent_at(&self, packet: PacketNumber) -> Option<Duration> {
        let base = self.runs.front()?.packet;
        let wanted = packet.0.wrapping_sub(base.0);
        let is_wanted = |run: &&PacketRun| run.packet == packet;
        let found = |at: usize| self.runs.get(at).filter(is_wanted);
        // Usually each packet has one run, and none is missing. Only the first run of a packet tells.
        let place = wanted as usize;
        let usual = found(place).filter(|_| place.checked_sub(1).and_then(found).is_none());
        let run = usual.or_else(|| {
            found(self.runs.partition_point(|run| run.packet.0.wrapping_sub(base.0) < wanted))
        });
        run.map(|run| run.sent)
    }

    /// Returns the oldest run with data in flight, after dropping completed ones.
    pub(in crate::send) fn oldest(
        &mut self,
        number: u8,
        chunks: &OutstandingChunks,
    ) -> Option<PacketRun> {
        while let Some(run) = self.runs.front() {
            if is_in_flight(run, number, chunks) {
                return Some(*run);
            }
            self.runs.pop_front();
        }
        None
    }

    /// Drops the oldest run.
    pub(in crate::send) fn drop_oldest(&mut self) {
        self.runs.pop_front();
    }

    /// Returns the runs, oldest first.
    pub(in crate::send) fn runs(&self) -> impl DoubleEndedIterator<Item = &PacketRun> {
        self.runs.iter()
    }

    /// Returns the first and the last run, which may be the same.
    #[inline]
    pub(in crate::send) fn oldest_and_newest_run(&self) -> Option<(&PacketRun, &PacketRun)> {
        Some((self.runs.front()?, self.runs.back()?))
    }

    /// Adds a chunk to be retransmitted on this path.
    pub(super) fn add_retransmission(&mut self, tsn: Tsn) {
        self.unsorted |= self.retransmissions.back().is_some_and(|last| last.is_after(tsn));
        self.retransmissions.push_back(tsn);
        self.pending.add_one();
    }

    /// Records that a retransmission is no longer needed.
    pub(super) fn remove_retransmission(&mut self) {
        self.pending.take_one();
        if self.pending.get() == 0 {
            self.retransmissions.clear();
            self.unsorted = false;
        }
    }

    /// Returns the first chunk to be retransmitted, without removing it.
    pub(in crate::send) fn first_retransmission(
        &mut self,
        number: u8,
        chunks: &OutstandingChunks,
    ) -> Option<Tsn> {
        if self.unsorted {
            let base = chunks.first();
            self.retransmissions
                .make_contiguous()
                .sort_unstable_by_key(|tsn| tsn.distance_from(base));
            self.unsorted = false;
        }
        while let Some(tsn) = self.retransmissions.front() {
            let waits =
                |chunk: &SentChunk| chunk.state == ChunkState::Lost && chunk.flight == number;
            if chunks.get(*tsn).is_some_and(waits) {
                return Some(*tsn);
            }
            self.retransmissions.pop_front();
        }
        debug_assert_eq!(self.pending.get(), 0, "pending retransmissions that are not found");
        self.pending = ItemCount::default();
        None
    }

    /// Removes the chunk that [`Self::first_retransmission`] returned.
    pub(super) fn pop_retransmission(&mut self) {
        self.retransmissions.pop_front();
        self.remove_retransmission();
    }

    /// Limits the entries to about what is outstanding: a peer that alternately reneges and
    /// acknowledges creates entries over and over.
    pub(super) fn compact(&mut self, number: u8, chunks: &OutstandingChunks, max_entries: usize) {
        if self.retransmissions.len() > max_entries {
            let mut last = None;
            self.first_retransmission(number, chunks);
            self.retransmissions
                .make_contiguous()
                .sort_unstable_by_key(|tsn| tsn.distance_from(chunks.first()));
            self.retransmissions.retain(|tsn| {
                let waits =
                    |chunk: &SentChunk| chunk.state == ChunkState::Lost && chunk.flight == number;
                last.replace(*tsn) != Some(*tsn) && chunks.get(*tsn).is_some_and(waits)
            });
            self.unsorted = false;
        }
        if self.runs.len() > max_entries {
            self.runs.retain(|run| is_in_flight(run, number, chunks));
        }
    }

    /// Frees memory, if nothing is in flight.
    pub(super) fn shrink(&mut self) {
        let capacity = self.runs.capacity() + self.retransmissions.capacity();
        if capacity > 0 && self.runs.is_empty() && self.retransmissions.is_empty() {
            self.runs = VecDeque::new();
            self.retransmissions = VecDeque::new();
        }
    }

    /// Reuses the flight of a removed path for another path.
    pub(super) fn reuse(&mut self, path: PathId) {
        *self = Self { queued: self.queued, ..Self::new(path) };
    }

    /// Forgets everything sent; recovery and loss detection restart.
    pub(super) fn clear(&mut self) {
        *self = Self { path: self.path, queued: self.queued, ..Self::new(PathId(0)) };
    }

    /// Forgets everything sent, including the contents of the send buffer.
    pub(super) fn restart(&mut self) {
        self.clear();
        self.queued = ByteTally::default();
    }
}

/// Returns whether a chunk of the run is still in flight in it.
fn is_in_flight(run: &PacketRun, number: u8, chunks: &OutstandingChunks) -> bool {
    let last = run.first.plus(u32::from(run.count) - 1);
    if last.is_before(chunks.first()) {
        return false;
    }
    (0..u32::from(run.count)).any(|offset| {
        chunks.get(run.first.plus(offset)).is_some_and(|chunk| in_run(chunk, run, number))
    })
}

/// Returns whether a chunk is in flight in this run, and has not been retransmitted since.
pub(in crate::send) fn in_run(chunk: &SentChunk, run: &PacketRun, number: u8) -> bool {
    chunk.state == ChunkState::InFlight && chunk.flight == number && chunk.packet == run.packet
}
