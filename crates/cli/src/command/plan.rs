//! `eyas plan`: the candidates that would be tried, in which order and why.

use std::net::SocketAddr;

use eyas::race::report::PlanJson;
use eyas::{NameSource, Resolver, ServerEncryption};
use serde_json::Value;

use super::setting::{self, RaceContext};
use super::target;
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, PlanFlags};
use crate::output;
use crate::race_report::{name_source, plan_lines, source_line};
use crate::shape::{EncryptionShape, NamesShape, value};
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
    let encryption = encryption(context.endpoint.resolver(), source.as_ref()).await;
    context.warn(common);
    // What was left out has a reason; a name without addresses has nothing to report about.
    let is_unknown = plan.entries.is_empty() && plan.dropped.is_empty();
    let failure = is_unknown.then(|| {
        let mut text = format!("DNS gave no address for {name}");
        text.extend(source.iter().map(|source| format!(" from {source}")));
        text.extend(encryption.iter().map(|(server, known)| format!("; {server}: {known}")));
        Failure::new(FailureKind::Dns, text)
            .hint("is the name right, and does DNS answer? --dns-server ADDR asks another server")
    });
    if common.json {
        let mut object = serde_json::json!({ "target": flags.target });
        if let (Value::Object(object), Value::Object(plan)) =
            (&mut object, value(&PlanJson::from(&plan)))
        {
            object.extend(plan);
            if let Some(source) = &source {
                let encryption = encryption
                    .iter()
                    .map(|(server, encryption)| EncryptionShape::new(*server, encryption));
                let names = NamesShape { encryption: encryption.collect(), ..source.into() };
                object.insert("names".to_owned(), value(&names));
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
        lines.extend(encryption.iter().map(|(server, encryption)| {
            let text = format!("  queries to {server}: {encryption}");
            PaintedLine::new().with_span(Paint::Dim, text)
        }));
        lines.push(PaintedLine::new());
    }
    lines.extend(plan_lines(&plan, style));
    if plan.entries.is_empty() {
        lines.push(PaintedLine::new().with_span(Paint::Bad, "  Nothing can be tried."));
    }
    output::page(&lines, style)
}

/// Returns how the queries to each name server were encrypted, if they were for the resolver to encrypt.
async fn encryption(
    resolver: &Resolver,
    source: Option<&NameSource>,
) -> Vec<(SocketAddr, ServerEncryption)> {
    let is_asked = matches!(source, Some(NameSource::Queries { .. } | NameSource::Server { .. }));
    let known = if is_asked { resolver.encryption().await } else { Vec::new() };
    known.into_iter().filter(|(_, encryption)| *encryption != ServerEncryption::Off).collect()
}
