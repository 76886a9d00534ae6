//! The part of the results of `http` that is in the README: the clients that race HTTP/3 against HTTP
//! over TCP, on a network without a fault and on two with one.

use std::fmt::Write as _;

use crate::statistics::Results;
use crate::versions::Versions;

const CLIENTS: [&str; 3] = ["eyas", "libcurl", "niquests"];
/// The headings of the columns, here and in the table of all clients.
const COLUMNS: [(&str, &str); 4] = [
    ("no fault", "race"),
    ("UDP dropped: first request", "no UDP, first"),
    ("later requests", "no UDP, later"),
    ("IPv6 dropped", "no IPv6"),
];

/// Returns the table of medians.
pub(crate) fn table(results: &Results, versions: &Versions) -> String {
    let mut text = String::from("| time to first byte |");
    for (head, _) in COLUMNS {
        let _ = write!(text, " {head} |");
    }
    let _ = writeln!(text, "\n| --- |{}", " ---: |".repeat(COLUMNS.len()));
    for client in CLIENTS {
        let _ = match versions.of(client) {
            Some(version) if client != "eyas" => write!(text, "| {client} {version} |"),
            _ => write!(text, "| {client} |"),
        };
        for (_, column) in COLUMNS {
            let median = results.get(&(client, column)).and_then(|rounds| rounds.median());
            let _ = write!(text, " {} |", median.map_or("–".into(), formatted));
        }
        text.push('\n');
    }
    text
}

/// Formats milliseconds with two or three digits.
fn formatted(milliseconds: f64) -> String {
    match milliseconds {
        time if time < 10.0 => format!("{time:.1} ms"),
        time if time < 1000.0 => format!("{time:.0} ms"),
        time => format!("{:.1} s", time / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::SCENARIOS;
    use crate::statistics::Rounds;

    #[test]
    fn columns_match_the_benchmark() {
        for (_, column) in COLUMNS {
            assert!(SCENARIOS.iter().any(|scenario| scenario.name == column), "{column}");
        }
    }

    #[test]
    fn clients_have_versions_and_times_have_units() {
        let mut results = Results::new();
        for (column, time) in [("race", 1.74), ("no UDP, first", 208.9), ("no IPv6", 11_701.0)] {
            let rounds = Rounds { times: vec![time], errors: Vec::new() };
            results.insert(("niquests", column), rounds);
        }
        let versions =
            Versions(vec![("eyas", "0.1.0".into()), ("niquests", "3.21.2 qh3 2".into())]);
        let text = table(&results, &versions);
        assert!(text.contains("| eyas | – | – | – | – |"), "{text}");
        assert!(text.contains("| niquests 3.21.2 | 1.7 ms | 209 ms | – | 11.7 s |"), "{text}");
        assert!(text.lines().all(|line| line.matches('|').count() == COLUMNS.len() + 2));
    }
}
