//! Which chunks must be authenticated.
//!
//! <https://www.rfc-editor.org/rfc/rfc4895#section-3.2>

use crate::wire::ChunkType;

/// A set of types of chunks, without those that no AUTH can precede.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkSet([u128; 2]);

impl ChunkSet {
    /// Chunks that come where there is no key yet, or no more, and AUTH itself: to list them means
    /// nothing.
    const NEVER: [ChunkType; 4] =
        [ChunkType::INIT, ChunkType::INIT_ACK, ChunkType::SHUTDOWN_COMPLETE, ChunkType::AUTH];

    /// The set that the bytes of a chunk list name.
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

    /// Whether this chunk must be authenticated.
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
