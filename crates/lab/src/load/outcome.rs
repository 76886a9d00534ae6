//! The sum of a run, and as data: times in milliseconds, with at most three decimals.

use std::collections::BTreeMap;
use std::time::Duration;

use eyas::race::candidate::Transport;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::Load;
use super::attempts::Attempts;
use super::tally::Tally;
use super::worker::Finished;

/// What came of a load.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Everything that was counted.
    pub tally: Tally,
    /// What became of the attempts over each transport that was tried.
    pub attempts: BTreeMap<Transport, Attempts>,
    /// The most requests in flight at once.
    pub most_in_flight: usize,
    /// Requests of the warm-up, which are counted nowhere else.
    pub warm_up_requests: u64,
    /// For how long requests arrived that count.
    pub arriving: Duration,
    /// From the end of the warm-up until the last of them was over, or no more arrived.
    pub elapsed: Duration,
    /// Whether it was ended early.
    pub is_interrupted: bool,
    warm_up: Duration,
}

impl Outcome {
    pub(super) fn new(load: &Load) -> Self {
        Self {
            tally: Tally::default(),
            attempts: BTreeMap::new(),
            most_in_flight: 0,
            warm_up_requests: 0,
            arriving: Duration::ZERO,
            elapsed: Duration::ZERO,
            is_interrupted: false,
            warm_up: load.warm_up,
        }
    }

    pub(super) fn take(&mut self, finished: &Finished) {
        for (transport, attempts) in &finished.attempts {
            self.attempts.entry(*transport).or_default().add(attempts);
        }
        self.most_in_flight += finished.most_in_flight;
        self.warm_up_requests += finished.warm_up;
        let arriving = finished.arriving_until.saturating_sub(self.warm_up);
        let ended = finished.last_end.saturating_sub(self.warm_up);
        self.arriving = self.arriving.max(arriving);
        self.elapsed = self.elapsed.max(ended).max(self.arriving);
    }

    /// Requests that were to be made, a second.
    pub fn offered_per_second(&self) -> f64 {
        per_second(self.tally.intended, self.arriving)
    }

    /// Responses read to their end, a second.
    pub fn answered_per_second(&self) -> f64 {
        per_second(self.tally.answered, self.elapsed)
    }

    /// Attempts over all transports.
    pub fn all_attempts(&self) -> Attempts {
        let mut all = Attempts::default();
        self.attempts.values().for_each(|attempts| all.add(attempts));
        all
    }

    /// The whole of it as data.
    pub fn summary(&self) -> Summary {
        let tally = &self.tally;
        let attempts = self.all_attempts();
        let times = tally.times.named().map(|(name, times)| (name.into(), Percentiles::of(times)));
        Summary {
            interrupted: self.is_interrupted,
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
            troubles: troubles(tally),
        }
    }
}

/// What came of a load, as data. Names of fields are a promise: fields are added, never renamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Whether it was ended early.
    pub interrupted: bool,
    /// For how long requests arrived that count, in seconds.
    pub arriving_s: f64,
    /// Until the last of them was over, in seconds.
    pub elapsed_s: f64,
    /// Requests of the warm-up, counted nowhere else.
    pub warm_up_requests: u64,
    /// Requests that were to be made.
    pub intended: u64,
    /// Of those: not begun, for too many were in flight.
    pub dropped: u64,
    /// Of those: responses read to their end, whatever their status.
    pub answered: u64,
    /// Of the responses: those of a status of 400 or above.
    pub refused: u64,
    /// Of those intended: ended without a response.
    pub failed: u64,
    /// Of those intended: given up at an interruption.
    pub unfinished: u64,
    /// Requests that were to be made, a second of the arrivals.
    pub offered_per_second: f64,
    /// Responses a second of the time elapsed.
    pub answered_per_second: f64,
    /// Bytes of the bodies of responses.
    pub body_bytes: u64,
    /// The most requests in flight at once.
    pub most_in_flight: usize,
    /// Connections that were opened for a request and carried its response.
    pub connections: u64,
    /// Of those opened: straight ones, for the memory was made to know the outcome.
    pub hits: u64,
    /// By name: `late`, `dns`, `connect`, `security`, `first-byte`, `total`; those that never came
    /// up are left out.
    pub times_ms: BTreeMap<String, Percentiles>,
    /// Responses by status.
    pub statuses: BTreeMap<String, u64>,
    /// Responses by what carried them, the most first.
    pub winners: Vec<WinnerRow>,
    /// Attempts by transport.
    pub attempts: BTreeMap<String, Attempts>,
    /// Attempts started for each connection; `null` without any.
    pub attempts_per_connection: Option<f64>,
    /// Attempts whose handshakes were complete and which nobody used.
    pub wasted_handshakes: u64,
    /// Requests without a response by kind, the most first.
    pub troubles: Vec<TroubleRow>,
}

/// The distribution of a time, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// How many there are.
    pub count: u64,
    /// The shortest.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// The median.
    pub p50: f64,
    /// Nine in ten take no longer.
    pub p90: f64,
    /// All but one in a hundred take no longer.
    pub p99: f64,
    /// All but one in a thousand take no longer.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Percentiles {
    /// Of a histogram of nanoseconds, if there is anything in it.
    pub fn of(times: &Histogram<u64>) -> Option<Self> {
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

/// Responses that one way carried.
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
    /// How many.
    pub answered: u64,
}

/// Requests that ended without a response in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TroubleRow {
    /// What kind of failure, as `eyas get` names it; or `timeout`.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// What was said of the first.
    pub first: String,
}

fn winners(tally: &Tally) -> Vec<WinnerRow> {
    let row = |(winner, answered): (&super::Winner, &u64)| WinnerRow {
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

fn troubles(tally: &Tally) -> Vec<TroubleRow> {
    let row = |(kind, troubles): (&&str, &super::Troubles)| TroubleRow {
        kind: (*kind).to_owned(),
        count: troubles.count,
        first: troubles.first.clone(),
    };
    let mut rows: Vec<TroubleRow> = tally.troubles.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}

fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { count as f64 / time.as_secs_f64() }
}

fn ratio(count: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| rounded(count as f64 / of as f64))
}

/// Nanoseconds as milliseconds.
fn millis(nanos: f64) -> f64 {
    rounded(nanos / 1e6)
}

fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests;
