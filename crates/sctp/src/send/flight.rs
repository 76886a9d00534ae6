//! What is under way on one path, and what is to be sent on it again.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::loss::{Rack, TailLossProbe};
use super::multipath::Lowest;
use super::outstanding::{ChunkState, Outstanding, SentChunk};
use crate::congestion::PacketNumber;
use crate::identifier::PathId;
use crate::serial::Tsn;

/// The most paths of one association that data is sent on at a time.
pub(super) const MAX_FLIGHTS: usize = 255;

/// Chunks with consecutive TSNs that were sent in one packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) packet: PacketNumber,
    pub(super) sent: Duration,
    pub(super) first: Tsn,
    pub(super) count: u16,
}

/// A time after a loss in which the window is not cut again (RFC 9260 §7.2.4).
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// The fast recovery exit point: the highest TSN outstanding when it began.
    pub(super) exit: Tsn,
    /// The first packet after it began.
    pub(super) packet: PacketNumber,
    /// Whether T3 began it: then the window grows from one packet at once.
    pub(super) by_timeout: bool,
    /// Chunks believed lost that are not yet known to have arrived after all.
    pub(super) suspects: u32,
}

/// What one SACK said of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Whether it acknowledged something for the first time.
    pub(super) acknowledged: bool,
    /// Whether that was sent nowhere else.
    pub(super) works: bool,
    /// Whether something that was sent on the path is cumulatively acknowledged now.
    pub(super) cumulative: bool,
    /// The newest packet of which it acknowledged something.
    pub(super) newest: Option<PacketNumber>,
    /// The newest packet of which it acknowledged something that was sent once.
    pub(super) newest_once: Option<PacketNumber>,
    /// The highest TSN that it acknowledged for the first time, with its packet.
    pub(super) highest: Option<Tsn>,
    /// The lowest one; known only where several paths are used at once.
    pub(super) lowest: Option<Tsn>,
    /// Whether it acknowledged what the path had waited for; likewise.
    pub(super) pseudo_cumulative: bool,
    /// Whether something arrived that was believed lost.
    pub(super) late: bool,
    /// Whether chunks were found lost.
    pub(super) lost: bool,
}

/// What is under way on one path. All that the multipath algorithms need of a path is here.
#[derive(Debug)]
pub(super) struct Flight {
    /// Whose it is; `None` once the path is gone.
    pub(super) path: Option<PathId>,
    /// What was sent, oldest first; those at the front that are over are gone.
    runs: VecDeque<Run>,
    /// TSNs to be sent again on this path, lowest first; some may have been acknowledged since.
    again: VecDeque<Tsn>,
    /// Whether `again` is out of order.
    unsorted: bool,
    /// How many of them still wait.
    pub(super) waiting: usize,
    pub(super) recovery: Option<Recovery>,
    /// The highest TSN that was acknowledged on this path so far.
    pub(super) highest_acknowledged: Option<Tsn>,
    pub(super) rack: Rack,
    pub(super) probe: TailLossProbe,
    /// The oldest packet under way when T3 was last started.
    pub(super) timed: Option<PacketNumber>,
    /// When the path's silence casts doubt on it.
    pub(super) doubt: Option<Duration>,
    pub(super) seen: Seen,
    /// Bytes sent on the path last and still in the send buffer; kept only where several paths are
    /// used at once, as is what follows.
    pub(super) queued: usize,
    /// What the path waits for.
    pub(super) lowest: Lowest,
}

impl Flight {
    pub(super) fn new(path: PathId) -> Self {
        Self {
            path: Some(path),
            runs: VecDeque::new(),
            again: VecDeque::new(),
            unsorted: false,
            waiting: 0,
            recovery: None,
            highest_acknowledged: None,
            rack: Rack::default(),
            probe: TailLossProbe::default(),
            timed: None,
            doubt: None,
            seen: Seen::default(),
            queued: 0,
            lowest: Lowest::default(),
        }
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
    pub(super) fn sent_at(&self, packet: PacketNumber) -> Option<Duration> {
        let base = self.runs.front()?.packet;
        let wanted = packet.0.wrapping_sub(base.0);
        let at = self.runs.partition_point(|run| run.packet.0.wrapping_sub(base.0) < wanted);
        self.runs.get(at).filter(|run| run.packet == packet).map(|run| run.sent)
    }

    /// The oldest run that is not over, after dropping those that are.
    pub(super) fn oldest(&mut self, number: u8, chunks: &Outstanding) -> Option<Run> {
        while let Some(run) = self.runs.front() {
            if is_under_way(run, number, chunks) {
                return Some(*run);
            }
            self.runs.pop_front();
        }
        None
    }

    /// Drops the oldest run.
    pub(super) fn drop_oldest(&mut self) {
        self.runs.pop_front();
    }

    /// What was sent, oldest first.
    pub(super) fn runs(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.runs.iter()
    }

    /// A chunk is to be sent again on this path.
    pub(super) fn add_again(&mut self, tsn: Tsn) {
        self.unsorted |= self.again.back().is_some_and(|last| last.is_after(tsn));
        self.again.push_back(tsn);
        self.waiting += 1;
    }

    /// A chunk that was to be sent again need not be.
    pub(super) fn remove_again(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting == 0 {
            self.again.clear();
            self.unsorted = false;
        }
    }

    /// The first chunk that is to be sent again, without taking it.
    pub(super) fn first_again(&mut self, number: u8, chunks: &Outstanding) -> Option<Tsn> {
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
        self.waiting = 0;
        None
    }

    /// Takes the chunk that [`Self::first_again`] gave.
    pub(super) fn take_again(&mut self) {
        self.again.pop_front();
        self.remove_again();
    }

    /// Bounds what is remembered to about what is outstanding: a peer that takes back and
    /// acknowledges by turns makes entries over and over.
    pub(super) fn compact(&mut self, number: u8, chunks: &Outstanding, most: usize) {
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
}

/// Whether a chunk of the run is still under way in it.
fn is_under_way(run: &Run, number: u8, chunks: &Outstanding) -> bool {
    let last = run.first.plus(u32::from(run.count) - 1);
    if last.is_before(chunks.first()) {
        return false;
    }
    (0..u32::from(run.count)).any(|offset| {
        chunks.get(run.first.plus(offset)).is_some_and(|chunk| in_run(chunk, run, number))
    })
}

/// Whether a chunk is under way in this run, and not sent again since.
pub(super) fn in_run(chunk: &SentChunk, run: &Run, number: u8) -> bool {
    chunk.state == ChunkState::InFlight && chunk.flight == number && chunk.packet == run.packet
}
