//! What a client asks for, and what a server grants.

use std::time::Duration;

/// The most data streams of a test.
pub const MAX_STREAMS: u16 = 64;
/// The largest message, in bytes.
pub const MAX_SIZE: u32 = 1 << 20;
/// The shortest interval of a report.
pub const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// The most intervals of a test.
pub const MAX_INTERVALS: u128 = 100_000;
/// The longest time that a client can ask for.
pub const MAX_TIME: Duration = Duration::from_secs(7 * 86_400);

/// Which ends send data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum TestDirection {
    /// The client sends.
    #[default]
    Up = 0,
    /// The server sends.
    Down = 1,
    /// Both send at the same time.
    AtOnce = 2,
}

impl TestDirection {
    /// Returns whether the client sends data.
    pub const fn has_up(self) -> bool {
        matches!(self, Self::Up | Self::AtOnce)
    }

    /// Returns whether the server sends data.
    pub const fn has_down(self) -> bool {
        matches!(self, Self::Down | Self::AtOnce)
    }

    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::AtOnce => "at-once",
        }
    }
}

impl TryFrom<u8> for TestDirection {
    type Error = ();

    fn try_from(code: u8) -> Result<Self, ()> {
        [Self::Up, Self::Down, Self::AtOnce].get(usize::from(code)).copied().ok_or(())
    }
}

/// A test, as a client asks for it or as a server grants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestRequest {
    /// Which ends send.
    pub direction: TestDirection,
    /// The number of data streams, 1 to [`MAX_STREAMS`].
    pub streams: u16,
    /// For how long data is measured, after `omit`; whole microseconds.
    pub time: Duration,
    /// For how long data flows before it is measured, so that slow start does not count.
    pub omit: Duration,
    /// The length of the intervals that the time is divided into, at least [`MIN_INTERVAL`].
    pub interval: Duration,
    /// The number of messages in each direction, on all streams together; 0 sends for as long as `time` lasts. With a
    /// count, the test ends when all have arrived, or at the end of `time`.
    pub count: u64,
    /// The size of a message, 1 to [`MAX_SIZE`] bytes: what is passed to the transport at once.
    pub size: u32,
    /// The rate of data in each direction, all streams together, in bits per second; 0 does not limit it.
    pub rate: u64,
}

impl Default for TestRequest {
    /// Ten seconds of 128 KiB messages from the client on one stream, with intervals of one second.
    fn default() -> Self {
        Self {
            direction: TestDirection::Up,
            streams: 1,
            time: Duration::from_secs(10),
            omit: Duration::ZERO,
            interval: Duration::from_secs(1),
            count: 0,
            size: 128 * 1024,
            rate: 0,
        }
    }
}

/// Why a request cannot be a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The number of streams.
    #[error("a test has 1 to {MAX_STREAMS} streams")]
    Streams,
    /// The size of a message.
    #[error("a message has 1 to {MAX_SIZE} bytes")]
    Size,
    /// The time, or the time that is omitted.
    #[error("a test takes more than nothing and at most a week")]
    Time,
    /// The length of the intervals.
    #[error("an interval takes at least 10 ms, and a test has at most {MAX_INTERVALS} of them")]
    Interval,
}

impl TestRequest {
    /// Returns the request if it can be a test.
    ///
    /// # Errors
    /// Names the first value that is out of bounds.
    pub fn validated(self) -> Result<Self, RequestError> {
        let Self { streams, time, omit, interval, size, .. } = self;
        if streams == 0 || streams > MAX_STREAMS {
            return Err(RequestError::Streams);
        }
        if size == 0 || size > MAX_SIZE {
            return Err(RequestError::Size);
        }
        if time.is_zero() || time > MAX_TIME || omit > MAX_TIME {
            return Err(RequestError::Time);
        }
        if interval < MIN_INTERVAL || time.as_micros() / interval.as_micros() > MAX_INTERVALS {
            return Err(RequestError::Interval);
        }
        Ok(self)
    }

    /// Returns how long data flows.
    pub fn duration(&self) -> Duration {
        self.omit + self.time
    }

    /// Returns whether a server may grant this when `asked` was asked for: nothing is larger, and what is sent is the same.
    pub(crate) fn is_within(&self, asked: &Self) -> bool {
        let fewer_messages = match (self.count, asked.count) {
            (0, asked) => asked == 0,
            (_, 0) => false,
            (granted, asked) => granted <= asked,
        };
        self.direction == asked.direction
            && (self.streams, self.size, self.rate) == (asked.streams, asked.size, asked.rate)
            && self.time <= asked.time
            && self.omit <= asked.omit
            && self.interval <= asked.interval
            && fewer_messages
            && self.validated().is_ok()
    }
}

/// What a server allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// The most tests at once.
    pub tests: usize,
    /// The longest that data flows in one test, including what is omitted.
    pub time: Duration,
    /// The most bytes of data in each direction of one test.
    pub bytes: u64,
}

impl Default for ServerLimits {
    /// Four tests at once, each of at most 5 minutes and 64 GiB in each direction.
    fn default() -> Self {
        Self { tests: 4, time: Duration::from_secs(300), bytes: 64 << 30 }
    }
}

impl ServerLimits {
    /// Returns what is granted to a client that asks for this: no more time and messages than the limits allow.
    pub fn grant(&self, mut request: TestRequest) -> TestRequest {
        let limit = self.time.max(MIN_INTERVAL * 2);
        if request.duration() > limit {
            request.omit = request.omit.min(limit / 2);
            request.time = request.time.min(limit - request.omit);
        }
        request.interval = request.interval.min(request.time).max(MIN_INTERVAL);
        if request.count > 0 {
            let most = (self.bytes / u64::from(request.size)).max(1);
            request.count = request.count.min(most);
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_year_becomes_what_the_server_allows() {
        let limits = ServerLimits::default();
        let asked = TestRequest {
            time: Duration::from_secs(365 * 86_400),
            omit: Duration::from_secs(10),
            ..TestRequest::default()
        };
        assert_eq!(asked.validated(), Err(RequestError::Time));
        let granted = limits.grant(asked);
        assert_eq!(granted.duration(), limits.time);
        assert_eq!(granted.omit, asked.omit);
        let many = TestRequest { count: u64::MAX, ..TestRequest::default() };
        let granted = limits.grant(many);
        assert_eq!(granted.count * u64::from(granted.size), limits.bytes);
    }

    proptest! {
        #[test]
        fn what_is_granted_is_a_valid_part_of_what_was_asked(
            direction in 0_u8..3,
            streams in 1..=MAX_STREAMS,
            (time, omit, interval) in (1_u64..700_000_000_000, 0_u64..700_000_000_000, 10_000_u64..100_000_000_000),
            (count, size, rate) in (any::<u64>(), 1..=MAX_SIZE, any::<u64>()),
            (most_time, most_bytes) in (0_u64..1_000_000_000_000, any::<u64>()),
        ) {
            let micros = Duration::from_micros;
            let (time, omit, interval) = (micros(time), micros(omit), micros(interval));
            let direction = TestDirection::try_from(direction).unwrap();
            let asked = TestRequest { direction, streams, time, omit, interval, count, size, rate };
            let limits = ServerLimits { tests: 1, time: micros(most_time), bytes: most_bytes };
            let granted = limits.grant(asked);
            if let Ok(asked) = asked.validated() {
                prop_assert!(granted.is_within(&asked), "{granted:?}");
                prop_assert!(granted.duration() <= limits.time.max(MIN_INTERVAL * 2));
            }
        }
    }
}
