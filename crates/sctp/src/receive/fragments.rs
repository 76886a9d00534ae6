//! Reassembly of DATA chunks by TSN (RFC 9260 §6.9).
//!
//! The fragments of a message have consecutive TSNs, so they are stored as runs. A run that has no
//! beginning, or that ends before the next one begins, is next to TSNs that have not arrived: there
//! are at most two runs for each gap, and once everything before a run has arrived it must have a
//! beginning.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;

use super::delivery::ReadyMessage;
use super::dropped::DroppedMessage;
use super::part::{FragmentContradiction, MessagePart};
use super::tracking::tsn_at;
use super::{MessageNumber, TsnPosition};
use crate::identifier::{Ppid, StreamId};
use crate::message::{Message, MessagePieces};
use crate::wire::{DataChunk, DataOrder};

/// Fragments with consecutive TSNs of one message.
#[derive(Debug)]
struct FragmentRun {
    /// The position of the first fragment, delivered ones included.
    first: TsnPosition,
    last: TsnPosition,
    stream: StreamId,
    ppid: Ppid,
    number: MessageNumber,
    begins: bool,
    ends: bool,
    /// Whether a part of it has been delivered.
    partial: bool,
    pieces: VecDeque<Bytes>,
    bytes: usize,
    borrowed: usize,
}

impl FragmentRun {
    fn new(position: TsnPosition, chunk: &DataChunk, number: MessageNumber) -> Self {
        Self {
            first: position,
            last: position,
            stream: chunk.stream,
            ppid: chunk.ppid,
            number,
            begins: chunk.flags.begin,
            ends: chunk.flags.end,
            partial: false,
            pieces: VecDeque::new(),
            bytes: 0,
            borrowed: 0,
        }
    }

    fn push(&mut self, piece: Bytes, borrowed: bool) {
        self.bytes += piece.len();
        self.borrowed += usize::from(borrowed);
        self.pieces.push_back(piece);
    }

    /// Returns whether `chunk` can continue the same message.
    fn continues_with(&self, chunk: &DataChunk, number: MessageNumber) -> bool {
        !self.ends && !chunk.flags.begin && self.stream == chunk.stream && self.number == number
    }

    fn append(&mut self, next: Self) {
        self.last = next.last;
        self.ends = next.ends;
        self.bytes += next.bytes;
        self.borrowed += next.borrowed;
        self.pieces.extend(next.pieces);
    }

    /// Prepends `previous` to this run, at the cost of its pieces only.
    fn prepend(&mut self, previous: Self) {
        self.first = previous.first;
        self.begins = previous.begins;
        self.partial = previous.partial;
        self.ppid = previous.ppid;
        self.bytes += previous.bytes;
        self.borrowed += previous.borrowed;
        previous.pieces.into_iter().rev().for_each(|piece| self.pieces.push_front(piece));
    }

    /// Removes and returns the undelivered part of the message.
    fn remove_part(&mut self) -> MessagePart {
        let begins = !self.partial;
        let first = self.last + 1 - self.pieces.len() as TsnPosition;
        let pieces = Vec::from(core::mem::take(&mut self.pieces));
        self.partial = true;
        self.bytes = 0;
        MessagePart {
            ready: ReadyMessage {
                message: Message {
                    stream: self.stream,
                    ppid: self.ppid,
                    unordered: self.number == MessageNumber::Unordered,
                    number: self.number_in_message(),
                    tsn: tsn_at(first),
                    begins,
                    ends: self.ends,
                    data: MessagePieces::from(pieces),
                },
                tsns: Vec::new(),
            },
            borrowed: core::mem::take(&mut self.borrowed),
            number: self.number,
        }
    }

    /// Unordered messages have no number; their first TSN distinguishes them.
    fn number_in_message(&self) -> u32 {
        match self.number {
            MessageNumber::Ssn(ssn) => u32::from(ssn.0),
            MessageNumber::Mid(mid) => mid.0,
            MessageNumber::Unordered => tsn_at(self.first).0,
        }
    }
}

impl From<FragmentRun> for DroppedMessage {
    fn from(run: FragmentRun) -> Self {
        Self {
            stream: run.stream,
            unordered: run.number == MessageNumber::Unordered,
            number: run.number_in_message(),
            bytes: run.bytes,
            chunks: run.pieces.len(),
            messages: 0,
            borrowed: run.borrowed,
            partial: run.partial,
        }
    }
}

/// All runs.
#[derive(Debug, Default)]
pub(crate) struct FragmentRuns {
    /// The run that grows while nothing is missing: fragments are appended without a search.
    current: Option<FragmentRun>,
    /// Other runs, by the position of their first fragment.
    runs: BTreeMap<TsnPosition, FragmentRun>,
    /// The fragments after this position without a beginning belong to an abandoned message.
    stranded: Option<TsnPosition>,
}

/// Returns the sequence number of `chunk`'s message.
pub(crate) fn number_of(chunk: &DataChunk) -> MessageNumber {
    match chunk.order {
        _ if chunk.flags.unordered => MessageNumber::Unordered,
        DataOrder::Ssn(ssn) => MessageNumber::Ssn(ssn),
        DataOrder::Mid { mid, .. } => MessageNumber::Mid(mid),
    }
}

impl FragmentRuns {
    /// Returns whether no fragments are stored.
    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_none() && self.runs.is_empty()
    }

    /// Adds a fragment and puts what it makes deliverable into `part`: the rest of a message that is
    /// now complete, or a part of one for which `deliver_partially` returns true, given its stream,
    /// its number and its stored bytes.
    pub(crate) fn insert(
        &mut self,
        position: TsnPosition,
        chunk: &DataChunk,
        (piece, borrowed): (Bytes, bool),
        deliver_partially: impl FnOnce(StreamId, MessageNumber, usize) -> bool,
        part: &mut Option<MessagePart>,
    ) -> Result<(), FragmentContradiction> {
        let number = number_of(chunk);
        if self.runs.is_empty() {
            match &mut self.current {
                Some(run) if run.last + 1 == position && run.continues_with(chunk, number) => {
                    run.last = position;
                    run.ends = chunk.flags.end;
                    run.push(piece, borrowed);
                    self.take_current(deliver_partially, part);
                    return Ok(());
                }
                None if chunk.flags.begin => {
                    let run = self.current.insert(FragmentRun::new(position, chunk, number));
                    run.push(piece, borrowed);
                    self.take_current(deliver_partially, part);
                    return Ok(());
                }
                _ => {}
            }
        }
        if let Some(run) = self.current.take() {
            self.runs.insert(run.first, run);
        }
        let mut run = FragmentRun::new(position, chunk, number);
        run.push(piece, borrowed);
        let run = self.join_neighbours(run, chunk)?;
        let first = run.first;
        let begins = run.begins && !run.ends && !run.partial;
        let wanted = begins
            && deliver_partially(run.stream, run.number, run.bytes)
            && !(run.number == MessageNumber::Unordered && self.is_open(run.stream));
        let run = self.runs.entry(first).or_insert(run);
        take_deliverable(run, |_, _, _| wanted, part);
        if run.begins && run.ends {
            self.runs.remove(&first);
        }
        Ok(())
    }

    /// Returns whether an unordered message on this stream is partly delivered. Parts of another
    /// one have to wait until that ends, as nothing would distinguish them.
    fn is_open(&self, stream: StreamId) -> bool {
        let all = self.current.iter().chain(self.runs.values());
        let mut open = all.filter(|run| run.partial && run.number == MessageNumber::Unordered);
        open.any(|run| run.stream == stream)
    }

    fn take_current(
        &mut self,
        deliver_partially: impl FnOnce(StreamId, MessageNumber, usize) -> bool,
        part: &mut Option<MessagePart>,
    ) {
        let Some(run) = &mut self.current else { return };
        take_deliverable(run, deliver_partially, part);
        if run.begins && run.ends {
            self.current = None;
        }
    }

    /// Joins a run of one fragment with the runs before and after it, unless they contradict it.
    fn join_neighbours(
        &mut self,
        mut run: FragmentRun,
        chunk: &DataChunk,
    ) -> Result<FragmentRun, FragmentContradiction> {
        let before =
            self.runs.range(..run.first).next_back().map(|(first, run)| (*first, run.last));
        if let Some((first, _)) = before.filter(|(_, last)| last + 1 == run.first)
            && let Some(mut previous) = self.runs.remove(&first)
        {
            if previous.continues_with(chunk, run.number) {
                previous.append(run);
                run = previous;
            } else {
                let fits = previous.ends && chunk.flags.begin;
                self.runs.insert(first, previous);
                if !fits {
                    return Err(FragmentContradiction);
                }
            }
        }
        if let Some(next) = self.runs.remove(&(run.last + 1)) {
            let same = run.stream == next.stream && run.number == next.number;
            if !run.ends && !next.begins && same {
                next.prepend_or_append(&mut run);
            } else {
                let fits = run.ends && next.begins;
                self.runs.insert(next.first, next);
                if !fits {
                    return Err(FragmentContradiction);
                }
            }
        }
        Ok(run)
    }

    /// Returns the available beginning of each message for which `deliver_partially` returns true.
    pub(crate) fn take_partial(
        &mut self,
        mut deliver_partially: impl FnMut(StreamId, MessageNumber) -> bool,
    ) -> Vec<MessagePart> {
        let all = self.current.iter().chain(self.runs.values());
        let mut open: BTreeSet<StreamId> = all
            .filter(|run| run.partial && run.number == MessageNumber::Unordered)
            .map(|run| run.stream)
            .collect();
        let mut may_begin = |run: &FragmentRun| {
            deliver_partially(run.stream, run.number)
                && (run.number != MessageNumber::Unordered || open.insert(run.stream))
        };
        self.current
            .iter_mut()
            .chain(self.runs.values_mut())
            .filter(|run| run.begins && !run.pieces.is_empty())
            .filter(|run| run.partial || may_begin(run))
            .map(FragmentRun::remove_part)
            .collect()
    }

    /// Returns whether [`Self::drop_stranded`] could find something.
    #[inline]
    pub(crate) fn may_strand(&self, cumulative: TsnPosition) -> bool {
        !self.runs.is_empty() || self.current.as_ref().is_some_and(|run| run.last < cumulative)
    }

    /// Checks the runs at the cumulative position after an advance: a run below it that has not
    /// been joined never will be. Drops those of abandoned messages.
    pub(crate) fn drop_stranded(
        &mut self,
        cumulative: TsnPosition,
        mut dropped: impl FnMut(DroppedMessage),
    ) -> Result<(), FragmentContradiction> {
        if self.current.as_ref().is_some_and(|run| run.last < cumulative) {
            return Err(FragmentContradiction);
        }
        while let Some(entry) = self.runs.first_entry() {
            let run = entry.get();
            if run.first > cumulative + 1 {
                break;
            }
            if run.begins {
                // It is incomplete, so it must continue with data that has not arrived.
                return if run.last < cumulative { Err(FragmentContradiction) } else { Ok(()) };
            }
            if self.stranded.is_none_or(|stranded| stranded + 1 != run.first) {
                return Err(FragmentContradiction);
            }
            let run = entry.remove();
            self.stranded = (!run.ends).then_some(run.last);
            dropped(run.into());
        }
        Ok(())
    }

    /// Drops incomplete messages up to `position` that the peer abandoned (RFC 3758 §3.6).
    pub(crate) fn skip_to(
        &mut self,
        position: TsnPosition,
        mut dropped: impl FnMut(DroppedMessage),
    ) {
        self.stranded = Some(position);
        if let Some(run) = self.current.take() {
            self.runs.insert(run.first, run);
        }
        while let Some(entry) = self.runs.first_entry().filter(|entry| *entry.key() <= position) {
            let run = entry.remove();
            if run.last >= position {
                self.stranded = (!run.ends).then_some(run.last);
            }
            dropped(run.into());
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self, mut dropped: impl FnMut(DroppedMessage)) {
        let current = self.current.take();
        let runs = core::mem::take(&mut self.runs);
        current.into_iter().chain(runs.into_values()).for_each(|run| dropped(run.into()));
        self.stranded = None;
    }
}

impl FragmentRun {
    /// Joins this run, which follows `before`, into `before`, moving the pieces of the shorter one.
    fn prepend_or_append(mut self, before: &mut Self) {
        if before.pieces.len() >= self.pieces.len() {
            before.append(self);
        } else {
            let mut taken = Self { pieces: VecDeque::new(), ..*before };
            core::mem::swap(&mut taken.pieces, &mut before.pieces);
            self.prepend(taken);
            *before = self;
        }
    }
}

/// Puts what of `run` can be delivered into `part`.
fn take_deliverable(
    run: &mut FragmentRun,
    deliver_partially: impl FnOnce(StreamId, MessageNumber, usize) -> bool,
    part: &mut Option<MessagePart>,
) {
    if run.begins
        && (run.ends || run.partial || deliver_partially(run.stream, run.number, run.bytes))
    {
        *part = Some(run.remove_part());
    }
}
