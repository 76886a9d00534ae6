//! Bit errors.

use alloc::vec::Vec;

use super::config::{BitErrorConfig, BitErrorEffect};
use crate::packet::LinkPacket;
use crate::random::RandomStream;

/// The result for a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BitErrorOutcome {
    Intact,
    Corrupted,
    Dropped,
}

/// Inverts random bits of `packet`, which takes `wire` bytes on the link including its framing.
pub(super) fn pass<P: LinkPacket>(
    config: &BitErrorConfig,
    random: &mut RandomStream,
    packet: &mut P,
    wire: usize,
) -> BitErrorOutcome {
    let errors = errors(config.probability, wire as u64 * 8, random);
    if errors == 0 {
        return BitErrorOutcome::Intact;
    }
    if config.effect == BitErrorEffect::Drop {
        return BitErrorOutcome::Dropped;
    }
    let payload_bits = (packet.len() - packet.header_len()) as u64 * 8;
    let other_bits = wire as u64 * 8 - payload_bits;
    let mut inverted = Vec::new();
    for _ in 0..errors {
        let bit = random.below(other_bits + payload_bits);
        match bit.checked_sub(other_bits) {
            None => return BitErrorOutcome::Dropped,
            Some(bit) => inverted.push(bit),
        }
    }
    packet.corrupt(&inverted);
    BitErrorOutcome::Corrupted
}

/// How many of `bits` are wrong: a draw from the binomial distribution, by inversion.
fn errors(probability: f64, bits: u64, random: &mut RandomStream) -> u64 {
    if probability <= 0.0 || bits == 0 {
        return 0;
    }
    let none = power(1.0 - probability, bits);
    let draw = random.unit();
    if draw < none {
        return 0;
    }
    if none < f64::MIN_POSITIVE {
        // So many that the exact number does not matter; use the mean.
        return ((bits as f64 * probability) as u64).clamp(1, bits);
    }
    let (mut number, mut term, mut sum) = (0, none, none);
    // Rounding may keep the sum below the draw; by then the terms have vanished.
    while draw >= sum && number < bits && term >= f64::MIN_POSITIVE {
        term *= (bits - number) as f64 / (number + 1) as f64 * probability / (1.0 - probability);
        number += 1;
        sum += term;
    }
    number
}

/// `base` to the power of `exponent`, by squaring, because `core` has no such function.
pub(super) fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::packet::Packet;

    #[test]
    fn the_share_of_wrong_bits_matches_the_probability() {
        let mut random = RandomStream::new(1, 1);
        for probability in [1e-5, 1e-3, 0.2] {
            let runs = if probability < 1e-4 { 20_000 } else { 500 };
            let all: u64 = (0..runs).map(|_| errors(probability, 12_000, &mut random)).sum();
            let wanted = probability * 12_000.0 * f64::from(runs);
            assert!((all as f64 / wanted - 1.0).abs() < 0.1, "{probability}: {all} of {wanted}");
        }
        assert_eq!(errors(1.0, 80, &mut random), 80);
        assert_eq!(errors(0.0, 80, &mut random), 0);
    }

    #[test]
    fn powers_of_a_probability() {
        assert_eq!(power(0.5, 0), 1.0);
        assert_eq!(power(0.5, 5), 0.031_25);
        assert_eq!(power(0.9, 1_000_000), 0.0);
    }

    #[test]
    fn wrong_bits_change_the_payload_and_nothing_else() {
        let config = BitErrorConfig { probability: 1e-4, effect: BitErrorEffect::Corrupt };
        let mut random = RandomStream::new(2, 1);
        let before = Packet {
            source: [192, 0, 2, 1].into(),
            destination: [192, 0, 2, 2].into(),
            protocol: 132,
            ecn: 0,
            dont_fragment: true,
            payload: Bytes::from_static(&[0; 1480]),
        };
        let mut seen = [0; 3];
        for _ in 0..1000 {
            let mut packet = before.clone();
            match pass(&config, &mut random, &mut packet, 1500) {
                BitErrorOutcome::Intact => seen[0] += u32::from(packet == before),
                BitErrorOutcome::Corrupted => {
                    assert_eq!(packet.payload.len(), 1480);
                    seen[1] += u32::from(packet.payload.iter().any(|octet| *octet != 0));
                }
                BitErrorOutcome::Dropped => seen[2] += 1,
            }
        }
        assert!(seen[0] > 200 && seen[1] > 500 && (1..50).contains(&seen[2]), "{seen:?}");
    }
}
