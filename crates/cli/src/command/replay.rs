//! `eyas replay`: replays a recorded race.

use eyas::race::report::{PlanJson, RaceJson};
use serde_json::Value;

use crate::failure::Failure;
use crate::flags::{CommonFlags, ReplayFlags};
use crate::output;
use crate::race_report::{self, ReplayedRace, explanation};
use crate::shape::value;
use crate::terminal::{OutputStyle, Paint, PaintedLine, counted};
use crate::timeline;

/// Replays the race; a different decision is a failure that names the step.
pub(crate) fn run(flags: &ReplayFlags, common: &CommonFlags) -> Result<(), Failure> {
    let race_report = ReplayedRace::from_trace(race_report::read(&flags.file)?)?;
    if let Some(path) = &flags.svg {
        let title = format!("Race to {}", race_report.trace.header.setup.target);
        output::file(path, &timeline::svg(&title, &race_report.picture_with_dns()))?;
    }
    if common.json {
        let target = race_report.trace.header.setup.target.to_string();
        let mut object = serde_json::json!({ "identical": true, "target": target });
        if let (Value::Object(object), Value::Object(race)) =
            (&mut object, value(&RaceJson::from(&race_report.report)))
        {
            object.extend(race);
            if flags.explain {
                object.insert("plan".to_owned(), value(&PlanJson::from(&race_report.report.plan)));
            }
        }
        return output::object(&object);
    }
    let style = OutputStyle::of_stdout(common.color);
    let mut lines = super::race::heading(&race_report);
    lines.extend(timeline::draw(&race_report.picture_with_dns(), style));
    if flags.explain {
        lines.extend(explanation(&race_report.report.plan, None, style));
    }
    let steps = race_report.trace.steps.len();
    let text = format!("{}, all as recorded.", counted(steps as u64, "step"));
    lines.extend([PaintedLine::new(), PaintedLine::new().with_span(Paint::Good, text)]);
    output::page(&lines, style)
}
