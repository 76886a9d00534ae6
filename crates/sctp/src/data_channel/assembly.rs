//! Messages that arrive in parts: because the association had no room for the whole, or because an
//! old peer splits them itself (RFC 8831 §6.6, deprecated).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;

use super::payload::MessageKind;
use crate::identifier::{Ppid, StreamId};
use crate::message::Message;

/// The limit on stored parts, in messages of the maximum size.
const MAX_LARGEST: usize = 4;

/// An incomplete message.
#[derive(Debug, Default)]
struct PartialMessage {
    ppid: Ppid,
    pieces: Vec<Bytes>,
    bytes: usize,
}

/// The result of adding a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AssemblyResult {
    /// The message is complete; with its payload protocol identifier.
    Whole(Ppid, Bytes),
    /// More parts are missing.
    Waiting,
    /// It has no beginning, as that was dropped.
    Lost,
    /// The message is too large, or too many are incomplete.
    TooLarge,
}

/// All incomplete messages.
#[derive(Debug)]
pub(super) struct ChannelAssembly {
    /// By stream, whether they are unordered, and number.
    parts: BTreeMap<(StreamId, bool, u32), PartialMessage>,
    /// Messages that the peer split itself, by stream.
    chains: BTreeMap<StreamId, (MessageKind, PartialMessage)>,
    stored: usize,
    largest: usize,
}

impl ChannelAssembly {
    /// Creates an assembly for messages of up to `largest` bytes.
    pub(super) fn new(largest: usize) -> Self {
        Self { parts: BTreeMap::new(), chains: BTreeMap::new(), stored: 0, largest }
    }

    /// Adds a part that SCTP delivered; `largest` is the maximum length of its message.
    pub(super) fn add(&mut self, part: Message, largest: usize) -> AssemblyResult {
        let key = (part.stream, part.unordered, part.number);
        if part.begins {
            self.drop_parts(key);
            self.parts.insert(key, PartialMessage { ppid: part.ppid, ..PartialMessage::default() });
        }
        let Some(parts) = self.parts.get_mut(&key) else { return AssemblyResult::Lost };
        let (length, ends) = (part.len(), part.ends);
        if parts.bytes + length > largest || self.stored + length > self.largest * MAX_LARGEST {
            self.drop_parts(key);
            return AssemblyResult::TooLarge;
        }
        parts.pieces.extend(part.data.iter().cloned());
        parts.bytes += length;
        self.stored += length;
        if !ends {
            return AssemblyResult::Waiting;
        }
        self.drop_parts(key).map_or(AssemblyResult::Lost, |parts| {
            AssemblyResult::Whole(parts.ppid, parts.pieces.concat().into())
        })
    }

    /// Adds a part that the peer split itself; the last one completes the message.
    pub(super) fn chain(
        &mut self,
        id: StreamId,
        kind: MessageKind,
        piece: Bytes,
        ends: bool,
    ) -> Option<AssemblyResult> {
        if ends && !self.chains.contains_key(&id) {
            return None;
        }
        let (begun, parts) = self.chains.entry(id).or_insert((kind, PartialMessage::default()));
        let length = piece.len();
        let is_over = parts.bytes + length > self.largest
            || self.stored + length > self.largest * MAX_LARGEST;
        if is_over || *begun != kind {
            self.forget(id);
            return Some(AssemblyResult::TooLarge);
        }
        parts.pieces.push(piece);
        parts.bytes += length;
        self.stored += length;
        if !ends {
            return Some(AssemblyResult::Waiting);
        }
        let (_, parts) = self.chains.remove(&id)?;
        self.stored -= parts.bytes;
        Some(AssemblyResult::Whole(parts.ppid, parts.pieces.concat().into()))
    }

    /// Drops the incomplete messages of a stream.
    pub(super) fn forget(&mut self, id: StreamId) {
        let range = (id, false, 0)..=(id, true, u32::MAX);
        while let Some((&key, _)) = self.parts.range(range.clone()).next() {
            self.drop_parts(key);
        }
        if let Some((_, parts)) = self.chains.remove(&id) {
            self.stored -= parts.bytes;
        }
    }

    fn drop_parts(&mut self, key: (StreamId, bool, u32)) -> Option<PartialMessage> {
        let parts = self.parts.remove(&key)?;
        self.stored -= parts.bytes;
        Some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::{AssemblyResult, ChannelAssembly};
    use crate::data_channel::MessageKind;
    use crate::identifier::{Ppid, StreamId};
    use crate::message::Message;
    use crate::serial::Tsn;
    use bytes::Bytes;

    fn part(number: u32, begins: bool, ends: bool, data: &'static [u8]) -> Message {
        Message {
            stream: StreamId(1),
            ppid: Ppid(53),
            unordered: true,
            number,
            tsn: Tsn(0),
            begins,
            ends,
            data: Bytes::from_static(data).into(),
        }
    }

    #[test]
    fn parts_of_several_messages_do_not_mix() {
        let mut assembly = ChannelAssembly::new(100);
        assert_eq!(assembly.add(part(1, true, false, b"a"), 100), AssemblyResult::Waiting);
        assert_eq!(assembly.add(part(2, true, false, b"x"), 100), AssemblyResult::Waiting);
        assert_eq!(assembly.add(part(1, false, false, b"b"), 100), AssemblyResult::Waiting);
        let whole = |data: &'static [u8]| AssemblyResult::Whole(Ppid(53), Bytes::from_static(data));
        assert_eq!(assembly.add(part(2, false, true, b"y"), 100), whole(b"xy"));
        assert_eq!(assembly.add(part(1, false, true, b"c"), 100), whole(b"abc"));
        assert_eq!(assembly.add(part(1, false, true, b"c"), 100), AssemblyResult::Lost);
        assert_eq!(assembly.stored, 0);
    }

    #[test]
    fn the_stored_bytes_are_bounded() {
        let mut assembly = ChannelAssembly::new(3);
        assert_eq!(assembly.add(part(0, true, false, b"abcd"), 3), AssemblyResult::TooLarge);
        for number in 0..4 {
            assert_eq!(assembly.add(part(number, true, false, b"abc"), 3), AssemblyResult::Waiting);
        }
        assert_eq!(assembly.add(part(4, true, false, b"a"), 3), AssemblyResult::TooLarge);
        let id = StreamId(1);
        let chained = assembly.chain(id, MessageKind::Text, "a".into(), false);
        assert_eq!(chained, Some(AssemblyResult::TooLarge));
        assert_eq!(assembly.stored, 0, "the stream's parts are dropped");
    }

    #[test]
    fn a_message_split_by_the_peer_is_reassembled() {
        let mut assembly = ChannelAssembly::new(10);
        let id = StreamId(1);
        assert_eq!(assembly.chain(id, MessageKind::Text, "a".into(), true), None);
        assert_eq!(
            assembly.chain(id, MessageKind::Text, "a".into(), false),
            Some(AssemblyResult::Waiting)
        );
        let whole = AssemblyResult::Whole(Ppid(0), "ab".into());
        assert_eq!(assembly.chain(id, MessageKind::Text, "b".into(), true), Some(whole));
        assert_eq!(
            assembly.chain(id, MessageKind::Text, "a".into(), false),
            Some(AssemblyResult::Waiting)
        );
        let mixed = assembly.chain(id, MessageKind::Binary, "b".into(), true);
        assert_eq!(mixed, Some(AssemblyResult::TooLarge));
        assert_eq!(assembly.stored, 0);
    }
}
