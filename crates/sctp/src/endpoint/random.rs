//! Unpredictable numbers, all derived from the seed: the same seed gives the same tags, TSNs and
//! keys in the same order.

use sha2::{Digest, Sha256};

/// The length of a SHA-256 output block.
const BLOCK: usize = 32;

/// SHA-256 over the seed and a counter.
#[derive(Clone)]
pub(crate) struct RandomBytes {
    seed: [u8; 32],
    counter: u64,
    block: [u8; BLOCK],
    used: usize,
}

impl core::fmt::Debug for RandomBytes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // The seed is a secret.
        f.debug_struct("RandomBytes").field("counter", &self.counter).finish_non_exhaustive()
    }
}

impl RandomBytes {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self { seed, counter: 0, block: [0; BLOCK], used: BLOCK }
    }

    /// Returns an independent generator.
    pub(crate) fn branch(&mut self) -> Self {
        let mut seed = [0; BLOCK];
        self.fill(&mut seed);
        Self::new(seed)
    }

    pub(crate) fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            if self.used == BLOCK {
                self.refill();
            }
            *byte = self.block[self.used];
            self.used += 1;
        }
    }

    pub(crate) fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        u32::from_be_bytes(bytes)
    }

    fn refill(&mut self) {
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(self.counter.to_be_bytes());
        self.block = hash.finalize().into();
        self.counter += 1;
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::RandomBytes;

    //= rfc9260 §5.3.1
    //# tags are random and never 0: SHA-256 over a secret seed
    #[test]
    fn the_same_seed_draws_the_same_numbers() {
        let (mut a, mut b) = (RandomBytes::new([7; 32]), RandomBytes::new([7; 32]));
        let first: [u32; 9] = core::array::from_fn(|_| a.next_u32());
        let second: [u32; 9] = core::array::from_fn(|_| b.next_u32());
        assert_eq!(first, second);
        assert!(first.windows(2).all(|pair| pair[0] != pair[1]));
        assert_ne!(RandomBytes::new([8; 32]).next_u32(), first[0]);
    }

    #[test]
    fn a_branch_is_independent() {
        let mut root = RandomBytes::new([1; 32]);
        let mut branch = root.branch();
        assert_ne!(root.next_u32(), branch.next_u32());
    }
}
