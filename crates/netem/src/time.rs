//! Internal times: whole nanoseconds in 64 bits, sufficient for 584 years.

use core::time::Duration;

/// Nanoseconds of one second.
const SECOND: u64 = 1_000_000_000;

/// Nanoseconds since the epoch of the caller.
pub(crate) type EpochNanos = u64;

/// Converts `time` to nanoseconds, saturating.
pub(crate) const fn nanos(time: Duration) -> EpochNanos {
    let whole = time.as_secs().saturating_mul(SECOND);
    whole.saturating_add(time.subsec_nanos() as u64)
}

/// The transmission time of `bytes` at `rate` bit/s, rounded up, so that no rate is ever exceeded.
pub(crate) const fn transmission(bytes: u64, rate: u64) -> EpochNanos {
    match bytes.checked_mul(8 * SECOND) {
        Some(bits) => bits.div_ceil(rate),
        None => {
            let time = (bytes as u128 * (8 * SECOND as u128)).div_ceil(rate as u128);
            if time > u64::MAX as u128 { u64::MAX } else { time as u64 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_1500_bytes_takes_1200_microseconds_at_10_megabit() {
        assert_eq!(transmission(1500, 10_000_000), 1_200_000);
        assert_eq!(transmission(1, 3), 2_666_666_667);
        assert_eq!(transmission(u64::MAX, 1), u64::MAX);
        assert_eq!(transmission(u64::MAX, u64::MAX), 8 * SECOND);
    }

    #[test]
    fn durations_saturate() {
        assert_eq!(nanos(Duration::new(2, 7)), 2_000_000_007);
        assert_eq!(nanos(Duration::MAX), u64::MAX);
    }
}
