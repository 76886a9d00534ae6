//! A recorded rate: when a link could deliver a packet, as mahimahi's trace files say.

use alloc::sync::Arc;
use core::fmt;

use crate::time::EpochNanos;

/// The bytes that one opportunity delivers: mahimahi's 1,504 with the 4 that its devices put before
/// each IP packet.
const OPPORTUNITY: usize = 1500;
/// Nanoseconds of a millisecond, the resolution of a trace.
const MILLISECOND: EpochNanos = 1_000_000;
/// The maximum number of opportunities of a trace, which bounds its memory: more than two hours at
/// 12 Gbit/s per 1,000 seconds would need.
pub const MAX_OPPORTUNITIES: usize = 1 << 24;

/// The times at which a link can deliver 1,500 bytes, repeated when they are over.
///
/// Several small packets fit into one opportunity, if they are waiting then; a large packet takes
/// several. Clones share their memory.
#[derive(Clone, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Milliseconds since the beginning, never going back. The last one, above 0, is the period.
    times: Arc<[u32]>,
}

/// The text is not a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The number of the line, from 1 on; `None` for the file as a whole.
    pub line: Option<usize>,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.reason),
            None => f.write_str(self.reason),
        }
    }
}

impl core::error::Error for TraceError {}

impl fmt::Debug for DeliveryTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, period) = (self.times.len(), self.period() / MILLISECOND);
        write!(f, "DeliveryTrace({count} opportunities in {period} ms)")
    }
}

impl DeliveryTrace {
    /// Parses a trace: one number of milliseconds per line and opportunity.
    ///
    /// # Errors
    /// The first line that is no number or goes back, or that there is nothing to repeat.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times = alloc::vec::Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let refused = |reason| TraceError { line: Some(number), reason };
            let time: u32 = line
                .trim()
                .parse()
                .map_err(|_| refused("not a time in milliseconds, such as 17"))?;
            if times.last().is_some_and(|last| *last > time) {
                return Err(refused("earlier than the line before"));
            }
            if times.len() >= MAX_OPPORTUNITIES {
                return Err(refused("more lines than a trace may have"));
            }
            times.push(time);
        }
        match times.last() {
            None => Err(TraceError { line: None, reason: "there are no lines" }),
            Some(0) => Err(TraceError {
                line: Some(times.len()),
                reason: "the last time is when the trace begins again, and must be above 0",
            }),
            Some(_) => Ok(Self { times: times.into() }),
        }
    }

    /// Returns the average rate in bit/s, at least 1.
    #[must_use]
    pub fn rate(&self) -> u64 {
        let bits = self.times.len() as u128 * (OPPORTUNITY * 8) as u128;
        ((bits * 1_000_000_000 / u128::from(self.period())) as u64).max(1)
    }

    /// Returns the times of the opportunities, in milliseconds.
    pub fn times(&self) -> impl Iterator<Item = u32> + '_ {
        self.times.iter().copied()
    }

    fn period(&self) -> EpochNanos {
        self.times.last().map_or(1, |last| EpochNanos::from(*last)) * MILLISECOND
    }

    /// Returns the number of the first opportunity at this time or later, since the beginning.
    fn first_from(&self, time: EpochNanos) -> u64 {
        let milliseconds = time.div_ceil(MILLISECOND);
        let period = self.period() / MILLISECOND;
        // The end of one period is the beginning of the next: opportunities there count for the
        // former and come first.
        let rounds = milliseconds.saturating_sub(1) / period;
        let within = milliseconds - rounds * period;
        let place = self.times.partition_point(|time| u64::from(*time) < within);
        rounds * self.times.len() as u64 + place as u64
    }

    fn time_of(&self, opportunity: u64) -> EpochNanos {
        let count = self.times.len() as u64;
        let time = EpochNanos::from(self.times[(opportunity % count) as usize]) * MILLISECOND;
        (opportunity / count).saturating_mul(self.period()).saturating_add(time)
    }
}

/// The opportunities that a link has used.
#[derive(Clone, Debug)]
pub(super) struct TracePlayback {
    trace: DeliveryTrace,
    /// When the trace began.
    origin: EpochNanos,
    /// The next opportunity.
    next: u64,
    /// When the last one was, and what is left of it.
    last: EpochNanos,
    left: usize,
}

impl TracePlayback {
    pub(super) const fn new(trace: DeliveryTrace, origin: EpochNanos) -> Self {
        Self { trace, origin, next: 0, last: 0, left: 0 }
    }

    pub(super) const fn trace(&self) -> &DeliveryTrace {
        &self.trace
    }

    /// Returns when a packet that takes this many bytes, and waits from `start` on, has been sent.
    pub(super) fn send(&mut self, start: EpochNanos, bytes: usize) -> EpochNanos {
        // An opportunity is lost unless a packet is waiting then.
        if start > self.last {
            self.left = 0;
        }
        let mut needed = bytes.saturating_sub(self.left);
        self.left -= bytes.min(self.left);
        let mut end = start;
        if needed > 0 {
            self.next = self.next.max(self.trace.first_from(start.saturating_sub(self.origin)));
        }
        while needed > 0 {
            end = self.origin.saturating_add(self.trace.time_of(self.next)).max(start);
            self.next += 1;
            self.last = end;
            self.left = OPPORTUNITY.saturating_sub(needed);
            needed = needed.saturating_sub(OPPORTUNITY);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: EpochNanos = MILLISECOND;

    #[test]
    fn mistakes_name_their_line() {
        let cases = [
            ("", "there are no lines"),
            ("1\n2\nx\n4", "line 3: not a time in milliseconds, such as 17"),
            ("1\n\n2", "line 2: not a time in milliseconds, such as 17"),
            ("1\n-2", "line 2: not a time in milliseconds, such as 17"),
            ("5000000000", "line 1: not a time in milliseconds, such as 17"),
            ("1.5", "line 1: not a time in milliseconds, such as 17"),
            ("3\n7\n6", "line 3: earlier than the line before"),
            ("0\n0", "line 2: the last time is when the trace begins again, and must be above 0"),
        ];
        for (text, wanted) in cases {
            assert_eq!(DeliveryTrace::parse(text).unwrap_err().to_string(), wanted, "{text:?}");
        }
        assert!(DeliveryTrace::parse(" 1 \r\n2\r\n").is_ok());
    }

    #[test]
    fn packets_leave_at_opportunities() {
        let trace = DeliveryTrace::parse("2\n2\n5\n10").unwrap();
        assert_eq!(trace.rate(), 4 * 12_000 * 100);
        let mut playback = TracePlayback::new(trace, 100 * MS);
        // Two at 2 ms; the first of the next period comes 2 ms after its beginning at 10 ms.
        let ends = [(0, 1500), (0, 1500), (102, 1500), (105, 1500), (110, 1500), (112, 1500)]
            .map(|(start, bytes)| playback.send(start * MS, bytes) / MS);
        assert_eq!(ends, [102, 102, 105, 110, 112, 112]);
        // After a pause, in which opportunities are lost.
        assert_eq!(playback.send(1_000_107 * MS, 1500) / MS, 1_000_110);
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let mut playback = TracePlayback::new(DeliveryTrace::parse("1\n2\n3\n4").unwrap(), 0);
        let ends = [(0, 700), (MS, 700), (MS, 700), (2 * MS, 2000), (3 * MS, 1000)]
            .map(|(start, bytes)| playback.send(start, bytes) / MS);
        // 700 + 700 + 100 | 600 + 900 | 1100 + 400 | 600
        assert_eq!(ends, [1, 1, 2, 3, 4]);
        // What is left of an opportunity is lost for a packet that comes later.
        assert_eq!(playback.send(4 * MS + 1, 100) / MS, 5);
    }

    #[test]
    fn a_later_packet_finds_the_same_opportunities_as_a_search_from_the_beginning() {
        let trace = DeliveryTrace::parse("0\n3\n3\n7").unwrap();
        for time in 0..100_u64 {
            for more in [0, 1] {
                let time = time * MS + more;
                let wanted = (0..).find(|number| trace.time_of(*number) >= time);
                assert_eq!(Some(trace.first_from(time)), wanted, "{time}");
            }
        }
    }
}
