//! The set of chunks that must be authenticated.
//!
//! <https://www.rfc-editor.org/rfc/rfc4895#section-3.2>

use crate::wire::ChunkType;

/// A set of chunk types, without those that AUTH cannot precede.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkSet([u128; 2]);

impl ChunkSet {
    /// Chunks that are sent when there are no keys, and AUTH itself: listing them has no effect.
    const NEVER: [ChunkType; 4] =
        [ChunkType::INIT, ChunkType::INIT_ACK, ChunkType::SHUTDOWN_COMPLETE, ChunkType::AUTH];

    /// Parses the bytes of a chunk list.
    #[must_use]
    pub fn from_list(list: &[u8]) -> Self {
        let mut set = Self::default();
        for number in list {
            set.insert(ChunkType(*number));
        }
        set
    }

    fn insert(&mut self, chunk_type: ChunkType) {
        if !Self::NEVER.contains(&chunk_type) {
            self.0[usize::from(chunk_type.0 >> 7)] |= bit(chunk_type);
        }
    }

    /// Returns whether this chunk must be authenticated.
    #[must_use]
    pub const fn contains(&self, chunk_type: ChunkType) -> bool {
        self.0[(chunk_type.0 >> 7) as usize] & bit(chunk_type) != 0
    }
}

const fn bit(chunk_type: ChunkType) -> u128 {
    1 << (chunk_type.0 & 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn listed_types_are_contained(list: Vec<u8>, number: u8) {
            let set = ChunkSet::from_list(&list);
            let listed = list.contains(&number) && ![1, 2, 14, 15].contains(&number);
            prop_assert_eq!(set.contains(ChunkType(number)), listed);
        }
    }
}
