//! The summary of a run, also as data: times in milliseconds, with at most three decimals.

use std::collections::BTreeMap;
use std::time::Duration;

use eyas::race::candidate::Transport;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::Load;
use super::attempts::TransportAttempts;
use super::load_tally::LoadTally;
use super::worker::FinalReport;

/// The result of a load.
#[derive(Clone, Debug)]
pub struct LoadOutcome {
    /// Everything that was counted.
    pub tally: LoadTally,
    /// The outcomes of the attempts over each transport that was tried.
    pub attempts: BTreeMap<Transport, TransportAttempts>,
    /// The maximum number of requests in flight.
    pub most_in_flight: usize,
    /// Requests of the warm-up, which are not counted elsewhere.
    pub warm_up_requests: u64,
    /// How long counted requests arrived.
    pub arriving: Duration,
    /// From the end of the warm-up until the last of them had ended, or arrivals ended.
    pub elapsed: Duration,
    /// Whether it was stopped early.
    pub is_interrupted: bool,
    /// Whether this machine could not start requests as fast as they were to arrive.
    pub fell_behind: bool,
    warm_up: Duration,
}

impl LoadOutcome {
    pub(super) fn new(load: &Load) -> Self {
        Self {
            tally: LoadTally::default(),
            attempts: BTreeMap::new(),
            most_in_flight: 0,
            warm_up_requests: 0,
            arriving: Duration::ZERO,
            elapsed: Duration::ZERO,
            is_interrupted: false,
            fell_behind: false,
            warm_up: load.warm_up,
        }
    }

    pub(super) fn add(&mut self, finished: &FinalReport) {
        for (transport, attempts) in &finished.attempts {
            self.attempts.entry(*transport).or_default().add(attempts);
        }
        self.most_in_flight += finished.most_in_flight;
        self.warm_up_requests += finished.warm_up;
        let arriving = finished.arriving_until.saturating_sub(self.warm_up);
        let ended = finished.last_end.saturating_sub(self.warm_up);
        self.arriving = self.arriving.max(arriving);
        self.elapsed = self.elapsed.max(ended).max(self.arriving);
        self.fell_behind |= finished.fell_behind;
    }

    /// Returns the intended requests per second.
    pub fn offered_per_second(&self) -> f64 {
        per_second(self.tally.intended, self.arriving)
    }

    /// Returns the complete responses per second.
    pub fn answered_per_second(&self) -> f64 {
        per_second(self.tally.answered, self.elapsed)
    }

    /// Returns the attempts over all transports.
    pub fn all_attempts(&self) -> TransportAttempts {
        let mut all = TransportAttempts::default();
        self.attempts.values().for_each(|attempts| all.add(attempts));
        all
    }

    /// Returns all of it as data.
    pub fn summary(&self) -> LoadSummary {
        let tally = &self.tally;
        let attempts = self.all_attempts();
        let times = tally
            .times
            .named()
            .map(|(name, times)| (name.into(), TimePercentiles::from_histogram(times)));
        LoadSummary {
            interrupted: self.is_interrupted,
            fell_behind: self.fell_behind,
            arriving_s: self.arriving.as_secs_f64(),
            elapsed_s: self.elapsed.as_secs_f64(),
            warm_up_requests: self.warm_up_requests,
            intended: tally.intended,
            dropped: tally.dropped,
            answered: tally.answered,
            refused: tally.refused(),
            failed: tally.failed(),
            unfinished: tally.unfinished,
            offered_per_second: rounded(self.offered_per_second()),
            answered_per_second: rounded(self.answered_per_second()),
            body_bytes: tally.bytes,
            most_in_flight: self.most_in_flight,
            connections: tally.opened,
            hits: tally.hits,
            times_ms: times.into_iter().filter_map(|(name, row)| Some((name, row?))).collect(),
            statuses: tally.statuses.iter().map(|(code, n)| (code.to_string(), *n)).collect(),
            winners: winners(tally),
            attempts: self.attempts.iter().map(|(t, row)| (t.name().to_owned(), *row)).collect(),
            attempts_per_connection: ratio(attempts.started, attempts.used),
            wasted_handshakes: attempts.completed.saturating_sub(attempts.used),
            errors: errors(tally),
        }
    }
}

/// The result of a load as data. Fields may be added, but are never renamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// Whether it was stopped early.
    pub interrupted: bool,
    /// Whether this machine could not start requests as fast as they were to arrive.
    #[serde(default)]
    pub fell_behind: bool,
    /// How long counted requests arrived, in seconds.
    pub arriving_s: f64,
    /// The time until the last of them had ended, in seconds.
    pub elapsed_s: f64,
    /// Requests of the warm-up, not counted elsewhere.
    pub warm_up_requests: u64,
    /// Intended requests.
    pub intended: u64,
    /// Intended requests that were not started because too many were in flight.
    pub dropped: u64,
    /// Intended requests with a complete response, whatever its status.
    pub answered: u64,
    /// Responses with a status of 400 or above.
    pub refused: u64,
    /// Intended requests that ended without a response.
    pub failed: u64,
    /// Intended requests that were cancelled when the load was stopped, or its time was over.
    pub unfinished: u64,
    /// Intended requests per second of the arrivals.
    pub offered_per_second: f64,
    /// Responses per second of the elapsed time.
    pub answered_per_second: f64,
    /// Bytes of response bodies.
    pub body_bytes: u64,
    /// The maximum number of requests in flight.
    pub most_in_flight: usize,
    /// Connections that were opened for a request and carried its response.
    pub connections: u64,
    /// Of those, connections whose outcome the memory was made to know.
    pub hits: u64,
    /// By name: `late`, `dns`, `connect`, `security`, `first-byte`, `total`; those without values
    /// are omitted.
    pub times_ms: BTreeMap<String, TimePercentiles>,
    /// Responses by status.
    pub statuses: BTreeMap<String, u64>,
    /// Responses by connection type, most frequent first.
    pub winners: Vec<WinnerRow>,
    /// Attempts by transport.
    pub attempts: BTreeMap<String, TransportAttempts>,
    /// Attempts per connection; `null` without connections.
    pub attempts_per_connection: Option<f64>,
    /// Attempts that completed their handshakes but were not used.
    pub wasted_handshakes: u64,
    /// Requests without a response by kind, most frequent first.
    #[serde(rename = "troubles")]
    pub errors: Vec<ErrorRow>,
}

/// The distribution of a time, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimePercentiles {
    /// The number of values.
    pub count: u64,
    /// The minimum.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The maximum.
    pub max: f64,
}

impl TimePercentiles {
    /// Returns the percentiles of a histogram of nanoseconds, unless it is empty.
    pub fn from_histogram(times: &Histogram<u64>) -> Option<Self> {
        let at = |quantile| millis(times.value_at_quantile(quantile) as f64);
        (!times.is_empty()).then(|| Self {
            count: times.len(),
            min: millis(times.min() as f64),
            mean: millis(times.mean()),
            deviation: millis(times.stdev()),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: millis(times.max() as f64),
        })
    }
}

/// Responses over one type of connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WinnerRow {
    /// `tcp`, `mptcp`, `quic`, `sctp` or `sctp-udp`.
    pub transport: String,
    /// `v4` or `v6`.
    pub family: String,
    /// `none`, `tls` or `dtls`.
    pub security: String,
    /// The version of HTTP.
    pub version: String,
    /// The number of responses.
    pub answered: u64,
}

/// Requests that failed in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRow {
    /// The kind of failure, as `eyas get` names it; or `timeout`.
    pub kind: String,
    /// The number of requests.
    pub count: u64,
    /// The message of the first one.
    pub first: String,
}

fn winners(tally: &LoadTally) -> Vec<WinnerRow> {
    let row = |(winner, answered): (&super::ResponseCarrier, &u64)| WinnerRow {
        transport: winner.transport.name().to_owned(),
        family: winner.family.name().to_owned(),
        security: winner.security.name().to_owned(),
        version: winner.version.to_owned(),
        answered: *answered,
    };
    let mut rows: Vec<WinnerRow> = tally.winners.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.answered));
    rows
}

fn errors(tally: &LoadTally) -> Vec<ErrorRow> {
    let row = |(kind, errors): (&&str, &super::ErrorGroup)| ErrorRow {
        kind: (*kind).to_owned(),
        count: errors.count,
        first: errors.first.clone(),
    };
    let mut rows: Vec<ErrorRow> = tally.errors.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}

fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

fn ratio(count: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| rounded(count as f64 / of as f64))
}

/// Converts nanoseconds to milliseconds.
fn millis(nanos: f64) -> f64 {
    rounded(nanos / 1e6)
}

fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests;
