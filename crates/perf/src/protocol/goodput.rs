//! What a receiver has received, interval by interval.

use std::time::Duration;

use super::request::TestRequest;

/// What was received in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoodputInterval {
    /// When it began, from the begin of what is measured.
    pub start: Duration,
    /// Its length as it was measured; the last one may be shorter than the others.
    pub length: Duration,
    /// The bytes of data.
    pub bytes: u64,
}

impl GoodputInterval {
    /// Returns the rate in bits per second; `None` without a length.
    pub fn rate(&self) -> Option<f64> {
        rate(self.bytes, self.length)
    }
}

/// Returns the rate in bits per second; `None` without a length.
pub(crate) fn rate(bytes: u64, length: Duration) -> Option<f64> {
    (!length.is_zero()).then(|| bytes as f64 * 8.0 / length.as_secs_f64())
}

/// Divides what is received into intervals. What is measured begins with the first byte, or when the time that is
/// omitted has passed since then.
#[derive(Clone, Debug)]
pub struct GoodputMeter {
    omit: Duration,
    time: Duration,
    interval: Duration,
    first_byte: Option<Duration>,
    /// When what is measured began, and how much had been received by then.
    begin: Option<(Duration, u64)>,
    /// The end of the last interval, and how much had been received by then.
    mark: (Duration, u64),
    is_complete: bool,
}

impl GoodputMeter {
    /// Creates the meter of a test.
    pub fn new(request: &TestRequest) -> Self {
        Self {
            omit: request.omit,
            time: request.time,
            interval: request.interval,
            first_byte: None,
            begin: None,
            mark: (Duration::ZERO, 0),
            is_complete: false,
        }
    }

    /// Takes the number of bytes received so far, and returns the interval that is over by now. If this is called late, the
    /// interval is longer.
    pub fn advance(&mut self, now: Duration, received: u64) -> Option<GoodputInterval> {
        if self.is_complete || (received == 0 && self.first_byte.is_none()) {
            return None;
        }
        let first_byte = *self.first_byte.get_or_insert(now);
        let Some((begin, _)) = self.begin else {
            if now >= first_byte + self.omit {
                // Without anything omitted, the first bytes count.
                let before = if self.omit.is_zero() { 0 } else { received };
                self.begin = Some((now, before));
                self.mark = (now, before);
            }
            return None;
        };
        self.is_complete = now >= begin + self.time;
        (self.is_complete || now >= self.boundary(begin))
            .then(|| self.interval_until(now, received))
    }

    /// Ends what is measured, and returns the rest since the last interval.
    pub fn end(&mut self, now: Duration, received: u64) -> Option<GoodputInterval> {
        if std::mem::replace(&mut self.is_complete, true) {
            return None;
        }
        let has_more = self.begin.is_some() && (now > self.mark.0 || received > self.mark.1);
        has_more.then(|| self.interval_until(now, received))
    }

    /// Returns whether the time is over.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns when what is measured began; `None` before that.
    pub fn began(&self) -> Option<Duration> {
        self.begin.map(|(begin, _)| begin)
    }

    /// Returns the bytes and the time measured until the end of the last interval.
    pub fn measured(&self) -> (u64, Duration) {
        let Some((begin, before)) = self.begin else { return (0, Duration::ZERO) };
        (self.mark.1.saturating_sub(before), self.mark.0 - begin)
    }

    /// Returns when [`advance`](Self::advance) has something to do.
    pub fn next_timeout(&self) -> Option<Duration> {
        match (self.is_complete, self.begin) {
            (true, _) => None,
            (false, Some((begin, _))) => Some(self.boundary(begin).min(begin + self.time)),
            (false, None) => self.first_byte.map(|first| first + self.omit),
        }
    }

    /// Returns the end of the current interval: a multiple of the length, whenever earlier ones really ended.
    fn boundary(&self, begin: Duration) -> Duration {
        let length = self.interval.as_nanos().max(1);
        let number = (self.mark.0 - begin).as_nanos() / length + 1;
        let nanos = u64::try_from(number * length).unwrap_or(u64::MAX);
        begin + Duration::from_nanos(nanos)
    }

    fn interval_until(&mut self, now: Duration, received: u64) -> GoodputInterval {
        let (from, before) = std::mem::replace(&mut self.mark, (now, received));
        let begin = self.began().unwrap_or(from);
        GoodputInterval {
            start: from - begin,
            length: now - from,
            bytes: received.saturating_sub(before),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn meter(omit: u64, time: u64, interval: u64) -> GoodputMeter {
        let request = TestRequest {
            omit: millis(omit),
            time: millis(time),
            interval: millis(interval),
            ..TestRequest::default()
        };
        GoodputMeter::new(&request)
    }

    fn interval(start: u64, length: u64, bytes: u64) -> Option<GoodputInterval> {
        Some(GoodputInterval { start: millis(start), length: millis(length), bytes })
    }

    #[test]
    fn intervals_begin_with_the_first_byte() {
        let mut meter = meter(0, 250, 100);
        assert_eq!((meter.advance(millis(5), 0), meter.next_timeout()), (None, None));
        assert_eq!(meter.advance(millis(40), 10), None);
        assert_eq!(meter.next_timeout(), Some(millis(140)));
        assert_eq!(meter.advance(millis(140), 30), interval(0, 100, 30));
        // Called late, but the next one ends where it would have.
        assert_eq!(meter.advance(millis(255), 50), interval(100, 115, 20));
        assert_eq!(meter.next_timeout(), Some(millis(290)));
        assert_eq!(meter.advance(millis(290), 57), interval(215, 35, 7));
        assert!(meter.is_complete());
        assert_eq!((meter.advance(millis(400), 90), meter.end(millis(400), 90)), (None, None));
        assert_eq!(meter.measured(), (57, millis(250)));
    }

    #[test]
    fn what_is_omitted_does_not_count() {
        let mut meter = meter(50, 200, 100);
        assert_eq!(meter.advance(millis(10), 1_000), None);
        assert_eq!(meter.next_timeout(), Some(millis(60)));
        assert_eq!(meter.advance(millis(60), 5_000), None);
        assert_eq!(meter.advance(millis(160), 5_700), interval(0, 100, 700));
        assert_eq!(meter.end(millis(170), 5_701), interval(100, 10, 1));
        assert_eq!(meter.measured(), (701, millis(110)));
    }

    /// Found by the fuzzer: the meter then waited for a time that had passed.
    #[test]
    fn a_counter_that_falls_back_does_not_stop_the_time() {
        let mut meter = meter(50, 100, 100);
        assert_eq!(meter.advance(millis(10), 5), None);
        assert_eq!(meter.advance(millis(60), 0), None);
        assert_eq!(meter.next_timeout(), Some(millis(160)));
        assert_eq!(meter.advance(millis(160), 0), interval(0, 100, 0));
        assert!(meter.is_complete());
    }

    proptest! {
        /// Whenever it is called, the intervals are those bytes and that time, without a gap.
        #[test]
        fn intervals_add_up(
            steps in prop::collection::vec((0_u64..300, 0_u64..1_000), 1..60),
            (omit, time, length) in (0_u64..500, 1_u64..3_000, 10_u64..500),
        ) {
            let mut meter = meter(omit, time, length);
            let (mut now, mut received, mut intervals) = (0, 0, Vec::new());
            for (passed, bytes) in steps {
                now += passed;
                received += bytes;
                intervals.extend(meter.advance(millis(now), received));
            }
            intervals.extend(meter.end(millis(now), received));
            let (bytes, measured) = meter.measured();
            prop_assert_eq!(intervals.iter().map(|interval| interval.bytes).sum::<u64>(), bytes);
            prop_assert_eq!(intervals.iter().map(|interval| interval.length).sum::<Duration>(), measured);
            let mut end = Duration::ZERO;
            for interval in &intervals {
                prop_assert_eq!(interval.start, end);
                end += interval.length;
            }
            prop_assert!(bytes <= received);
        }
    }
}
