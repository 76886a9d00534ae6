//! The measurements as tables, and whether the targets are met.

use std::fmt::Write as _;

use super::Results;
use super::programs::Answer;

/// The minimum ratio to ns-3 in simulated seconds per second of CPU time.
const TIMES_NS3: f64 = 20.0;
/// The maximum cost of an event with 1,000 streams, relative to 2.
const STREAMS_FLAT: f64 = 1.25;

/// Returns the median: the middle one, or the mean of the two middle ones.
fn median(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    let half = figures.len() / 2;
    match figures.len() {
        0 => None,
        length if length.is_multiple_of(2) => Some(f64::midpoint(figures[half - 1], figures[half])),
        _ => Some(figures[half]),
    }
}

fn median_of(answers: &[Answer], figure: impl Fn(&Answer) -> f64) -> f64 {
    median(answers.iter().map(figure)).unwrap_or(f64::NAN)
}

/// Returns the median of the ratios within each round.
fn ratio(ours: &[Answer], theirs: &[Answer], figure: impl Fn(&Answer) -> f64) -> Option<f64> {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| figure(ours) / figure(theirs)))
}

/// Returns a table of both simulators on two paths.
pub(super) fn simulators(results: &Results) -> String {
    let mut text = String::from(
        "| two paths of 10 Mbit/s | simulated s | wall s | CPU s | events | events per CPU s | \
         simulated s per CPU s | Mbit/s |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for (name, answers) in
        [("eyas, CMT-SCTP", &results.ours), ("ns-3, one TCP connection per path", &results.ns3)]
    {
        if answers.is_empty() {
            continue;
        }
        let figure = |of: fn(&Answer) -> f64| median_of(answers, of);
        let _ = writeln!(
            text,
            "| {name} | {:.0} | {:.2} | {:.2} | {:.0} | {:.2} M | {:.1} | {:.2} |",
            figure(|answer| answer.simulated),
            figure(|answer| answer.wall),
            figure(|answer| answer.cpu),
            figure(|answer| answer.events),
            figure(|answer| answer.events / answer.cpu) / 1e6,
            figure(Answer::speed),
            figure(|answer| answer.bytes * 8.0 / answer.simulated) / 1e6,
        );
    }
    if let (Some(speed), Some(wall)) = (
        ratio(&results.ours, &results.ns3, Answer::speed),
        ratio(&results.ns3, &results.ours, |answer| answer.wall),
    ) {
        let _ = writeln!(
            text,
            "\neyas simulates {speed:.1} × as much per second of CPU time, and {wall:.1} × as much per second of real time."
        );
    }
    text
}

/// Returns a table of the cost of an event by number of streams.
pub(super) fn streams(rows: &[(u32, Vec<Answer>)]) -> String {
    let mut text = String::from(
        "| streams | CPU s | CPU ns per event | relative to 2 streams |\n| ---: | ---: | ---: | ---: |\n",
    );
    for (count, answers) in rows {
        let relative = ratio(answers, &rows[0].1, Answer::nanoseconds).unwrap_or(f64::NAN);
        let (cpu, cost) =
            (median_of(answers, |answer| answer.cpu), median_of(answers, Answer::nanoseconds));
        let _ = writeln!(text, "| {count} | {cpu:.2} | {cost:.0} | {relative:.2} |");
    }
    text
}

/// Returns a table of the cost of an event by size of the world.
pub(super) fn worlds(rows: &[(u32, Vec<Answer>)]) -> String {
    let mut text = String::from(
        "| links of a world, two hosts each | CPU ns per event | per doubling |\n\
         | ---: | ---: | ---: |\n",
    );
    let mut before: Option<(u32, f64)> = None;
    for (size, answers) in rows {
        let cost = median_of(answers, Answer::nanoseconds);
        let step = before.map_or_else(String::new, |(smaller, less)| {
            format!("{:+.1}", (cost - less) / f64::from(size / smaller).log2())
        });
        let _ = writeln!(text, "| {size} | {cost:.0} | {step} |");
        before = Some((*size, cost));
    }
    text
}

/// Returns a table of the targets and whether they are met.
pub(super) fn expectations(results: &Results) -> String {
    let mut text = String::from("| target | measured | met |\n| --- | --- | --- |\n");
    let mut row = |target: String, measured: Option<f64>, holds: fn(f64) -> bool| {
        let (measured, holds) = match measured {
            Some(measured) if holds(measured) => (format!("{measured:.2}"), "yes"),
            Some(measured) => (format!("{measured:.2}"), "**no**"),
            None => ("not measured".into(), "–"),
        };
        let _ = writeln!(text, "| {target} | {measured} | {holds} |");
    };
    row(
        format!("at least {TIMES_NS3} × ns-3's simulated seconds per CPU second"),
        ratio(&results.ours, &results.ns3, Answer::speed),
        |measured| measured >= TIMES_NS3,
    );
    let many = results.streams.last().zip(results.streams.first());
    row(
        format!("1,000 streams: at most {STREAMS_FLAT} × the CPU per event of 2 streams"),
        many.and_then(|(most, least)| ratio(&most.1, &least.1, Answer::nanoseconds)),
        |measured| measured <= STREAMS_FLAT,
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let answer = |cpu| {
            let (wall, events, simulated) = (cpu, 1e6, 320.0);
            Answer { cpu, wall, events, simulated, bytes: 768e6 }
        };
        Results {
            ours: vec![answer(0.5), answer(0.6)],
            ns3: vec![answer(15.0), answer(12.0)],
            streams: vec![(2, vec![answer(0.5)]), (1000, vec![answer(0.7)])],
            worlds: vec![(1, vec![answer(0.1)]), (16, vec![answer(0.14)])],
        }
    }

    #[test]
    fn ratios_are_those_of_rounds() {
        let text = simulators(&results());
        assert!(text.contains("eyas simulates 25.0 ×"), "{text}");
        assert!(text.contains("| 19.20 |"), "{text}");
        let without_ns3 = Results { ns3: Vec::new(), ..results() };
        assert!(!simulators(&without_ns3).contains("ns-3"));
    }

    #[test]
    fn expectations_hold_or_not() {
        let text = expectations(&results());
        assert!(text.contains("| 25.00 | yes |"), "{text}");
        assert!(text.contains("| 1.40 | **no** |"), "{text}");
        let without_ns3 = Results { ns3: Vec::new(), ..results() };
        assert!(expectations(&without_ns3).contains("not measured"));
    }

    #[test]
    fn growth_is_shown_for_each_doubling() {
        let text = worlds(&results().worlds);
        // 40 ns more for four doublings.
        assert!(text.contains("| 16 | 140 | +10.0 |"), "{text}");
        assert!(streams(&results().streams).contains("| 1000 | 0.70 | 700 | 1.40 |"));
    }
}
