//! Reassembly of I-DATA chunks by their numbers (RFC 8260 §2.2.3).
//!
//! Fragments state their message and their position in it, and those of several messages may be
//! interleaved. The fragments of a message have ascending TSNs, so once everything up to a fragment
//! has arrived, the ones before it must have arrived too.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

use super::delivery::ReadyMessage;
use super::dropped::DroppedMessage;
use super::part::{FragmentContradiction, MessagePart};
use super::streams::MessagePlace;
use super::tracking::tsn_at;
use super::{MessageNumber, TsnPosition};
use crate::identifier::{Ppid, StreamId};
use crate::message::{Message, MessagePieces};
use crate::serial::Mid;
use crate::wire::DataChunk;

/// Identifies an incomplete message. Unordered messages have numbers of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InterleavedKey {
    pub(crate) unordered: bool,
    /// The stream and the number, which does not wrap for ordered messages.
    pub(crate) place: MessagePlace,
}

impl InterleavedKey {
    fn number(self) -> MessageNumber {
        let mid = Mid(self.place.number() as u32);
        if self.unordered { MessageNumber::Unordered } else { MessageNumber::Mid(mid) }
    }
}

/// A fragment that arrived before an earlier one of its message.
#[derive(Debug)]
struct AheadFragment {
    position: TsnPosition,
    piece: Bytes,
    borrowed: bool,
}

/// An incomplete message.
#[derive(Debug, Default)]
struct InterleavedMessage {
    ppid: Ppid,
    /// The number of the first fragment that is missing.
    next: u32,
    /// The number of the last fragment, once that is known.
    end: Option<u32>,
    /// Whether a part of it has been delivered.
    partial: bool,
    /// All undelivered fragments before `next`.
    pieces: Vec<Bytes>,
    /// Their positions; only the first one if the others are not needed.
    positions: Vec<TsnPosition>,
    bytes: usize,
    borrowed: usize,
    ahead: BTreeMap<u32, AheadFragment>,
}

impl InterleavedMessage {
    fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.next > end)
    }

    /// Returns whether a fragment can belong to this message.
    fn accepts(&self, fsn: u32, ends: bool) -> bool {
        let beyond = match self.end {
            Some(end) => ends || fsn > end,
            None => ends && self.ahead.last_key_value().is_some_and(|(last, _)| *last > fsn),
        };
        fsn >= self.next && fsn < u32::MAX && !beyond && !self.ahead.contains_key(&fsn)
    }

    fn push(&mut self, position: TsnPosition, piece: Bytes, borrowed: bool, all_positions: bool) {
        if all_positions || self.pieces.is_empty() {
            self.positions.push(position);
        }
        self.bytes += piece.len();
        self.borrowed += usize::from(borrowed);
        self.pieces.push(piece);
        self.next += 1;
    }

    /// Removes and returns the undelivered part of the message.
    fn remove_part(&mut self, key: InterleavedKey, all_positions: bool) -> MessagePart {
        let pieces = core::mem::take(&mut self.pieces);
        let positions = core::mem::take(&mut self.positions);
        let tsn = tsn_at(positions.first().copied().unwrap_or_default());
        let wanted = if all_positions { positions.as_slice() } else { &[] };
        let tsns = wanted.iter().map(|position| tsn_at(*position)).collect();
        let begins = !core::mem::replace(&mut self.partial, true);
        self.bytes = 0;
        MessagePart {
            ready: ReadyMessage {
                message: Message {
                    stream: key.place.stream(),
                    ppid: self.ppid,
                    unordered: key.unordered,
                    number: key.place.number() as u32,
                    tsn,
                    begins,
                    ends: self.is_complete(),
                    data: MessagePieces::from(pieces),
                },
                tsns,
            },
            borrowed: core::mem::take(&mut self.borrowed),
            number: key.number(),
        }
    }

    fn into_dropped(self, key: InterleavedKey) -> DroppedMessage {
        let ahead = self.ahead.values();
        DroppedMessage {
            stream: key.place.stream(),
            unordered: key.unordered,
            number: key.place.number() as u32,
            bytes: self.bytes + ahead.clone().map(|ahead| ahead.piece.len()).sum::<usize>(),
            chunks: self.pieces.len() + self.ahead.len(),
            messages: 1,
            borrowed: self.borrowed + ahead.filter(|ahead| ahead.borrowed).count(),
            partial: self.partial,
        }
    }
}

/// All incomplete messages.
#[derive(Debug)]
pub(crate) struct InterleavedMessages {
    /// The message of the last fragment: the next one is found without a search.
    current: Option<(InterleavedKey, InterleavedMessage)>,
    others: BTreeMap<InterleavedKey, InterleavedMessage>,
    /// Fragments after a missing one, by position.
    ahead: BTreeMap<TsnPosition, InterleavedKey>,
    all_positions: bool,
}

impl InterleavedMessages {
    /// `all_positions`: whether the TSNs of all fragments are stored.
    pub(crate) fn new(all_positions: bool) -> Self {
        Self { current: None, others: BTreeMap::new(), ahead: BTreeMap::new(), all_positions }
    }

    /// Returns whether no fragments are stored.
    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_none() && self.others.is_empty()
    }

    /// Returns whether an ordered message of `stream` is incomplete.
    pub(crate) fn is_open(&self, stream: StreamId) -> bool {
        let key =
            |number| InterleavedKey { unordered: false, place: MessagePlace::new(stream, number) };
        let is_current = |(key, _): &(InterleavedKey, InterleavedMessage)| {
            !key.unordered && key.place.stream() == stream
        };
        self.current.as_ref().is_some_and(is_current)
            || self.others.range(key(0)..=key(u64::MAX)).next().is_some()
    }

    /// Returns whether fragments of the message with `key` are stored.
    pub(crate) fn contains(&self, key: InterleavedKey) -> bool {
        self.current.as_ref().is_some_and(|(current, _)| *current == key)
            || self.others.contains_key(&key)
    }

    /// Returns the number of incomplete messages.
    pub(crate) fn len(&self) -> usize {
        self.others.len() + usize::from(self.current.is_some())
    }

    /// Adds a fragment and puts what it makes deliverable into `part`: the rest of a message that is
    /// now complete, or a part of one for which `deliver_partially` returns true, given its stream,
    /// its number and its stored bytes.
    // A message is changed where it is, and a part, which few fragments make deliverable, is not
    // returned: moving either costs more than everything else here.
    pub(crate) fn insert(
        &mut self,
        (key, fsn): (InterleavedKey, u32),
        position: TsnPosition,
        chunk: &DataChunk,
        (piece, borrowed): (Bytes, bool),
        deliver_partially: impl FnOnce(StreamId, MessageNumber, usize) -> bool,
        part: &mut Option<MessagePart>,
    ) -> Result<(), FragmentContradiction> {
        self.make_current(key);
        let Some((_, assembly)) = &mut self.current else { return Err(FragmentContradiction) };
        if !assembly.accepts(fsn, chunk.flags.end) || chunk.flags.begin != (fsn == 0) {
            return Err(FragmentContradiction);
        }
        if chunk.flags.begin {
            assembly.ppid = chunk.ppid;
        }
        if chunk.flags.end {
            assembly.end = Some(fsn);
        }
        if fsn != assembly.next {
            self.ahead.insert(position, key);
            assembly.ahead.insert(fsn, AheadFragment { position, piece, borrowed });
            return Ok(());
        }
        assembly.push(position, piece, borrowed, self.all_positions);
        while !assembly.ahead.is_empty()
            && let Some(ahead) = assembly.ahead.remove(&assembly.next)
        {
            self.ahead.remove(&ahead.position);
            assembly.push(ahead.position, ahead.piece, ahead.borrowed, self.all_positions);
        }
        let whole = assembly.is_complete();
        if whole
            || assembly.partial
            || deliver_partially(chunk.stream, key.number(), assembly.bytes)
        {
            *part = Some(assembly.remove_part(key, self.all_positions));
        }
        if whole {
            self.current = None;
        }
        Ok(())
    }

    /// Makes the message with `key` the current one; it is new if nothing of it is stored.
    #[inline]
    fn make_current(&mut self, key: InterleavedKey) {
        if self.current.as_ref().is_some_and(|(current, _)| *current == key) {
            return;
        }
        if let Some((former, assembly)) = self.current.take() {
            self.others.insert(former, assembly);
        }
        let known = if self.others.is_empty() { None } else { self.others.remove(&key) };
        self.current = Some((key, known.unwrap_or_default()));
    }

    /// Returns the available beginning of each message for which `deliver_partially` returns true.
    pub(crate) fn take_partial(
        &mut self,
        mut deliver_partially: impl FnMut(StreamId, MessageNumber) -> bool,
    ) -> Vec<MessagePart> {
        let current = self.current.iter_mut().map(|(key, assembly)| (&*key, assembly));
        current
            .chain(self.others.iter_mut())
            .filter(|(_, assembly)| !assembly.pieces.is_empty())
            .filter(|(key, assembly)| {
                assembly.partial || deliver_partially(key.place.stream(), key.number())
            })
            .map(|(key, assembly)| assembly.remove_part(*key, self.all_positions))
            .collect()
    }

    /// Returns whether [`Self::drop_stranded`] could find something.
    #[inline]
    pub(crate) fn may_strand(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Checks the fragments up to the cumulative position after an advance: those missing before
    /// them will not arrive. They are dropped if `may_strand`, as the peer may have abandoned the
    /// message; otherwise it violated the protocol.
    pub(crate) fn drop_stranded(
        &mut self,
        cumulative: TsnPosition,
        may_strand: bool,
        mut dropped: impl FnMut(DroppedMessage),
    ) -> Result<(), FragmentContradiction> {
        while let Some(entry) = self.ahead.first_entry().filter(|entry| *entry.key() <= cumulative)
        {
            if !may_strand {
                return Err(FragmentContradiction);
            }
            let key = entry.remove();
            self.drop_message(key, &mut dropped);
        }
        Ok(())
    }

    fn drop_message(&mut self, key: InterleavedKey, dropped: &mut impl FnMut(DroppedMessage)) {
        let assembly = match self.current.take() {
            Some((current, assembly)) if current == key => Some(assembly),
            other => {
                self.current = other;
                self.others.remove(&key)
            }
        };
        let Some(assembly) = assembly else { return };
        assembly.ahead.values().for_each(|ahead| {
            self.ahead.remove(&ahead.position);
        });
        dropped(assembly.into_dropped(key));
    }

    /// Drops the incomplete messages from `from` to `to` that the peer abandoned.
    pub(crate) fn skip(
        &mut self,
        from: InterleavedKey,
        to: InterleavedKey,
        mut dropped: impl FnMut(DroppedMessage),
    ) {
        if let Some((key, assembly)) = self.current.take() {
            self.others.insert(key, assembly);
        }
        while let Some((&key, _)) = self.others.range(from..=to).next() {
            self.drop_message(key, &mut dropped);
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self, mut dropped: impl FnMut(DroppedMessage)) {
        let current = self.current.take();
        let others = core::mem::take(&mut self.others);
        current.into_iter().chain(others).for_each(|(key, assembly)| {
            dropped(assembly.into_dropped(key));
        });
        self.ahead.clear();
    }
}
