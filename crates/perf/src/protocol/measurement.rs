//! What one end measures of its own part of a test.

use std::time::Duration;

use super::goodput::{GoodputInterval, GoodputMeter};
use super::request::TestRequest;
use super::{EndReading, LOOK_EVERY};

/// What one end has measured, of the time that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndReport {
    /// Bytes of data received.
    pub received: u64,
    /// Bytes of data that its transport has accepted for sending.
    pub sent: u64,
    /// The time in which this was.
    pub measured: Duration,
    /// CPU time of the process, in user and kernel mode; `None` if it is not known to be this test's.
    pub cpu: Option<Duration>,
    /// Packets that it sent again; `None` if the transport does not tell.
    pub retransmitted: Option<u64>,
    /// The transport's smoothed round-trip time at the end.
    pub rtt: Option<Duration>,
}

/// The measurement of one end.
#[derive(Clone, Debug)]
pub(crate) struct EndMeasurement {
    began: Duration,
    omit: Duration,
    /// `None` if this end only sends.
    meter: Option<GoodputMeter>,
    /// When what counts began, and the counters then.
    first: Option<(Duration, EndReading)>,
    last: Option<(Duration, EndReading)>,
}

impl EndMeasurement {
    pub(crate) fn new(request: &TestRequest, receives: bool, now: Duration) -> Self {
        let meter = receives.then(|| GoodputMeter::new(request));
        Self { began: now, omit: request.omit, meter, first: None, last: None }
    }

    /// Takes the counters, and returns the interval that is over by now.
    pub(crate) fn look(&mut self, now: Duration, reading: EndReading) -> Option<GoodputInterval> {
        let (interval, has_begun, is_over) = match &mut self.meter {
            Some(meter) => {
                let was_complete = meter.is_complete();
                let interval = meter.advance(now, reading.received);
                (interval, meter.began().is_some(), was_complete)
            }
            None => (None, now >= self.began + self.omit, false),
        };
        if has_begun && !is_over {
            self.first.get_or_insert((now, reading));
            self.last = Some((now, reading));
        }
        interval
    }

    /// Ends what counts, and returns the rest since the last interval.
    pub(crate) fn end(&mut self, now: Duration, reading: EndReading) -> Option<GoodputInterval> {
        let meter = self.meter.as_mut()?;
        let is_over = meter.is_complete();
        if self.first.is_some() && !is_over {
            self.last = Some((now, reading));
        }
        meter.end(now, reading.received)
    }

    /// Returns whether this end receives, and has for long enough.
    pub(crate) fn is_complete(&self) -> bool {
        self.meter.as_ref().is_some_and(GoodputMeter::is_complete)
    }

    /// Returns when to take the counters next.
    pub(crate) fn next_look(&self, now: Duration) -> Duration {
        let due = self.meter.as_ref().and_then(GoodputMeter::next_timeout);
        due.unwrap_or(Duration::MAX).min(now + LOOK_EVERY)
    }

    pub(crate) fn report(&self) -> EndReport {
        let (Some((begin, first)), Some((end, last))) = (self.first, self.last) else {
            return EndReport::default();
        };
        let received = match &self.meter {
            Some(meter) => meter.measured().0,
            None => last.received.saturating_sub(first.received),
        };
        EndReport {
            received,
            sent: last.sent.saturating_sub(first.sent),
            measured: end - begin,
            cpu: last.cpu.zip(first.cpu).map(|(last, first)| last.saturating_sub(first)),
            retransmitted: last
                .retransmitted
                .zip(first.retransmitted)
                .map(|(last, first)| last.saturating_sub(first)),
            rtt: last.rtt,
        }
    }
}
