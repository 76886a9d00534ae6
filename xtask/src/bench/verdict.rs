//! Whether the ratios that we want hold, in words.

use super::http::Results;

/// The race may cost this much more than HTTP/3 alone, and a later request without UDP this much
/// more than HTTP/2 alone.
const RATIO: f64 = 1.05;
/// Milliseconds within which the first request of a client without memory is answered.
const FIRST: f64 = 60.0;
/// Milliseconds until the race turns to the other address family, without memory: QUIC's head
/// start and one Connection Attempt Delay.
const OTHER_FAMILY: f64 = 300.0;

/// The head of a table of expectations.
const HEAD: &str = "| target | measured | met |\n| --- | --- | --- |\n";

/// One expectation: what it is, how it came out, and whether it holds.
pub(super) struct Expectation {
    /// What is wanted.
    pub(super) wanted: String,
    /// What was seen instead or as well, if it was measured, and whether it is as wanted.
    pub(super) seen: Option<(String, bool)>,
}

impl Expectation {
    /// An expectation with its outcome.
    pub(super) fn row(&self) -> String {
        let (seen, holds) = match &self.seen {
            Some((seen, true)) => (seen.as_str(), "yes"),
            Some((seen, false)) => (seen.as_str(), "**no**"),
            None => ("–", "not measured"),
        };
        format!("| {} | {seen} | {holds} |\n", self.wanted)
    }
}

/// A figure that is wanted to be no larger, or no smaller, than another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    /// Whether this figure is within it.
    pub(super) fn holds(self, seen: f64) -> bool {
        match self {
            Self::AtMost(most) => seen <= most,
            Self::AtLeast(least) => seen >= least,
        }
    }
}

/// A list of expectations, each with its outcome.
pub(super) fn table(expectations: &[Expectation]) -> String {
    let rows = expectations.iter().map(Expectation::row);
    std::iter::once(HEAD.to_owned()).chain(rows).collect()
}

/// The expectations of `bench http`.
pub(super) fn text(results: &Results) -> String {
    table(&expectations(results))
}

fn expectations(results: &Results) -> Vec<Expectation> {
    let median = |client, column| results.get(&(client, column)).and_then(|it| it.median());
    let mut expectations = Vec::new();
    // Not the last one: there it counts which Connection Attempt Delay a client has settled on.
    for column in ["h1", "h2", "h3", "race", "no UDP, first", "no UDP, later"] {
        let wanted = format!("{column}: no higher than libcurl");
        expectations.push(ratio(wanted, median("eyas", column), median("libcurl", column), 1.0));
    }
    let (race, h3) = (median("eyas", "race"), median("eyas", "h3"));
    expectations.push(ratio(format!("race: at most {RATIO} × h3 alone"), race, h3, RATIO));
    let first = median("eyas", "no UDP, first");
    expectations.push(bound(format!("no UDP, first: within {FIRST} ms"), first, FIRST));
    let (later, h2) = (median("eyas", "no UDP, later"), median("eyas", "h2"));
    let wanted = format!("no UDP, later: at most {RATIO} × h2 alone");
    expectations.push(ratio(wanted, later, h2, RATIO));
    let wanted =
        format!("no IPv6: within {OTHER_FAMILY} ms, head start and Connection Attempt Delay");
    expectations.push(bound(wanted, median("eyas", "no IPv6"), OTHER_FAMILY));
    expectations
}

/// That one time is at most so many times another; in milliseconds.
pub(super) fn ratio(
    wanted: String,
    ours: Option<f64>,
    theirs: Option<f64>,
    most: f64,
) -> Expectation {
    let seen = ours.zip(theirs).map(|(ours, theirs)| {
        let ratio = ours / theirs;
        (format!("{ours:.2} ms / {theirs:.2} ms = {ratio:.2}"), ratio <= most)
    });
    Expectation { wanted, seen }
}

/// That one rate is at least so many times another; in requests per second.
pub(super) fn rate(
    wanted: String,
    ours: Option<f64>,
    theirs: Option<f64>,
    least: f64,
) -> Expectation {
    let seen = ours.zip(theirs).map(|(ours, theirs)| {
        let ratio = ours / theirs;
        (format!("{ours:.0} / {theirs:.0} = {ratio:.2}"), ratio >= least)
    });
    Expectation { wanted, seen }
}

/// That a time is at most so long; in milliseconds.
pub(super) fn bound(wanted: String, ours: Option<f64>, most: f64) -> Expectation {
    let seen = ours.map(|ours| (format!("{ours:.2} ms"), ours <= most));
    Expectation { wanted, seen }
}

#[cfg(test)]
mod tests {
    use super::super::statistics::Rounds;
    use super::*;

    fn results(times: &[((&'static str, &'static str), f64)]) -> Results {
        times
            .iter()
            .map(|(key, time)| (*key, Rounds { times: vec![*time], errors: Vec::new() }))
            .collect()
    }

    #[test]
    fn expectations_hold_or_not() {
        let seen = results(&[
            (("eyas", "h2"), 2.0),
            (("libcurl", "h2"), 2.5),
            (("eyas", "h3"), 2.0),
            (("eyas", "race"), 2.2),
            (("eyas", "no UDP, first"), 55.0),
        ]);
        let text = text(&seen);
        assert!(text.contains("| h2: no higher than libcurl | 2.00 ms / 2.50 ms = 0.80 | yes |"));
        assert!(text.contains("2.20 ms / 2.00 ms = 1.10 | **no** |"));
        assert!(text.contains("within 60 ms | 55.00 ms | yes |"));
        assert!(text.contains("| h1: no higher than libcurl | – | not measured |"));
    }
}
