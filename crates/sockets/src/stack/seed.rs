//! The secret of a stack, and what is drawn from it.

/// The seed of a stack, with the count of what was drawn from it. It never appears in a debug output.
pub(super) struct StackSeed {
    secret: [u8; 32],
    drawn: u64,
}

impl core::fmt::Debug for StackSeed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("StackSeed").field("drawn", &self.drawn).finish_non_exhaustive()
    }
}

impl StackSeed {
    pub(super) fn new(secret: [u8; 32]) -> Self {
        Self { secret, drawn: 0 }
    }

    /// Returns a number for purposes that need no secrecy.
    pub(super) fn draw_number(&mut self) -> u64 {
        self.drawn += 1;
        let key = self.secret.iter().fold(0u64, |key, byte| key.rotate_left(7) ^ u64::from(*byte));
        // splitmix64.
        let mixed = key.wrapping_add(self.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a unique seed for an endpoint: the stack's own, combined with a counter. Endpoints
    /// derive from it by a one-way function.
    pub(super) fn draw(&mut self) -> [u8; 32] {
        self.drawn += 1;
        let mut seed = self.secret;
        for (byte, count) in seed.iter_mut().zip(self.drawn.to_le_bytes()) {
            *byte ^= count;
        }
        seed
    }

    /// Returns a hash that others cannot predict, to continue with [`hashed`].
    pub(super) fn hash(&self) -> u64 {
        hashed(BASIS, &self.secret)
    }
}

/// The hash of 64 bits (FNV-1a).
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Adds bytes to a hash.
pub(super) fn hashed(start: u64, bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    // Also spread the last bytes over the high bits, by which hashes are compared.
    (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_unique_and_the_secret_is_not_shown() {
        let mut seed = StackSeed::new([0xa5; 32]);
        assert_ne!(seed.draw(), seed.draw());
        assert_ne!(seed.draw_number(), seed.draw_number());
        assert_eq!(alloc::format!("{seed:?}"), "StackSeed { drawn: 4, .. }");
        assert_ne!(seed.hash(), StackSeed::new([0xa4; 32]).hash());
    }
}
