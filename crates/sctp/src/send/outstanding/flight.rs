//! What is under way on one path, and what is to be sent on it again.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::{ChunkState, Chunks, SentChunk};
use crate::congestion::PacketNumber;
use crate::identifier::PathId;
use crate::send::loss::{Rack, TailLossProbe};
use crate::send::multipath::Lowest;
use crate::send::tally::{Count, Tally};
use crate::serial::Tsn;

/// Chunks with consecutive TSNs that were sent in one packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::send) struct Run {
    pub(in crate::send) packet: PacketNumber,
    pub(in crate::send) sent: Duration,
    pub(in crate::send) first: Tsn,
    pub(in crate::send) count: u16,
}

/// A time after a loss in which the window is not cut again (RFC 9260 §7.2.4).
#[derive(Clone, Copy, Debug)]
pub(in crate::send) struct Recovery {
    /// The fast recovery exit point: the highest TSN outstanding when it began.
    pub(in crate::send) exit: Tsn,
    /// The first packet after it began.
    pub(in crate::send) packet: PacketNumber,
    /// Whether T3 began it: then the window grows from one packet at once.
    pub(in crate::send) by_timeout: bool,
    /// Chunks believed lost that are not yet known to have arrived after all.
    pub(in crate::send) suspects: u32,
}

/// What one SACK said of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::send) struct Seen {
    /// Whether it acknowledged something for the first time.
    pub(in crate::send) acknowledged: bool,
    /// Whether that was sent nowhere else.
    pub(in crate::send) works: bool,
    /// Whether something that was sent on the path is cumulatively acknowledged now.
    pub(in crate::send) cumulative: bool,
    /// The newest packet of which it acknowledged something.
    pub(in crate::send) newest: Option<PacketNumber>,
    /// The newest packet of which it acknowledged something that was sent once.
    pub(in crate::send) newest_once: Option<PacketNumber>,
    /// The highest TSN that it acknowledged for the first time, with its packet.
    pub(in crate::send) highest: Option<Tsn>,
    /// The lowest one; known only where several paths are used at once.
    pub(in crate::send) lowest: Option<Tsn>,
    /// Whether it acknowledged what the path had waited for; likewise.
    pub(in crate::send) pseudo_cumulative: bool,
    /// Whether something arrived that was believed lost.
    pub(in crate::send) late: bool,
    /// Whether chunks were found lost.
    pub(in crate::send) lost: bool,
}

/// What is under way on one path. All that the multipath algorithms need of a path is here.
#[derive(Debug)]
pub(in crate::send) struct Flight {
    /// Whose it is; `None` once the path is gone.
    pub(in crate::send) path: Option<PathId>,
    /// What was sent, oldest first; those at the front that are over are gone.
    runs: VecDeque<Run>,
    /// TSNs to be sent again on this path, lowest first; some may have been acknowledged since.
    again: VecDeque<Tsn>,
    /// Whether `again` is out of order.
    unsorted: bool,
    /// How many of them still wait.
    waiting: Count,
    pub(in crate::send) recovery: Option<Recovery>,
    /// The highest TSN that was acknowledged on this path so far.
    pub(in crate::send) highest_acknowledged: Option<Tsn>,
    pub(in crate::send) rack: Rack,
    pub(in crate::send) probe: TailLossProbe,
    /// The oldest packet under way when T3 was last started.
    pub(in crate::send) timed: Option<PacketNumber>,
    /// When the path's silence casts doubt on it.
    pub(in crate::send) doubt: Option<Duration>,
    pub(in crate::send) seen: Seen,
    /// Bytes sent on the path last and still in the send buffer; kept only where several paths are
    /// used at once, as is what follows.
    queued: Tally,
    /// What the path waits for.
    pub(in crate::send) lowest: Lowest,
}

impl Flight {
    pub(super) fn new(path: PathId) -> Self {
        Self {
            path: Some(path),
            runs: VecDeque::new(),
            again: VecDeque::new(),
            unsorted: false,
            waiting: Count::default(),
            recovery: None,
            highest_acknowledged: None,
            rack: Rack::default(),
            probe: TailLossProbe::default(),
            timed: None,
            doubt: None,
            seen: Seen::default(),
            queued: Tally::default(),
            lowest: Lowest::default(),
        }
    }

    /// How many chunks wait to be sent again on this path.
    #[inline]
    pub(in crate::send) fn waiting(&self) -> usize {
        self.waiting.get()
    }

    /// Bytes sent on the path last and still in the send buffer; 0 where one path is used at a time.
    pub(in crate::send) fn queued(&self) -> usize {
        self.queued.get()
    }

    /// So many bytes were sent on this path, or are to be sent on it.
    #[inline]
    pub(super) fn enqueue(&mut self, bytes: usize) {
        self.queued.add(bytes);
    }

    /// So many bytes left the send buffer, or go on another path.
    #[inline]
    pub(super) fn dequeue(&mut self, bytes: usize) {
        self.queued.take(bytes);
    }

    /// A chunk was sent, or counts as sent, on this path.
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
        self.runs.push_back(Run { packet, sent: now, first: tsn, count: 1 });
    }

    /// A chunk that had arrived is under way again, and counts to the latest packet.
    pub(super) fn on_taken_back(&mut self, packet: PacketNumber, now: Duration, tsn: Tsn) {
        let holds = |run: &Run| tsn.distance_from(run.first) < u32::from(run.count);
        let mut latest = self.runs.iter().rev().take_while(|run| run.packet == packet);
        if !latest.any(holds) {
            self.on_sent(packet, now, tsn);
        }
    }

    /// When a packet was sent, if it is still known.
    pub(in crate::send) fn sent_at(&self, packet: PacketNumber) -> Option<Duration> {
        let base = self.runs.front()?.packet;
        let wanted = packet.0.wrapping_sub(base.0);
        let at = self.runs.partition_point(|run| run.packet.0.wrapping_sub(base.0) < wanted);
        self.runs.get(at).filter(|run| run.packet == packet).map(|run| run.sent)
    }

    /// The oldest run that is not over, after dropping those that are.
    pub(in crate::send) fn oldest(&mut self, number: u8, chunks: &Chunks) -> Option<Run> {
        while let Some(run) = self.runs.front() {
            if is_under_way(run, number, chunks) {
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

    /// What was sent, oldest first.
    pub(in crate::send) fn runs(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.runs.iter()
    }

    /// A chunk is to be sent again on this path.
    pub(super) fn add_again(&mut self, tsn: Tsn) {
        self.unsorted |= self.again.back().is_some_and(|last| last.is_after(tsn));
        self.again.push_back(tsn);
        self.waiting.add_one();
    }

    /// A chunk that was to be sent again need not be.
    pub(super) fn remove_again(&mut self) {
        self.waiting.take_one();
        if self.waiting.get() == 0 {
            self.again.clear();
            self.unsorted = false;
        }
    }

    /// The first chunk that is to be sent again, without taking it.
    pub(in crate::send) fn first_again(&mut self, number: u8, chunks: &Chunks) -> Option<Tsn> {
        if self.unsorted {
            let base = chunks.first();
            self.again.make_contiguous().sort_unstable_by_key(|tsn| tsn.distance_from(base));
            self.unsorted = false;
        }
        while let Some(tsn) = self.again.front() {
            let waits =
                |chunk: &SentChunk| chunk.state == ChunkState::Lost && chunk.flight == number;
            if chunks.get(*tsn).is_some_and(waits) {
                return Some(*tsn);
            }
            self.again.pop_front();
        }
        debug_assert_eq!(self.waiting.get(), 0, "chunks that wait and are not found");
        self.waiting = Count::default();
        None
    }

    /// Takes the chunk that [`Self::first_again`] gave.
    pub(super) fn take_again(&mut self) {
        self.again.pop_front();
        self.remove_again();
    }

    /// Bounds what is remembered to about what is outstanding: a peer that takes back and
    /// acknowledges by turns makes entries over and over.
    pub(super) fn compact(&mut self, number: u8, chunks: &Chunks, most: usize) {
        if self.again.len() > most {
            let mut last = None;
            self.first_again(number, chunks);
            self.again
                .make_contiguous()
                .sort_unstable_by_key(|tsn| tsn.distance_from(chunks.first()));
            self.again.retain(|tsn| {
                let waits =
                    |chunk: &SentChunk| chunk.state == ChunkState::Lost && chunk.flight == number;
                last.replace(*tsn) != Some(*tsn) && chunks.get(*tsn).is_some_and(waits)
            });
            self.unsorted = false;
        }
        if self.runs.len() > most {
            self.runs.retain(|run| is_under_way(run, number, chunks));
        }
    }

    /// Gives memory back, if nothing is under way.
    pub(super) fn shrink(&mut self) {
        if self.runs.is_empty() && self.again.is_empty() {
            self.runs = VecDeque::new();
            self.again = VecDeque::new();
        }
    }

    /// Another path takes the place of one that is gone.
    pub(super) fn reuse(&mut self, path: PathId) {
        *self = Self { queued: self.queued, ..Self::new(path) };
    }

    /// Forgets all that was sent; recovery and loss detection start anew.
    pub(super) fn clear(&mut self) {
        *self = Self { path: self.path, queued: self.queued, ..Self::new(PathId(0)) };
    }

    /// The same, with what is in the send buffer.
    pub(super) fn restart(&mut self) {
        self.clear();
        self.queued = Tally::default();
    }
}

/// Whether a chunk of the run is still under way in it.
fn is_under_way(run: &Run, number: u8, chunks: &Chunks) -> bool {
    let last = run.first.plus(u32::from(run.count) - 1);
    if last.is_before(chunks.first()) {
        return false;
    }
    (0..u32::from(run.count)).any(|offset| {
        chunks.get(run.first.plus(offset)).is_some_and(|chunk| in_run(chunk, run, number))
    })
}

/// Whether a chunk is under way in this run, and not sent again since.
pub(in crate::send) fn in_run(chunk: &SentChunk, run: &Run, number: u8) -> bool {
    chunk.state == ChunkState::InFlight && chunk.flight == number && chunk.packet == run.packet
}
