//! Unpredictable numbers for nonces and jitter, derived from the association's seed.

use sha2::{Digest, Sha256};

/// Generates a sequence of numbers. Those that the peer has seen reveal nothing about the others:
/// otherwise it could answer heartbeats that it never received (RFC 9260 §5.4).
#[derive(Clone, Debug)]
pub(super) struct NonceGenerator {
    seed: [u8; 32],
    count: u64,
}

impl NonceGenerator {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self { seed, count: 0 }
    }

    /// Returns the next number.
    pub(super) fn number(&mut self) -> u64 {
        self.count = self.count.wrapping_add(1);
        // Fixed lengths throughout, so that nothing can be appended to the secret.
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(self.count.to_be_bytes());
        let digest = hash.finalize();
        digest.iter().take(8).fold(0, |number, octet| number << 8 | u64::from(*octet))
    }
}

#[cfg(test)]
mod tests {
    use super::NonceGenerator;

    #[test]
    fn numbers_differ_and_repeat_with_the_same_seed() {
        let (mut one, mut other) = (NonceGenerator::new([1; 32]), NonceGenerator::new([2; 32]));
        let first = one.number();
        assert_ne!(first, one.number());
        assert_ne!(first, other.number());
        assert_eq!(first, NonceGenerator::new([1; 32]).number());
    }
}
