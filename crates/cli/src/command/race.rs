//! `eyas race`: races, and shows the result, without fetching anything.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | one race, and its report |
//! | `setup` | from the flags to a race |
//! | `series` | many races, and their statistics |

mod series;
mod setup;

use eyas::NameSource;
use eyas::race::report::{PlanJson, RaceJson};
use serde_json::Value;

pub(crate) use self::series::run as run_series;
use self::setup::{FinishedRace, RacePreparation};
use super::paths::{shapes, summary};
use crate::failure::Failure;
use crate::flags::{CommonFlags, RaceFlags};
use crate::output;
use crate::race_report::{self, ReplayedRace, connection_lines, explanation};
use crate::shape::{ConnectionShape, NamesShape, value};
use crate::terminal::{OutputStyle, Paint, PaintedLine};
use crate::timeline;

/// Races and reports.
pub(crate) async fn run(flags: &RaceFlags, common: &CommonFlags) -> Result<(), Failure> {
    let setup = RacePreparation::new(flags).await?;
    let finished = setup.race(0).await?;
    if let Some(path) = &flags.trace {
        race_report::write(path, &finished.report.trace)?;
    }
    setup.context.warn(common);
    print(&finished, setup.source.as_ref(), flags, common)
}

fn print(
    finished: &FinishedRace,
    source: Option<&NameSource>,
    flags: &RaceFlags,
    common: &CommonFlags,
) -> Result<(), Failure> {
    let FinishedRace { report: race_report, connection, paths } = finished;
    let style = OutputStyle::of_stdout(common.color);
    if common.json {
        let object = object(finished, source, flags);
        return match race_report.failure() {
            Some(failure) => Err(failure.with_details(object)),
            None => output::object(&object),
        };
    }
    let mut lines = heading(race_report);
    lines.extend(timeline::draw(&race_report.picture_with_dns(), style));
    if flags.all {
        lines.push(PaintedLine::new());
        lines.extend(race_report.table(style));
    }
    if paths.len() > 1 {
        lines.push(PaintedLine::new());
        let line = |path| PaintedLine::new().with_span(Paint::Dim, format!("  {}", summary(path)));
        lines.extend(paths.iter().map(line));
    }
    if flags.explain {
        lines.extend(explanation(&race_report.report.plan, source, style));
    }
    let (paint, verdict) = race_report.verdict();
    lines.push(PaintedLine::new());
    lines.extend(connection.iter().flat_map(connection_lines));
    lines.extend(crate::terminal::wrapped(paint, &verdict, 0, style));
    output::page(&lines, style)?;
    race_report.failure().map_or(Ok(()), Err)
}

/// Describes a race that found no connection, and the failure of each candidate.
pub(super) fn failed_race_lines(
    race_report: &ReplayedRace,
    style: OutputStyle,
) -> Vec<PaintedLine> {
    let mut lines = heading(race_report);
    lines.extend(timeline::draw(&race_report.picture_with_dns(), style));
    lines.push(PaintedLine::new());
    lines.extend(race_report.table(style));
    lines
}

/// Returns the heading with the target of the race.
pub(super) fn heading(race_report: &ReplayedRace) -> Vec<PaintedLine> {
    let target = &race_report.trace.header.setup.target;
    let mut line = PaintedLine::new().with_span(Paint::Head, format!("Race to {target}"));
    if race_report.report.from_memory {
        line.push(Paint::Dim, "  led by what earlier races learnt: see eyas memory");
    }
    vec![line, PaintedLine::new()]
}

fn object(finished: &FinishedRace, source: Option<&NameSource>, flags: &RaceFlags) -> Value {
    let FinishedRace { report: race_report, connection, paths } = finished;
    let mut object = serde_json::json!({
        "target": flags.target,
        "all": flags.all,
    });
    if let (Value::Object(object), Value::Object(race)) =
        (&mut object, value(&RaceJson::from(&race_report.report)))
    {
        object.extend(race);
        object.insert("verdict".to_owned(), race_report.verdict().1.into());
        if let Some(connection) = connection {
            object.insert("connection".to_owned(), value(&ConnectionShape::from(connection)));
        }
        if !paths.is_empty() {
            object.insert("paths".to_owned(), value(&shapes(paths)));
        }
        if flags.explain {
            object.insert("plan".to_owned(), value(&PlanJson::from(&race_report.report.plan)));
        }
        if let Some(source) = source {
            object.insert("names".to_owned(), value(&NamesShape::from(source)));
        }
    }
    object
}
