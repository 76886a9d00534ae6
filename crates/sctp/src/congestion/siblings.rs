//! What a coupled controller knows about the other paths of its association.

/// All paths that carry data together, and the rank of one of them. Windows are in bytes of user
/// data; RTTs are smoothed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiblingPaths {
    /// The number of paths with data, including this one.
    pub paths: usize,
    /// The sum of their congestion windows.
    pub windows: usize,
    /// The sum of their slow-start thresholds; a path without one counts with its window.
    pub slow_start_thresholds: usize,
    /// The sum of window / RTT, in bytes per second.
    pub rates: u64,
    /// The largest window / RTT², in bytes per second squared.
    pub largest_window_per_rtt_squared: u128,
    /// The path's own slow-start threshold; its window while it has none.
    pub own_slow_start_threshold: usize,
    /// The path's own window / RTT, in bytes per second; 0 while the RTT is unknown.
    pub own_rate: u64,
    /// The path's own window / RTT².
    pub own_window_per_rtt_squared: u128,
    /// The path's membership in OLIA's sets.
    pub standing: PathStanding,
    /// The number of paths with the largest window (`max_w_paths`).
    pub largest: usize,
    /// The number of best paths without the largest window (`collected_paths`).
    pub collected: usize,
}

/// OLIA's classification of a path (Khalili et al. 2012, §IV).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathStanding {
    /// It has the largest window.
    Largest,
    /// It is one of the best paths without the largest window.
    Collected,
    /// Neither.
    #[default]
    Other,
}

/// One path, as an input of [`SiblingPaths::new`].
#[derive(Clone, Copy, Debug)]
pub struct SiblingPath {
    /// Congestion window, in bytes.
    pub window: usize,
    /// The largest packet, in bytes: windows that differ by less are as large as each other.
    pub mtu: usize,
    /// Slow-start threshold, in bytes; `usize::MAX` without one.
    pub slow_start_threshold: usize,
    /// Smoothed RTT in nanoseconds; 0 while unknown.
    pub smoothed_rtt: u64,
    /// Bytes acknowledged between two losses (`l_r`).
    pub loss_interval: u64,
}

const SECOND: u128 = 1_000_000_000;

impl SiblingPath {
    fn slow_start_threshold(&self) -> usize {
        if self.slow_start_threshold == usize::MAX {
            self.window
        } else {
            self.slow_start_threshold
        }
    }

    fn rate(&self) -> u64 {
        per_round_trip(self.window as u64, self.smoothed_rtt)
            .map_or(0, |rate| u64::try_from(rate).unwrap_or(u64::MAX))
    }

    fn window_per_rtt_squared(&self) -> u128 {
        per_round_trip(self.window as u64, self.smoothed_rtt)
            .map_or(0, |rate| rate.saturating_mul(SECOND) / u128::from(self.smoothed_rtt))
    }

    /// Returns the square of the rate that one TCP flow would have on the path, up to a factor:
    /// OLIA's quality of a path, `l_r / rtt_r²`. This follows the paper and the authors' code for
    /// Linux; their draft has `l_r² / rtt_r`, which prefers long paths.
    fn quality(&self) -> u128 {
        per_round_trip(self.loss_interval, self.smoothed_rtt)
            .map_or(0, |rate| rate.saturating_mul(SECOND) / u128::from(self.smoothed_rtt))
    }
}

/// Bytes a second.
fn per_round_trip(bytes: u64, rtt: u64) -> Option<u128> {
    (rtt != 0).then(|| u128::from(bytes) * SECOND / u128::from(rtt))
}

impl SiblingPaths {
    /// Returns the view of `own` on all paths that carry data, including `own`.
    pub fn new(own: &SiblingPath, all: impl Iterator<Item = SiblingPath> + Clone) -> Self {
        let mut siblings = Self {
            own_slow_start_threshold: own.slow_start_threshold(),
            own_rate: own.rate(),
            own_window_per_rtt_squared: own.window_per_rtt_squared(),
            ..Self::default()
        };
        let (mut largest_window, mut best) = (0, 0);
        for member in all.clone() {
            siblings.paths += 1;
            siblings.windows = siblings.windows.saturating_add(member.window);
            siblings.slow_start_thresholds =
                siblings.slow_start_thresholds.saturating_add(member.slow_start_threshold());
            siblings.rates = siblings.rates.saturating_add(member.rate());
            siblings.largest_window_per_rtt_squared =
                siblings.largest_window_per_rtt_squared.max(member.window_per_rtt_squared());
            largest_window = largest_window.max(member.window);
            best = best.max(member.quality());
        }
        let standing = |member: &SiblingPath| {
            if member.window.saturating_add(member.mtu) > largest_window {
                PathStanding::Largest
            } else if member.quality() >= best {
                PathStanding::Collected
            } else {
                PathStanding::Other
            }
        };
        for member in all {
            match standing(&member) {
                PathStanding::Largest => siblings.largest += 1,
                PathStanding::Collected => siblings.collected += 1,
                PathStanding::Other => {}
            }
        }
        siblings.standing = standing(own);
        siblings
    }

    /// `amount` × own rate / all rates, rounded up; an equal share while the round trip is unknown.
    pub(super) fn share_by_rate(&self, amount: usize) -> usize {
        if self.own_rate == 0 || self.rates == 0 {
            return amount.div_ceil(self.paths.max(1));
        }
        scale_up(amount, self.own_rate.into(), self.rates.into())
    }

    /// `amount` × own slow-start threshold / all of them, rounded up.
    pub(super) fn share_by_threshold(&self, amount: usize) -> usize {
        let (own, all) = (self.own_slow_start_threshold, self.slow_start_thresholds);
        if all == 0 { amount } else { scale_up(amount, own as u128, all as u128) }
    }
}

fn scale_up(amount: usize, numerator: u128, denominator: u128) -> usize {
    let scaled = (amount as u128).saturating_mul(numerator).div_ceil(denominator);
    usize::try_from(scaled).unwrap_or(usize::MAX).min(amount)
}

#[cfg(test)]
mod tests;
