//! The counters of a load: pure, and of bounded size.

use std::collections::BTreeMap;
use std::time::Duration;

use eyas::race::candidate::{AddressFamily, Security, Transport};
use hdrhistogram::Histogram;

/// The longest time that is distinguished: longer ones count as this long.
const MAX_TIME: Duration = Duration::from_secs(3_600);
/// The shortest time that is distinguished: 512 ns, because the histogram's cells are powers of
/// two.
const MIN_TIME: Duration = Duration::from_micros(1);
/// The significant digits of a value of the histogram.
const DIGITS: u8 = 3;

/// The connection that carried a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResponseCarrier {
    /// The transport on the wire.
    pub transport: Transport,
    /// The address family.
    pub family: AddressFamily,
    /// The security protocol.
    pub security: Security,
    /// The version of HTTP, such as `HTTP/1.1`.
    pub version: &'static str,
}

/// The times of opening a connection, for the request that opened it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpeningTimes {
    /// The time until DNS returned the first address; `None` if DNS was not used.
    pub dns: Option<Duration>,
    /// The time from then until the winner's transport was established, including head starts and
    /// attempts that lost.
    pub connect: Duration,
    /// The time from then until the security handshake was complete.
    pub security: Option<Duration>,
}

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompleteResponse {
    /// The status.
    pub status: u16,
    /// The connection that carried it.
    pub winner: ResponseCarrier,
    /// The times of opening the connection, if it was opened for this request.
    pub opening: Option<OpeningTimes>,
    /// The time from the intended start to the head of the response.
    pub first_byte: Duration,
    /// Bytes of the body.
    pub bytes: u64,
}

/// Why there was no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestError {
    /// The kind of failure, such as `connect` or `timeout`.
    pub kind: &'static str,
    /// The message.
    pub detail: String,
}

/// One request, from its intended start to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadExchange {
    /// How much later than intended it was started.
    pub late: Duration,
    /// The time from the intended start to its end.
    pub total: Duration,
    /// Whether the memory was made to know the outcome.
    pub is_hit: bool,
    /// How it ended.
    pub result: Result<CompleteResponse, RequestError>,
}

/// Times, each as a histogram of nanoseconds.
#[derive(Clone, Debug)]
pub struct TimeHistograms {
    /// The time from the intended start to the actual start: the lateness of the generator itself.
    pub late: Histogram<u64>,
    /// [`OpeningTimes::dns`].
    pub dns: Histogram<u64>,
    /// [`OpeningTimes::connect`].
    pub connect: Histogram<u64>,
    /// [`OpeningTimes::security`].
    pub security: Histogram<u64>,
    /// [`CompleteResponse::first_byte`].
    pub first_byte: Histogram<u64>,
    /// [`LoadExchange::total`] of answered requests.
    pub total: Histogram<u64>,
}

impl Default for TimeHistograms {
    fn default() -> Self {
        Self {
            late: histogram(),
            dns: histogram(),
            connect: histogram(),
            security: histogram(),
            first_byte: histogram(),
            total: histogram(),
        }
    }
}

impl TimeHistograms {
    /// Returns every histogram with its name.
    pub fn named(&self) -> [(&'static str, &Histogram<u64>); 6] {
        [
            ("late", &self.late),
            ("dns", &self.dns),
            ("connect", &self.connect),
            ("security", &self.security),
            ("first-byte", &self.first_byte),
            ("total", &self.total),
        ]
    }

    fn add(&mut self, other: &Self) {
        let recorders = [
            &mut self.late,
            &mut self.dns,
            &mut self.connect,
            &mut self.security,
            &mut self.first_byte,
            &mut self.total,
        ];
        for (recorder, (_, other)) in recorders.into_iter().zip(other.named()) {
            // All have the same bounds, so each value fits.
            let _ = recorder.add(other);
        }
    }
}

fn histogram() -> Histogram<u64> {
    let (low, high) = (MIN_TIME.as_nanos() as u64, MAX_TIME.as_nanos() as u64);
    Histogram::new_with_bounds(low, high, DIGITS).expect("valid bounds")
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

/// Counts over an interval: one second, or a whole run.
#[derive(Clone, Debug, Default)]
pub struct LoadTally {
    /// Scheduled requests.
    pub intended: u64,
    /// Scheduled requests that were not started because too many were in flight.
    pub dropped: u64,
    /// Complete responses, whatever their status.
    pub answered: u64,
    /// Requests whose outcome the memory was made to know.
    pub hits: u64,
    /// Requests that opened their own connection and received a response over it.
    pub opened: u64,
    /// Bytes of response bodies.
    pub bytes: u64,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Responses by connection type.
    pub winners: BTreeMap<ResponseCarrier, u64>,
    /// Requests without a response, by kind.
    pub errors: BTreeMap<&'static str, ErrorGroup>,
    /// Requests cancelled when the load was stopped.
    pub unfinished: u64,
    /// The times.
    pub times: TimeHistograms,
}

/// Requests that failed in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorGroup {
    /// The number of requests.
    pub count: u64,
    /// The message of the first one.
    pub first: String,
}

impl LoadTally {
    /// Counts a request that was not started.
    pub fn record_dropped(&mut self) {
        self.intended += 1;
        self.dropped += 1;
    }

    /// Counts a request that has ended.
    pub fn record(&mut self, exchange: LoadExchange) {
        self.intended += 1;
        self.hits += u64::from(exchange.is_hit);
        record(&mut self.times.late, exchange.late);
        match exchange.result {
            Ok(answer) => self.record_answer(&answer, exchange.total),
            Err(error) => self.record_error(error),
        }
    }

    /// Counts cancelled requests.
    pub fn record_unfinished(&mut self, requests: u64) {
        self.intended += requests;
        self.unfinished += requests;
    }

    /// Returns the number of requests without a response, of all kinds.
    pub fn failed(&self) -> u64 {
        self.errors.values().map(|errors| errors.count).sum()
    }

    /// Returns the number of responses that report an error: 400 and above (RFC 9110 §15.5, §15.6).
    pub fn refused(&self) -> u64 {
        self.statuses.range(400..).map(|(_, count)| count).sum()
    }

    /// Adds the counts of another thread or interval.
    pub fn add(&mut self, other: &Self) {
        self.intended += other.intended;
        self.dropped += other.dropped;
        self.answered += other.answered;
        self.hits += other.hits;
        self.opened += other.opened;
        self.bytes += other.bytes;
        self.unfinished += other.unfinished;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (winner, count) in &other.winners {
            *self.winners.entry(*winner).or_default() += count;
        }
        for (kind, errors) in &other.errors {
            let group = self
                .errors
                .entry(kind)
                .or_insert_with(|| ErrorGroup { count: 0, first: errors.first.clone() });
            group.count += errors.count;
        }
        self.times.add(&other.times);
    }

    fn record_answer(&mut self, answer: &CompleteResponse, total: Duration) {
        self.answered += 1;
        self.bytes += answer.bytes;
        *self.statuses.entry(answer.status).or_default() += 1;
        *self.winners.entry(answer.winner).or_default() += 1;
        if let Some(opening) = answer.opening {
            self.opened += 1;
            record(&mut self.times.connect, opening.connect);
            if let Some(dns) = opening.dns {
                record(&mut self.times.dns, dns);
            }
            if let Some(security) = opening.security {
                record(&mut self.times.security, security);
            }
        }
        record(&mut self.times.first_byte, answer.first_byte);
        record(&mut self.times.total, total);
    }

    fn record_error(&mut self, error: RequestError) {
        let RequestError { kind, detail } = error;
        self.errors.entry(kind).or_insert_with(|| ErrorGroup { count: 0, first: detail }).count +=
            1;
    }
}

#[cfg(test)]
mod tests;
