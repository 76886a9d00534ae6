//! A cap on what is under way on a path: what is beyond bandwidth and round trip only stands in a
//! queue, takes buffers at both ends, and makes what goes over the path later than what goes over
//! others.

/// How much may be under way on a path at most, by its estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlightCap {
    /// Percent of estimated bandwidth by least round trip; at least 100.
    pub percent: u16,
}

impl Default for FlightCap {
    fn default() -> Self {
        Self { percent: 110 }
    }
}
