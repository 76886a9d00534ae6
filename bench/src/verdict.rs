//! Whether the targets are met, as text.

use crate::statistics::Results;

/// The maximum time of the race relative to HTTP/3 alone, and of a later request without UDP relative
/// to HTTP/2 alone.
const RATIO: f64 = 1.05;
/// The maximum time to the first response of a client without memory, in milliseconds.
const FIRST: f64 = 60.0;
/// The time until the race tries the other address family, without memory: QUIC's head start and one
/// Connection Attempt Delay, in milliseconds.
const OTHER_FAMILY: f64 = 300.0;

/// The header of a table of expectations.
const HEAD: &str = "| target | measured | met |\n| --- | --- | --- |\n";

/// One expectation and its outcome.
pub(crate) struct Expectation {
    /// The target.
    pub(crate) target: String,
    /// The measurement, if there is one, and whether it meets the target.
    pub(crate) measured: Option<(String, bool)>,
}

impl Expectation {
    /// Returns a table row.
    pub(crate) fn row(&self) -> String {
        let (measured, holds) = match &self.measured {
            Some((measured, true)) => (measured.as_str(), "yes"),
            Some((measured, false)) => (measured.as_str(), "**no**"),
            None => ("–", "not measured"),
        };
        format!("| {} | {measured} | {holds} |\n", self.target)
    }
}

/// A maximum or minimum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    /// Returns whether this figure is within it.
    pub(crate) fn holds(self, measured: f64) -> bool {
        match self {
            Self::AtMost(most) => measured <= most,
            Self::AtLeast(least) => measured >= least,
        }
    }
}

/// Returns a table of expectations with their outcomes.
pub(crate) fn table(expectations: &[Expectation]) -> String {
    let rows = expectations.iter().map(Expectation::row);
    std::iter::once(HEAD.to_owned()).chain(rows).collect()
}

/// Returns the table of the expectations of `bench http`.
pub(crate) fn text(results: &Results) -> String {
    table(&expectations(results))
}

fn expectations(results: &Results) -> Vec<Expectation> {
    let median = |client, column| results.get(&(client, column)).and_then(|it| it.median());
    let mut expectations = Vec::new();
    // Not the last column, which depends on the Connection Attempt Delay that a client uses.
    for column in ["h1", "h2", "h3", "race", "no UDP, first", "no UDP, later"] {
        let target = format!("{column}: no higher than libcurl");
        expectations.push(ratio(target, median("eyas", column), median("libcurl", column), 1.0));
    }
    let (race, h3) = (median("eyas", "race"), median("eyas", "h3"));
    expectations.push(ratio(format!("race: at most {RATIO} × h3 alone"), race, h3, RATIO));
    let first = median("eyas", "no UDP, first");
    expectations.push(bound(format!("no UDP, first: within {FIRST} ms"), first, FIRST));
    let (later, h2) = (median("eyas", "no UDP, later"), median("eyas", "h2"));
    let target = format!("no UDP, later: at most {RATIO} × h2 alone");
    expectations.push(ratio(target, later, h2, RATIO));
    let target =
        format!("no IPv6: within {OTHER_FAMILY} ms, head start and Connection Attempt Delay");
    expectations.push(bound(target, median("eyas", "no IPv6"), OTHER_FAMILY));
    expectations
}

/// Expects the ratio of two times in milliseconds to be at most `most`.
pub(crate) fn ratio(
    target: String,
    ours: Option<f64>,
    theirs: Option<f64>,
    most: f64,
) -> Expectation {
    let measured = ours.zip(theirs).map(|(ours, theirs)| {
        let ratio = ours / theirs;
        (format!("{ours:.2} ms / {theirs:.2} ms = {ratio:.2}"), ratio <= most)
    });
    Expectation { target, measured }
}

/// Expects the ratio of two rates in requests per second to be at least `least`.
pub(crate) fn rate(
    target: String,
    ours: Option<f64>,
    theirs: Option<f64>,
    least: f64,
) -> Expectation {
    let measured = ours.zip(theirs).map(|(ours, theirs)| {
        let ratio = ours / theirs;
        (format!("{ours:.0} / {theirs:.0} = {ratio:.2}"), ratio >= least)
    });
    Expectation { target, measured }
}

/// Expects a time in milliseconds to be at most `most`.
pub(crate) fn bound(target: String, ours: Option<f64>, most: f64) -> Expectation {
    let measured = ours.map(|ours| (format!("{ours:.2} ms"), ours <= most));
    Expectation { target, measured }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Rounds;

    fn results(times: &[((&'static str, &'static str), f64)]) -> Results {
        times
            .iter()
            .map(|(key, time)| (*key, Rounds { times: vec![*time], errors: Vec::new() }))
            .collect()
    }

    #[test]
    fn expectations_hold_or_not() {
        let measured = results(&[
            (("eyas", "h2"), 2.0),
            (("libcurl", "h2"), 2.5),
            (("eyas", "h3"), 2.0),
            (("eyas", "race"), 2.2),
            (("eyas", "no UDP, first"), 55.0),
        ]);
        let text = text(&measured);
        assert!(text.contains("| h2: no higher than libcurl | 2.00 ms / 2.50 ms = 0.80 | yes |"));
        assert!(text.contains("2.20 ms / 2.00 ms = 1.10 | **no** |"));
        assert!(text.contains("within 60 ms | 55.00 ms | yes |"));
        assert!(text.contains("| h1: no higher than libcurl | – | not measured |"));
    }
}
