//! Numbers that nobody can guess, for nonces and jitter, out of the seed of the association.

use sha2::{Digest, Sha256};

/// Gives one number after the other. Those that the peer has seen tell nothing of the others: it
/// could else answer heartbeats that it never got (RFC 9260 §5.4).
#[derive(Clone, Debug)]
pub(super) struct Draw {
    seed: [u8; 32],
    count: u64,
}

impl Draw {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self { seed, count: 0 }
    }

    /// The next number.
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
    use super::Draw;

    #[test]
    fn numbers_differ_and_repeat_with_the_same_seed() {
        let (mut one, mut other) = (Draw::new([1; 32]), Draw::new([2; 32]));
        let first = one.number();
        assert_ne!(first, one.number());
        assert_ne!(first, other.number());
        assert_eq!(first, Draw::new([1; 32]).number());
    }
}
