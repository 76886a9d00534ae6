//! Reassembly of fragments from DATA or I-DATA chunks.

use alloc::vec::Vec;
use bytes::Bytes;

use super::dropped::DroppedMessage;
use super::fragments::FragmentRuns;
use super::interleaved::{InterleavedKey, InterleavedMessages};
use super::part::{FragmentContradiction, MessagePart};
use super::streams::MessagePlace;
use super::{MessageNumber, TsnPosition};
use crate::identifier::StreamId;
use crate::serial::Mid;
use crate::wire::{DataChunk, DataOrder};

/// Half of the number space: numbers further back than that are ahead (RFC 1982).
const HALF: u64 = 1 << 31;

/// Incomplete messages.
#[derive(Debug)]
pub(crate) enum MessageReassembly {
    /// DATA chunks.
    Consecutive(FragmentRuns),
    /// I-DATA chunks.
    Interleaved(InterleavedMessages),
}

impl MessageReassembly {
    /// `nr_sack`: whether the TSNs of delivered messages are needed.
    pub(crate) fn new(interleaving: bool, nr_sack: bool) -> Self {
        if interleaving {
            Self::Interleaved(InterleavedMessages::new(nr_sack))
        } else {
            Self::Consecutive(FragmentRuns::default())
        }
    }

    /// Returns whether I-DATA is used.
    #[inline]
    pub(crate) fn is_interleaved(&self) -> bool {
        matches!(self, Self::Interleaved(_))
    }

    /// Returns whether no fragments are stored.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Consecutive(fragments) => fragments.is_empty(),
            Self::Interleaved(messages) => messages.is_empty(),
        }
    }

    /// Returns the number of messages that take memory of their own.
    #[inline]
    pub(crate) fn messages(&self) -> usize {
        match self {
            Self::Consecutive(_) => 0,
            Self::Interleaved(messages) => messages.len(),
        }
    }

    /// Returns whether an ordered message of `stream` is incomplete, as far as that is known by
    /// stream.
    pub(crate) fn is_open(&self, stream: StreamId) -> bool {
        match self {
            Self::Consecutive(_) => false,
            Self::Interleaved(messages) => messages.is_open(stream),
        }
    }

    /// Returns whether a message that is complete in one chunk contradicts stored fragments of it.
    /// Contradictions among DATA chunks are detected by TSN.
    #[inline]
    pub(crate) fn contradicts(&self, number: u64, chunk: &DataChunk) -> bool {
        match self {
            Self::Consecutive(_) => false,
            Self::Interleaved(messages) if messages.is_empty() => false,
            Self::Interleaved(messages) => {
                let place = MessagePlace::new(chunk.stream, number);
                messages.contains(InterleavedKey { unordered: chunk.flags.unordered, place })
            }
        }
    }

    /// Adds a fragment of the message with the non-wrapping number `number`. See
    /// [`FragmentRuns::insert`].
    pub(crate) fn insert(
        &mut self,
        number: u64,
        position: TsnPosition,
        chunk: &DataChunk,
        data: (Bytes, bool),
        deliver_partially: impl FnOnce(StreamId, MessageNumber, usize) -> bool,
        part: &mut Option<MessagePart>,
    ) -> Result<(), FragmentContradiction> {
        match (self, chunk.order) {
            (Self::Consecutive(fragments), DataOrder::Ssn(_)) => {
                fragments.insert(position, chunk, data, deliver_partially, part)
            }
            (Self::Interleaved(messages), DataOrder::Mid { fsn, .. }) => {
                let place = MessagePlace::new(chunk.stream, number);
                let key = InterleavedKey { unordered: chunk.flags.unordered, place };
                messages.insert((key, fsn), position, chunk, data, deliver_partially, part)
            }
            _ => Err(FragmentContradiction),
        }
    }

    /// Returns the available beginning of each message for which `deliver_partially` returns true.
    pub(crate) fn take_partial(
        &mut self,
        deliver_partially: impl FnMut(StreamId, MessageNumber) -> bool,
    ) -> Vec<MessagePart> {
        match self {
            Self::Consecutive(fragments) => fragments.take_partial(deliver_partially),
            Self::Interleaved(messages) => messages.take_partial(deliver_partially),
        }
    }

    /// Returns whether [`Self::drop_stranded`] could find something while the peer abandons no data:
    /// never as long as fragments arrive in order.
    #[inline]
    pub(crate) fn may_strand(&self, cumulative: TsnPosition) -> bool {
        match self {
            Self::Consecutive(fragments) => fragments.may_strand(cumulative),
            Self::Interleaved(messages) => messages.may_strand(),
        }
    }

    /// Drops messages that can no longer complete, now that everything up to `cumulative` has
    /// arrived or was abandoned; `may_strand`: whether the peer has ever abandoned data.
    pub(crate) fn drop_stranded(
        &mut self,
        cumulative: TsnPosition,
        may_strand: bool,
        dropped: &mut Vec<DroppedMessage>,
    ) -> Result<(), FragmentContradiction> {
        match self {
            Self::Consecutive(fragments) => {
                fragments.drop_stranded(cumulative, |one| dropped.push(one))
            }
            Self::Interleaved(messages) => {
                messages.drop_stranded(cumulative, may_strand, |one| dropped.push(one))
            }
        }
    }

    /// Drops incomplete messages up to `position` that the peer abandoned (RFC 3758 §3.6). With
    /// I-DATA, the peer names the messages instead.
    pub(crate) fn skip_to(&mut self, position: TsnPosition, dropped: &mut Vec<DroppedMessage>) {
        if let Self::Consecutive(fragments) = self {
            fragments.skip_to(position, |one| dropped.push(one));
        }
    }

    /// Drops the ordered I-DATA messages of `stream` up to `number` that the peer abandoned.
    pub(crate) fn skip_ordered(
        &mut self,
        stream: StreamId,
        number: u64,
        dropped: &mut Vec<DroppedMessage>,
    ) {
        if let Self::Interleaved(messages) = self {
            let key = |number| InterleavedKey {
                unordered: false,
                place: MessagePlace::new(stream, number),
            };
            messages.skip(key(0), key(number), |one| dropped.push(one));
        }
    }

    /// Drops the unordered I-DATA messages of `stream` up to `mid` that the peer abandoned.
    pub(crate) fn skip_unordered(
        &mut self,
        stream: StreamId,
        mid: Mid,
        dropped: &mut Vec<DroppedMessage>,
    ) {
        if let Self::Interleaved(messages) = self {
            let key = |number| InterleavedKey {
                unordered: true,
                place: MessagePlace::new(stream, number),
            };
            let to = u64::from(mid.0);
            let mut skip = |from, to| messages.skip(key(from), key(to), |one| dropped.push(one));
            skip((to + 1).saturating_sub(HALF), to);
            if to + 1 < HALF {
                skip(to + 1 + HALF, u64::from(u32::MAX));
            }
        }
    }

    /// Drops the fragments of `streams`, or all if the list is empty.
    pub(crate) fn reset(&mut self, streams: &[StreamId], dropped: &mut Vec<DroppedMessage>) {
        match self {
            _ if streams.is_empty() => self.clear(dropped),
            Self::Consecutive(_) => {}
            Self::Interleaved(messages) => {
                for stream in streams {
                    for unordered in [false, true] {
                        let key = |number| InterleavedKey {
                            unordered,
                            place: MessagePlace::new(*stream, number),
                        };
                        messages.skip(key(0), key(u64::MAX), |one| dropped.push(one));
                    }
                }
            }
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self, dropped: &mut Vec<DroppedMessage>) {
        match self {
            Self::Consecutive(fragments) => fragments.clear(|one| dropped.push(one)),
            Self::Interleaved(messages) => messages.clear(|one| dropped.push(one)),
        }
    }
}
