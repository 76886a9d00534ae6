//! `eyas plan`: the candidates that would be tried, in which order and why.

use eyas::race::report::PlanJson;
use serde_json::Value;

use super::setting::{self, RaceContext};
use super::target;
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, PlanFlags};
use crate::output;
use crate::race_report::{name_source, plan_lines, source_line};
use crate::shape::{NamesShape, value};
use crate::terminal::{OutputStyle, Paint, PaintedLine};

/// Queries DNS and the memory, and reports what would be tried.
pub(crate) async fn run(flags: &PlanFlags, common: &CommonFlags) -> Result<(), Failure> {
    let target = target::parse(&flags.target, &flags.service, flags.versions)?;
    let context = RaceContext::new(&flags.choice, &flags.reach, &flags.trust, &target).await?;
    let policy = setting::policy(flags.policy, &flags.choice, &flags.reach, &target)?;
    let name = target.to_string();
    let source = name_source(context.endpoint.resolver(), &target);
    let mut preconnection = context.endpoint.preconnection(target).policy(policy);
    if let Some(seed) = flags.choice.seed {
        preconnection = preconnection.seed(seed);
    }
    let plan = preconnection.plan().await;
    context.warn(common);
    // What was left out has a reason; a name without addresses has nothing to report about.
    let is_unknown = plan.entries.is_empty() && plan.dropped.is_empty();
    let failure = is_unknown.then(|| {
        let from = source.as_ref().map(|source| format!(" from {source}")).unwrap_or_default();
        Failure::new(FailureKind::Dns, format!("DNS gave no address for {name}{from}"))
            .hint("is the name right, and does DNS answer? --dns-server ADDR asks another server")
    });
    if common.json {
        let mut object = serde_json::json!({ "target": flags.target });
        if let (Value::Object(object), Value::Object(plan)) =
            (&mut object, value(&PlanJson::from(&plan)))
        {
            object.extend(plan);
            if let Some(source) = &source {
                object.insert("names".to_owned(), value(&NamesShape::from(source)));
            }
        }
        return match failure {
            Some(failure) => Err(failure.with_details(object)),
            None => output::object(&object),
        };
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    let style = OutputStyle::of_stdout(common.color);
    let mut lines = vec![
        PaintedLine::new()
            .with_span(Paint::Head, format!("Plan for {name}"))
            .with_span(Paint::Dim, "  nothing was connected"),
        PaintedLine::new(),
    ];
    if let Some(source) = &source {
        lines.push(source_line(source));
        lines.push(PaintedLine::new());
    }
    lines.extend(plan_lines(&plan, style));
    if plan.entries.is_empty() {
        lines.push(PaintedLine::new().with_span(Paint::Bad, "  Nothing can be tried."));
    }
    output::page(&lines, style)
}
