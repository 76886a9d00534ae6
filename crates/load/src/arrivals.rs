//! The arrival times of requests: a pure function of the rate, the spacing and the seed.
//!
//! The arrivals with a rate `λ(t)` are those of a process of rate 1, transformed by the inverse of
//! `Λ(t) = ∫λ`: equal gaps give constant arrivals, exponential gaps a Poisson process, even for a
//! changing rate (Çinlar 1975, "Introduction to Stochastic Processes", §4.7).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::draw::{DrawStream, StreamPurpose};

/// The spacing of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalSpacing {
    /// Exponentially distributed gaps, as from independent users.
    Poisson,
    /// Equal gaps.
    Constant,
}

/// The rate of arrivals per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalRate {
    /// A constant rate.
    Fixed(f64),
    /// A linear change from one rate to another, which then stays constant.
    Ramp {
        /// The initial rate.
        from: f64,
        /// The final rate.
        to: f64,
        /// The duration of the change.
        over: Duration,
    },
}

impl ArrivalRate {
    /// Returns whether the rate is positive and finite.
    pub fn is_usable(self) -> bool {
        let fits = |rate: f64| rate.is_finite() && rate >= 0.0;
        match self {
            Self::Fixed(rate) => fits(rate) && rate > 0.0,
            Self::Ramp { from, to, over } => {
                fits(from) && fits(to) && from + to > 0.0 && !over.is_zero()
            }
        }
    }

    /// Returns when this number of arrivals is expected (`Λ⁻¹`), in seconds; `None` if the rate
    /// drops to 0 before.
    fn time_of(self, count: f64) -> Option<f64> {
        let at = |count: f64, rate: f64| (rate > 0.0).then(|| count / rate);
        match self {
            Self::Fixed(rate) => at(count, rate),
            Self::Ramp { from, to, over } => {
                let over = over.as_secs_f64();
                let during_ramp = over * (from + to) / 2.0;
                if count > during_ramp {
                    return Some(over + at(count - during_ramp, to)?);
                }
                // The root of a quadratic, in a form that loses no precision when the ramp is flat.
                let root = (from * from + 2.0 * count * (to - from) / over).max(0.0).sqrt();
                if count == 0.0 { Some(0.0) } else { at(2.0 * count, from + root) }
            }
        }
    }
}

/// The arrival process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalProcess {
    /// The spacing.
    pub spacing: ArrivalSpacing,
    /// The rate.
    pub rate: ArrivalRate,
}

impl ArrivalProcess {
    /// Returns a Poisson process with this rate per second.
    pub const fn poisson(rate: f64) -> Self {
        Self { spacing: ArrivalSpacing::Poisson, rate: ArrivalRate::Fixed(rate) }
    }

    /// Returns constant arrivals with this rate per second.
    pub const fn constant(rate: f64) -> Self {
        Self { spacing: ArrivalSpacing::Constant, rate: ArrivalRate::Fixed(rate) }
    }
}

/// When arrivals end: whichever limit is reached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadExtent {
    /// The duration.
    pub duration: Option<Duration>,
    /// The maximum number of requests.
    pub requests: Option<u64>,
}

impl LoadExtent {
    /// Returns a limit by duration.
    pub const fn lasting(duration: Duration) -> Self {
        Self { duration: Some(duration), requests: None }
    }

    /// Returns a limit by number of requests.
    pub const fn from_requests(requests: u64) -> Self {
        Self { duration: None, requests: Some(requests) }
    }
}

/// The arrival times since the start, in order.
#[derive(Clone, Debug)]
pub struct ArrivalSchedule {
    arrivals: ArrivalProcess,
    extent: LoadExtent,
    gaps: DrawStream,
    /// The arrivals so far, of the process of rate 1.
    count: f64,
    returned: u64,
}

impl ArrivalSchedule {
    /// Creates a schedule. The same seed gives the same schedule.
    pub fn new(arrivals: ArrivalProcess, extent: LoadExtent, seed: u64) -> Self {
        let gaps = DrawStream::new(seed, StreamPurpose::Gaps);
        Self { arrivals, extent, gaps, count: 0.0, returned: 0 }
    }
}

impl Iterator for ArrivalSchedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.extent.requests.is_some_and(|limit| self.returned >= limit) {
            return None;
        }
        match self.arrivals.spacing {
            ArrivalSpacing::Poisson => self.count += self.gaps.exponential(),
            ArrivalSpacing::Constant => self.count = self.returned as f64,
        }
        let at = Duration::try_from_secs_f64(self.arrivals.rate.time_of(self.count)?).ok()?;
        if self.extent.duration.is_some_and(|end| at >= end) {
            return None;
        }
        self.returned += 1;
        Some(at)
    }
}

#[cfg(test)]
mod tests;
