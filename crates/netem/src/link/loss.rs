//! Losses on the wire: independent, bursty, or by a list.

use alloc::vec::Vec;

use super::config::{GilbertElliott, LossConfig};
use crate::random::RandomStream;

/// The state of a loss model.
#[derive(Clone, Debug)]
pub(super) struct LinkLoss {
    model: LossState,
}

#[derive(Clone, Debug)]
enum LossState {
    None,
    Probability(f64),
    GilbertElliott {
        config: GilbertElliott,
        bad: bool,
    },
    /// Sorted; those before `next` have been passed.
    List {
        lost: Vec<u64>,
        next: usize,
        seen: u64,
    },
}

impl LinkLoss {
    pub(super) fn new(config: LossConfig) -> Self {
        let model = match config {
            LossConfig::None => LossState::None,
            LossConfig::Probability(probability) => LossState::Probability(probability),
            LossConfig::GilbertElliott(config) => LossState::GilbertElliott { config, bad: false },
            LossConfig::List(mut lost) => {
                lost.sort_unstable();
                lost.dedup();
                LossState::List { lost, next: 0, seen: 0 }
            }
        };
        Self { model }
    }

    /// Returns whether the next packet is lost.
    pub(super) fn next(&mut self, random: &mut RandomStream) -> bool {
        match &mut self.model {
            LossState::None => false,
            LossState::Probability(probability) => random.chance(*probability),
            LossState::GilbertElliott { config, bad } => {
                let transition = if *bad { config.to_good } else { config.to_bad };
                *bad ^= random.chance(transition);
                random.chance(if *bad { config.loss_bad } else { config.loss_good })
            }
            LossState::List { lost, next, seen } => {
                let is_lost = lost.get(*next) == Some(seen);
                *next += usize::from(is_lost);
                *seen += 1;
                is_lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn losses(config: LossConfig, packets: usize) -> Vec<bool> {
        let (mut loss, mut random) = (LinkLoss::new(config), RandomStream::new(1, 1));
        (0..packets).map(|_| loss.next(&mut random)).collect()
    }

    #[test]
    fn a_list_names_the_lost_packets() {
        let lost = losses(LossConfig::List(vec![4, 0, 4, 1]), 6);
        assert_eq!(lost, [true, true, false, false, true, false]);
    }

    #[test]
    fn bursts_have_the_length_and_share_of_the_model() {
        let config = GilbertElliott { to_bad: 0.01, to_good: 0.2, loss_good: 0.0, loss_bad: 1.0 };
        let lost = losses(LossConfig::GilbertElliott(config), 200_000);
        let number = lost.iter().filter(|lost| **lost).count() as f64;
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // In the long run the link is bad for to_bad / (to_bad + to_good) of the packets.
        assert!((number / 200_000.0 - 0.01 / 0.21).abs() < 0.004, "{number}");
        assert!((number / bursts - 5.0).abs() < 0.3, "{}", number / bursts);
    }

    #[test]
    fn a_link_without_losses_loses_nothing() {
        assert!(!losses(LossConfig::None, 10).contains(&true));
        assert!(!losses(LossConfig::Probability(0.0), 10).contains(&true));
        assert!(!losses(LossConfig::Probability(1.0), 10).contains(&false));
    }
}
