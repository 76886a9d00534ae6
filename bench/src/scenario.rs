//! Requests of all clients in all scenarios, in turn, and the table of their times.
//!
//! Every client is one process that runs during the whole benchmark. A round is one request by each
//! client in each scenario, so that other load of the machine affects all of them equally; the order of
//! the clients rotates by one from round to round.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::arena::Site;
use crate::rival::Rival;
use crate::statistics::{Results, Rounds};

/// Rounds that are not counted, until caches and lazily created tables of clients and server are warm.
const WARM_UP: usize = 20;
/// Milliseconds. A client that takes longer in a scenario is waiting for a timer, so its time varies
/// little from round to round.
const SLOW: f64 = 20.0;
/// Such a client only takes part in every 20th round.
const SLOW_EVERY: usize = 20;

/// One column of the table.
pub(crate) struct Scenario {
    /// The heading of the column.
    pub(crate) name: &'static str,
    /// The mode of the clients.
    pub(crate) mode: &'static str,
    pub(crate) site: &'static Site,
}

/// Has every client make a request in each scenario, round after round.
pub(crate) fn measure(rivals: &mut [Rival], scenarios: &[Scenario], rounds: usize) -> Results {
    let mut results = Results::new();
    // When each client last took part in a scenario, and whether it was slow.
    let mut last: BTreeMap<(&str, &str), (usize, bool)> = BTreeMap::new();
    for round in 0..WARM_UP + rounds {
        if round >= WARM_UP && (round - WARM_UP).is_multiple_of(100) {
            println!("round {} of {rounds}", round - WARM_UP);
        }
        for scenario in scenarios {
            let url = scenario.site.url();
            for turn in 0..rivals.len() {
                let index = (turn + round) % rivals.len();
                let rival = &mut rivals[index];
                if !rival.is_for(scenario.mode) {
                    continue;
                }
                let key = (rival.name, scenario.name);
                if last.get(&key).is_some_and(|(before, slow)| *slow && round < before + SLOW_EVERY)
                {
                    continue;
                }
                let answer = rival.round(scenario.mode, &url);
                let slow = answer.as_ref().map_or(true, |time| *time > SLOW);
                last.insert(key, (round, slow));
                if round >= WARM_UP {
                    results.entry(key).or_default().add(answer);
                }
            }
        }
    }
    for ((client, column), rounds) in &results {
        // A client that does not support a mode reports that; it is a dash in the table.
        let errors = rounds.errors.iter().filter(|error| !error.contains(" not know "));
        for error in errors.take(1) {
            println!("{client}, {column}: {} failed, for example: {error}", rounds.errors.len());
        }
    }
    results
}

/// Returns a table of medians with the 95th percentiles in parentheses, in milliseconds.
pub(crate) fn table(names: &[&str], scenarios: &[Scenario], results: &Results) -> String {
    let mut text = String::from("| client |");
    for scenario in scenarios {
        let _ = write!(text, " {} |", scenario.name);
    }
    text.push_str("\n| --- |");
    text.push_str(&" ---: |".repeat(scenarios.len()));
    text.push('\n');
    for name in names {
        let _ = write!(text, "| {name} |");
        for scenario in scenarios {
            let rounds = results
                .iter()
                .find(|((client, column), _)| (client, column) == (name, &scenario.name));
            let _ = write!(text, " {} |", rounds.map_or("–".into(), |(_, rounds)| cell(rounds)));
        }
        text.push('\n');
    }
    text
}

fn cell(rounds: &Rounds) -> String {
    match (rounds.median(), rounds.p95()) {
        (Some(median), Some(p95)) => {
            let failed = rounds.errors.len();
            let failed = if failed == 0 { String::new() } else { format!(", {failed} failed") };
            format!("{median:.2} ({p95:.2}{failed})")
        }
        _ => "–".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::HEALTHY;

    #[test]
    fn the_table_has_a_cell_for_every_column() {
        let scenarios =
            ["h1", "h2", "h3"].map(|name| Scenario { name, mode: name, site: &HEALTHY });
        let mut results = Results::new();
        let mut rounds = Rounds::default();
        rounds.add(Ok(1.0));
        rounds.add(Ok(3.0));
        rounds.add(Err("no".into()));
        results.insert(("eyas", "h2"), rounds);
        let text = table(&["eyas"], &scenarios, &results);
        let row = text.lines().last().unwrap();
        assert_eq!(row, "| eyas | – | 1.00 (3.00, 1 failed) | – |");
        assert!(text.lines().all(|line| line.matches('|').count() == scenarios.len() + 2));
    }
}
