//! Random streams: one for each use of each entity, separated by their purpose.
//!
//! A stream is derived from the seed of the world and the number of its entity, never from another
//! stream, so that an additional link, or an additional loss on it, does not change the values of
//! any other.

use rand_pcg::{Pcg64Mcg, rand_core::Rng as _};

/// Derives a seed for entity number `entity` of kind `kind` from the common seed.
///
/// The seeds of hosts in an experiment can be derived the same way.
#[must_use]
pub const fn derive(seed: u64, kind: u64, entity: u64) -> u64 {
    mix(mix(mix(seed).wrapping_add(kind)).wrapping_add(entity))
}

/// One step of SplitMix64 (Steele, Lea, Flood 2014), which decorrelates neighbouring seeds.
const fn mix(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct RandomStream(Pcg64Mcg);

impl RandomStream {
    /// Creates the stream for this purpose of an entity.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let (high, low) = (derive(seed, purpose, 0), derive(seed, purpose, 1));
        Self(Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low)))
    }

    /// Returns a number from 0 up to, but not including, `bound`; 0 if that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product (Lemire 2019). Its bias, one in 2^64 / bound, does not
        // matter here, and every draw costs the same.
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number from 0 up to, but not including, 1, of 53 random bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Returns a number from the standard normal distribution (Box and Muller 1958, of whose two
    /// numbers one is used, so that every draw takes the same from the stream).
    pub(crate) fn normal(&mut self) -> f64 {
        // Above 0, which has no logarithm.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(core::f64::consts::TAU * self.unit())
    }

    /// Returns true with this probability. The probabilities 0 and 1 take no draw.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        probability >= 1.0 || self.unit() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_and_purpose_and_repeat() {
        let draw = |seed, purpose| RandomStream::new(seed, purpose).below(u64::MAX);
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
        assert_ne!(derive(1, 2, 3), derive(1, 3, 2));
    }

    #[test]
    fn draws_are_the_same_in_every_version() {
        let mut stream = RandomStream::new(7, 1);
        let draws = [stream.below(1000), stream.below(1000), stream.below(1000)];
        assert_eq!(draws, DRAWS);
    }

    /// Traces and published results depend on them: they change with the library, never silently.
    const DRAWS: [u64; 3] = [233, 320, 455];

    #[test]
    fn chances_match_their_probability() {
        let mut stream = RandomStream::new(3, 1);
        let hits = (0..100_000).filter(|_| stream.chance(0.1)).count();
        assert!((9_700..10_300).contains(&hits), "{hits}");
        assert!(!stream.chance(0.0) && stream.chance(1.0));
        assert_eq!(stream.below(0), 0);
        assert!((0..1000).all(|_| stream.below(3) < 3));
    }
}
