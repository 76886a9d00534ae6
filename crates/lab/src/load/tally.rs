//! What happened, counted: pure, and of a size that no run changes.

use std::collections::BTreeMap;
use std::time::Duration;

use eyas::race::candidate::{Family, Security, Transport};
use hdrhistogram::Histogram;

/// The longest time that is told apart: what takes longer counts as this long.
const LONGEST: Duration = Duration::from_secs(3_600);
/// The shortest time that is told apart: 512 ns, for the histogram's cells are powers of two.
const SHORTEST: Duration = Duration::from_micros(1);
/// Digits that a value of the histogram keeps.
const DIGITS: u8 = 3;

/// What carried a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Winner {
    /// The transport on the wire.
    pub transport: Transport,
    /// The address family.
    pub family: Family,
    /// What protected it.
    pub security: Security,
    /// The version of HTTP, such as `HTTP/1.1`.
    pub version: &'static str,
}

/// What opening a connection took, for the request that opened it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// Until DNS gave the first address; `None` if nobody was asked.
    pub dns: Option<Duration>,
    /// From then until the transport of the winner was up: head starts and attempts that lost are
    /// in it.
    pub connect: Duration,
    /// From then until the security layer was up.
    pub security: Option<Duration>,
}

/// A response, read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// What carried it.
    pub winner: Winner,
    /// What the connection took, if it was opened for this request.
    pub opening: Option<Opening>,
    /// From the intended start to the head of the response.
    pub first_byte: Duration,
    /// Bytes of its body.
    pub bytes: u64,
}

/// Why there was no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// A name for its kind, such as `connect` or `timeout`.
    pub kind: &'static str,
    /// What was said of it.
    pub detail: String,
}

/// One request, from its intended start to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// How much later than intended it was begun.
    pub late: Duration,
    /// From the intended start to its end.
    pub total: Duration,
    /// Whether the memory was made to know the outcome.
    pub is_hit: bool,
    /// How it ended.
    pub end: Result<Answer, Trouble>,
}

/// Times, each in a histogram of nanoseconds.
#[derive(Clone, Debug)]
pub struct Times {
    /// From the intended start until the request was begun: what the generator itself was late.
    pub late: Histogram<u64>,
    /// [`Opening::dns`].
    pub dns: Histogram<u64>,
    /// [`Opening::connect`].
    pub connect: Histogram<u64>,
    /// [`Opening::security`].
    pub security: Histogram<u64>,
    /// [`Answer::first_byte`].
    pub first_byte: Histogram<u64>,
    /// [`Exchange::total`], of requests that were answered.
    pub total: Histogram<u64>,
}

impl Default for Times {
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

impl Times {
    /// Every histogram with its name.
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
        let own = [
            &mut self.late,
            &mut self.dns,
            &mut self.connect,
            &mut self.security,
            &mut self.first_byte,
            &mut self.total,
        ];
        for (own, (_, other)) in own.into_iter().zip(other.named()) {
            // All have the same bounds, so none has a value that another cannot take.
            let _ = own.add(other);
        }
    }
}

fn histogram() -> Histogram<u64> {
    let (low, high) = (SHORTEST.as_nanos() as u64, LONGEST.as_nanos() as u64);
    Histogram::new_with_bounds(low, high, DIGITS).expect("these bounds make sense, always")
}

fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

/// What happened in some time: one second, or a whole run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Requests that were to be made.
    pub intended: u64,
    /// Of those, how many were not begun, for too many were in flight.
    pub dropped: u64,
    /// Responses read to their end, whatever their status.
    pub answered: u64,
    /// Requests that the memory was made to know the outcome of.
    pub hits: u64,
    /// Requests that opened a connection of their own and had a response over it.
    pub opened: u64,
    /// Bytes of the bodies of responses.
    pub bytes: u64,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Responses by what carried them.
    pub winners: BTreeMap<Winner, u64>,
    /// Requests without a response, by kind.
    pub troubles: BTreeMap<&'static str, Troubles>,
    /// Requests given up at an interruption.
    pub unfinished: u64,
    /// How long what took.
    pub times: Times,
}

/// Requests that failed in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Troubles {
    /// How many.
    pub count: u64,
    /// What was said of the first.
    pub first: String,
}

impl Tally {
    /// Counts a request that was not begun.
    pub fn drop_one(&mut self) {
        self.intended += 1;
        self.dropped += 1;
    }

    /// Counts a request that has come to its end.
    pub fn take(&mut self, exchange: Exchange) {
        self.intended += 1;
        self.hits += u64::from(exchange.is_hit);
        record(&mut self.times.late, exchange.late);
        match exchange.end {
            Ok(answer) => self.take_answer(&answer, exchange.total),
            Err(trouble) => self.take_trouble(trouble),
        }
    }

    /// Counts requests given up.
    pub fn give_up(&mut self, requests: u64) {
        self.intended += requests;
        self.unfinished += requests;
    }

    /// Requests without a response, of all kinds.
    pub fn failed(&self) -> u64 {
        self.troubles.values().map(|troubles| troubles.count).sum()
    }

    /// Responses that say that something is wrong: 400 and above (RFC 9110 §15.5, §15.6).
    pub fn refused(&self) -> u64 {
        self.statuses.range(400..).map(|(_, count)| count).sum()
    }

    /// Adds what happened elsewhere, or at another time.
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
        for (kind, troubles) in &other.troubles {
            let own = self
                .troubles
                .entry(kind)
                .or_insert_with(|| Troubles { count: 0, first: troubles.first.clone() });
            own.count += troubles.count;
        }
        self.times.add(&other.times);
    }

    fn take_answer(&mut self, answer: &Answer, total: Duration) {
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

    fn take_trouble(&mut self, trouble: Trouble) {
        let Trouble { kind, detail } = trouble;
        self.troubles.entry(kind).or_insert_with(|| Troubles { count: 0, first: detail }).count +=
            1;
    }
}

#[cfg(test)]
mod tests;
