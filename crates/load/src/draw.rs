//! The random choices for a request: whether the memory knows the outcome, which outcome, which
//! object. Each has its own random stream, so that an additional object does not change the hits.

use eyas_netem::random::derive;
use rand_pcg::{Pcg64Mcg, rand_core::Rng as _};

/// The purpose of a random stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum StreamPurpose {
    Gaps = 1,
    Hits = 2,
    Outcomes = 3,
    Objects = 4,
}

/// A random stream.
#[derive(Clone, Debug)]
pub(super) struct DrawStream(Pcg64Mcg);

impl DrawStream {
    pub(super) fn new(seed: u64, purpose: StreamPurpose) -> Self {
        let half = |number| u128::from(derive(seed, purpose as u64, number));
        Self(Pcg64Mcg::new(half(0) << 64 | half(1)))
    }

    /// Returns a number in [0, 1), from 53 random bits.
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Returns an exponentially distributed number with mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Returns an integer in [0, `bound`); 0 if `bound` is 0.
    fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.0.next_u64()) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }
}

/// The random choices for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestDraw {
    /// Whether the memory is made to know the outcome.
    pub is_hit: bool,
    /// The index of its outcome.
    pub outcome: usize,
    /// The index of its object.
    pub object: usize,
}

/// The random choices of consecutive requests.
#[derive(Clone, Debug)]
pub struct RequestDraws {
    hit_rate: f64,
    outcomes: usize,
    objects: usize,
    streams: [DrawStream; 3],
}

impl RequestDraws {
    /// Creates choices with the probability of a hit, and uniformly distributed outcomes and
    /// objects.
    pub fn new(hit_rate: f64, outcomes: usize, objects: usize, seed: u64) -> Self {
        let streams = [StreamPurpose::Hits, StreamPurpose::Outcomes, StreamPurpose::Objects];
        let streams = streams.map(|purpose| DrawStream::new(seed, purpose));
        Self { hit_rate, outcomes, objects, streams }
    }
}

impl Iterator for RequestDraws {
    type Item = RequestDraw;

    fn next(&mut self) -> Option<RequestDraw> {
        let [hits, outcomes, objects] = &mut self.streams;
        Some(RequestDraw {
            is_hit: hits.unit() < self.hit_rate,
            outcome: outcomes.below(self.outcomes),
            object: objects.below(self.objects),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 100_000;

    fn hits(rate: f64) -> usize {
        RequestDraws::new(rate, 2, 1, 5).take(MANY).filter(|draw| draw.is_hit).count()
    }

    #[test]
    fn hits_occur_at_the_configured_rate() {
        assert_eq!((hits(0.0), hits(1.0)), (0, MANY));
        // Five standard deviations: 5 √(n p (1 - p)).
        assert!(hits(0.8).abs_diff(80_000) < 633, "{}", hits(0.8));
    }

    #[test]
    fn outcomes_are_equally_likely_and_independent_of_hits() {
        let draws: Vec<RequestDraw> = RequestDraws::new(0.5, 2, 3, 9).take(MANY).collect();
        let first = draws.iter().filter(|draw| draw.outcome == 0).count();
        let both = draws.iter().filter(|draw| draw.outcome == 0 && draw.is_hit).count();
        let object = draws.iter().filter(|draw| draw.object == 2).count();
        assert!(first.abs_diff(50_000) < 791, "{first}");
        assert!(both.abs_diff(25_000) < 685, "{both}");
        assert!(object.abs_diff(33_333) < 746, "{object}");
    }

    #[test]
    fn an_additional_object_does_not_change_the_hits() {
        let hits = |objects| RequestDraws::new(0.3, 2, objects, 4).take(50).map(|draw| draw.is_hit);
        assert!(hits(1).eq(hits(7)));
    }
}
