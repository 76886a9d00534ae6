//! `eyas race --count`: the same race again and again, and what it says about each transport.

use std::collections::BTreeMap;
use std::time::Duration;

use eyas::race::report::{AttemptOutcome, AttemptReport};
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;

use super::setup::RacePreparation;
use crate::failure::Failure;
use crate::flags::{CommonFlags, RaceFlags};
use crate::output::{self, BodyProgress};
use crate::race_report::ReplayedRace;
use crate::shape::millis;
use crate::terminal::{OutputStyle, Paint, PaintedLine, counted, table_of_numbers, time};

/// The time from one race to the next, unless the user chooses one.
const INTERVAL: Duration = Duration::from_secs(1);

/// Races as often as requested, or until Ctrl-C, and reports.
pub(crate) async fn run(
    flags: &RaceFlags,
    count: u32,
    common: &CommonFlags,
) -> Result<(), Failure> {
    let mut interruption = crate::command::listen()?;
    let setup = RacePreparation::new(flags).await?;
    let mut series = RaceSeries::default();
    let mut last = None;
    let line = BodyProgress::text_line(!common.json, common.color);
    let interval = flags.interval.unwrap_or(INTERVAL);
    let mut ticks = tokio::time::interval(interval.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0..count {
        line.set_text(format!("race {} of {count}", number + 1));
        let race = async {
            ticks.tick().await;
            setup.race(u64::from(number)).await
        };
        tokio::select! {
            race = race => {
                let report = race?.report;
                series.add(&report);
                last = Some(report);
            }
            kind = interruption.next() => {
                if last.is_none() {
                    return Err(Failure::new(kind, "interrupted"));
                }
                series.interrupted = true;
                break;
            }
        }
    }
    line.clear();
    setup.context.warn(common);
    let failure = (series.connected == 0).then(|| last.as_ref().and_then(ReplayedRace::failure));
    print(&series, failure.flatten(), flags, interval, common)
}

fn print(
    series: &RaceSeries,
    failure: Option<Failure>,
    flags: &RaceFlags,
    interval: Duration,
    common: &CommonFlags,
) -> Result<(), Failure> {
    if common.json {
        let mut object = series.to_json();
        object["target"] = flags.target.as_str().into();
        object["interval_ms"] = millis(interval).into();
        return match failure {
            Some(failure) => Err(failure),
            None => output::object(&object),
        };
    }
    let style = OutputStyle::of_stdout(common.color);
    let races = counted(series.races, "race");
    let mut lines = vec![
        PaintedLine::new()
            .with_span(Paint::Head, format!("{races} to {}", flags.target))
            .with_span(Paint::Dim, format!("  one every {}", time(interval))),
        PaintedLine::new(),
    ];
    lines.extend(series.table(style));
    if series.races > series.connected {
        let without = counted(series.races - series.connected, "race");
        lines.push(PaintedLine::new());
        lines.push(
            PaintedLine::new()
                .with_span(Paint::Bad, format!("  without any connection: {without}")),
        );
    }
    output::page(&lines, style)?;
    failure.map_or(Ok(()), Err)
}

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AttemptGroup {
    transport: &'static str,
    security: &'static str,
    family: &'static str,
}

impl AttemptGroup {
    fn text(&self) -> String {
        let Self { transport, security, family } = self;
        let family = if *family == "v6" { "IPv6" } else { "IPv4" };
        match *security {
            "none" => format!("{transport} {family}"),
            security => format!("{transport} {security} {family}"),
        }
    }
}

/// What became of the attempts of a group.
#[derive(Clone, Debug, Default, PartialEq)]
struct GroupRow {
    tried: u64,
    /// How often it was ready before all others.
    first: u64,
    /// From the start of each attempt until it was ready, in milliseconds.
    took: Vec<f64>,
    /// How the others failed.
    failures: BTreeMap<String, u64>,
}

/// The outcomes of a series of races.
#[derive(Clone, Debug, Default, PartialEq)]
struct RaceSeries {
    races: u64,
    /// Races in which at least one candidate was ready.
    connected: u64,
    interrupted: bool,
    rows: BTreeMap<AttemptGroup, GroupRow>,
}

impl RaceSeries {
    fn add(&mut self, report: &ReplayedRace) {
        self.races += 1;
        let attempts: Vec<(&AttemptReport, String)> = report.outcomes().collect();
        self.connected += u64::from(attempts.iter().any(|(attempt, _)| is_ready(attempt)));
        for (attempt, why_not) in attempts {
            self.add_attempt(attempt, why_not);
        }
    }

    fn add_attempt(&mut self, attempt: &AttemptReport, why_not: String) {
        let group = AttemptGroup {
            // A fallback is a loss of what was tried.
            transport: if attempt.fell_back { "mptcp" } else { attempt.transport.name() },
            security: attempt.security.name(),
            family: if attempt.address.starts_with('[') { "v6" } else { "v4" },
        };
        let row = self.rows.entry(group).or_default();
        row.tried += 1;
        match (is_ready(attempt), attempt.fell_back, attempt.ended_ms) {
            (true, false, Some(ended)) => {
                row.took.push((ended - attempt.started_ms).max(0.0));
                row.first += u64::from(attempt.outcome == AttemptOutcome::Won);
            }
            (true, ..) => *row.failures.entry("fell back to tcp".to_owned()).or_default() += 1,
            (false, ..) => *row.failures.entry(why_not).or_default() += 1,
        }
    }

    fn table(&self, style: OutputStyle) -> Vec<PaintedLine> {
        let rows = self.rows.iter().map(|(group, row)| {
            let lost = row.lost();
            let mut cells = vec![
                (Paint::Plain, group.text()),
                (Paint::Plain, row.tried.to_string()),
                (if lost > 0 { Paint::Bad } else { Paint::Good }, row.lost_text()),
            ];
            let values = row.values().map(|values| {
                [values.p50, values.p90, values.p99, values.max]
                    .map(|value| time(Duration::from_secs_f64(value / 1e3)))
            });
            cells.extend(values.unwrap_or_default().map(|text| (Paint::Plain, text)));
            cells
        });
        let header = ["", "tried", "lost", "median", "90 %", "99 %", "longest"];
        let mut lines = table_of_numbers(&header, rows.collect(), style);
        let reasons: Vec<PaintedLine> = self.rows.iter().filter_map(Self::reasons).collect();
        if !reasons.is_empty() {
            lines.push(PaintedLine::new());
            lines.extend(reasons);
        }
        lines
    }

    fn reasons((group, row): (&AttemptGroup, &GroupRow)) -> Option<PaintedLine> {
        let each: Vec<String> =
            row.failures.iter().map(|(why, number)| format!("{number} × {why}")).collect();
        let name = format!("  {}: ", group.text());
        (!each.is_empty()).then(|| {
            PaintedLine::new().with_span(Paint::Dim, name).with_span(Paint::Plain, each.join(", "))
        })
    }

    fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|(group, row)| {
            json!({
                "transport": group.transport,
                "security": group.security,
                "family": group.family,
                "tried": row.tried,
                "ready": row.took.len(),
                "lost": row.lost(),
                "first": row.first,
                "times_ms": row.values().map(TimeDistribution::to_json),
                "failures": row.failures,
            })
        });
        json!({
            "races": self.races,
            "connected": self.connected,
            "interrupted": self.interrupted,
            "rows": rows.collect::<Vec<_>>(),
        })
    }
}

fn is_ready(attempt: &AttemptReport) -> bool {
    matches!(attempt.outcome, AttemptOutcome::Won | AttemptOutcome::Upgraded | AttemptOutcome::Lost)
}

impl GroupRow {
    fn lost(&self) -> u64 {
        self.tried - self.took.len() as u64
    }

    fn lost_text(&self) -> String {
        match self.lost() {
            0 => "0".to_owned(),
            lost => format!("{lost} ({:.0} %)", 100.0 * lost as f64 / self.tried as f64),
        }
    }

    fn values(&self) -> Option<TimeDistribution> {
        let mut sorted = self.took.clone();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        // The nearest rank: a time that was measured.
        let at = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted[rank.clamp(1, sorted.len()) - 1]
        };
        let number = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / number;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if sorted.len() > 1 { (squares / (number - 1.0)).sqrt() } else { 0.0 };
        Some(TimeDistribution {
            min,
            mean,
            deviation,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max,
        })
    }
}

/// The distribution of a time, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TimeDistribution {
    min: f64,
    mean: f64,
    deviation: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    max: f64,
}

impl TimeDistribution {
    fn to_json(self) -> Value {
        let rounded = |value: f64| (value * 1e3).round() / 1e3;
        json!({
            "min": rounded(self.min),
            "mean": rounded(self.mean),
            "deviation": rounded(self.deviation),
            "p50": rounded(self.p50),
            "p90": rounded(self.p90),
            "p99": rounded(self.p99),
            "max": rounded(self.max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_times() {
        let row =
            GroupRow { tried: 11, took: (1..=10).map(f64::from).collect(), ..GroupRow::default() };
        let values = row.values().expect("there are some");
        assert_eq!((values.min, values.p50, values.p90, values.p99), (1.0, 5.0, 9.0, 10.0));
        assert_eq!((values.mean, values.max), (5.5, 10.0));
        assert!((values.deviation - 3.028).abs() < 1e-3, "{}", values.deviation);
        assert_eq!((row.lost(), row.lost_text().as_str()), (1, "1 (9 %)"));
        let one = GroupRow { tried: 1, took: vec![7.0], ..GroupRow::default() };
        let values = one.values().expect("there is one");
        assert_eq!((values.p50, values.p99, values.deviation), (7.0, 7.0, 0.0));
        assert_eq!(GroupRow::default().values(), None);
    }
}
