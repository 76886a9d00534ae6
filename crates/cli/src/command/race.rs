//! `eyas race`: races, and shows the result, without fetching anything.

use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::race::policy::SctpSecurity;
use eyas::race::report::{PlanJson, RaceJson};
use eyas::race::target::Service;
use eyas::sctp::SctpAssociation;
use eyas::sctp::protocol::endpoint::PathStatus;
use eyas::{Connection, NameSource};
use serde_json::Value;

use super::linger::linger;
use super::paths::{shapes, summary};
use super::setting::{self, RaceContext};
use super::target;
use crate::failure::Failure;
use crate::flags::{CommonFlags, RaceFlags};
use crate::output;
use crate::race_report::{self, RaceReport, explanation, name_source};
use crate::shape::{NamesShape, value};
use crate::terminal::{Line, OutputStyle, Paint};
use crate::timeline;

/// The default time of each candidate with `--all`: enough for two retransmissions.
const ALL_DEADLINE: Duration = Duration::from_secs(8);
/// How long to wait for the late switch after a race was won.
const WATCH_TIME: Duration = Duration::from_secs(1);

/// Races and reports.
pub(crate) async fn run(flags: &RaceFlags, common: &CommonFlags) -> Result<(), Failure> {
    let target = target::parse(&flags.target, &flags.service, flags.versions)?;
    let context = RaceContext::new(&flags.choice, &flags.reach, &flags.trust, &target).await?;
    let mut policy = setting::policy(flags.policy, &flags.choice, &flags.reach, &target)?;
    if flags.all {
        policy.exhaustive = true;
        policy.ignore_memory = true;
        policy.sctp_security = SctpSecurity::Both;
        // The transports of a target that names them are used as given.
        if matches!(target.service, Service::Http { .. }) {
            let rest = Transport::ALL.into_iter();
            let rest: Vec<_> =
                rest.filter(|transport| !policy.transports.contains(transport)).collect();
            policy.transports.extend(rest);
        }
        if flags.reach.connect_timeout.is_none() && flags.reach.max_time.is_none() {
            policy.deadline = ALL_DEADLINE;
        }
    }
    let source = name_source(context.endpoint.resolver(), &target).filter(|_| flags.explain);
    let mut preconnection = context.endpoint.preconnection(target).policy(policy);
    if let Some(seed) = flags.choice.seed {
        preconnection = preconnection.seed(seed);
    }
    let mut initiation = preconnection.initiate();
    let connected = initiation.usable().await;
    if connected.is_ok() {
        // The late switch is part of the picture; waiting longer would not show more.
        let _ = tokio::time::timeout(WATCH_TIME, initiation.finished()).await;
        linger(|| initiation.trace(), &context.memory).await;
    }
    let association = connected.as_ref().ok().and_then(Connection::sctp);
    let paths = association.map(SctpAssociation::paths).unwrap_or_default();
    let race_report = RaceReport::from_trace(initiation.trace())?;
    if let Some(path) = &flags.trace {
        race_report::write(path, &race_report.trace)?;
    }
    context.warn(common);
    print(&race_report, source.as_ref(), &paths, flags, common)
}

fn print(
    race_report: &RaceReport,
    source: Option<&NameSource>,
    paths: &[PathStatus],
    flags: &RaceFlags,
    common: &CommonFlags,
) -> Result<(), Failure> {
    let style = OutputStyle::of_stdout(common.color);
    if common.json {
        let object = object(race_report, source, paths, flags);
        return match race_report.failure() {
            Some(failure) => Err(failure.with_details(object)),
            None => output::object(&object),
        };
    }
    let mut lines = heading(race_report);
    lines.extend(timeline::draw(&race_report.picture_with_dns(), style));
    if flags.all {
        lines.push(Line::new());
        lines.extend(race_report.table(style));
    }
    if paths.len() > 1 {
        lines.push(Line::new());
        let line = |path| Line::new().with(Paint::Dim, format!("  {}", summary(path)));
        lines.extend(paths.iter().map(line));
    }
    if flags.explain {
        lines.extend(explanation(&race_report.report.plan, source, style));
    }
    let (paint, verdict) = race_report.verdict();
    lines.push(Line::new());
    lines.extend(crate::terminal::wrapped(paint, &verdict, 0, style));
    output::page(&lines, style)?;
    race_report.failure().map_or(Ok(()), Err)
}

/// Describes a race that found no connection, and the failure of each candidate.
pub(super) fn failed_race_lines(race_report: &RaceReport, style: OutputStyle) -> Vec<Line> {
    let mut lines = heading(race_report);
    lines.extend(timeline::draw(&race_report.picture_with_dns(), style));
    lines.push(Line::new());
    lines.extend(race_report.table(style));
    lines
}

/// Returns the heading with the target of the race.
pub(super) fn heading(race_report: &RaceReport) -> Vec<Line> {
    let target = &race_report.trace.header.setup.target;
    let mut line = Line::new().with(Paint::Head, format!("Race to {target}"));
    if race_report.report.from_memory {
        line.push(Paint::Dim, "  led by memory");
    }
    vec![line, Line::new()]
}

fn object(
    race_report: &RaceReport,
    source: Option<&NameSource>,
    paths: &[PathStatus],
    flags: &RaceFlags,
) -> Value {
    let mut object = serde_json::json!({
        "target": flags.target,
        "all": flags.all,
    });
    if let (Value::Object(object), Value::Object(race)) =
        (&mut object, value(&RaceJson::from(&race_report.report)))
    {
        object.extend(race);
        object.insert("verdict".to_owned(), race_report.verdict().1.into());
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
