//! `eyas doctor`: what this machine and this network let through, and what to do about the rest.
//!
//! ```text
//! examination ─▶ DoctorFindings ─▶ diagnosis ─▶ page or object
//!                                                 (mask)
//! ```
//!
//! | file | purpose |
//! | --- | --- |
//! | `findings` | the facts |
//! | `examination` | gathers them: the only part with sockets |
//! | `topic`, `diagnosis` | the verdict about each topic, and advice; pure |
//! | `page`, `object`, `mask` | the report |

mod diagnosis;
mod examination;
mod findings;
mod mask;
mod object;
mod page;
#[cfg(test)]
mod tests;
mod topic;

use std::time::Instant;

use self::findings::{DoctorFindings, MemoryFinding, PortalAnswer};
use self::mask::ReportMask;
use self::topic::{Topic, TopicVerdict, VerdictKind};
use super::setting::RaceContext;
use super::target;
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, DoctorFlags, VersionFlags};
use crate::output::{self, BodyProgress};
use crate::terminal::{OutputStyle, counted};

/// Examines, and reports.
pub(crate) async fn run(flags: &DoctorFlags, common: &CommonFlags) -> Result<(), Failure> {
    examination::check_limit(flags.timeout)?;
    let since = Instant::now();
    let target = match &flags.target {
        Some(text) => Some(target::parse(text, &flags.service, VersionFlags::default())?),
        None => None,
    };
    let context = RaceContext::for_targets(
        eyas::Endpoint::builder(),
        (&flags.choice(), &flags.reach(), &flags.trust),
        target.as_slice(),
    )
    .await?;
    let progress = BodyProgress::text_line(!common.json, common.color);
    let subject = target.as_ref().map_or("this machine".to_owned(), ToString::to_string);
    progress.set_text(format!("examining {subject}"));
    let findings = examination::examine(flags, target.as_ref(), &context).await;
    progress.clear();
    report(findings?, flags, common, since)
}

fn report(
    mut findings: DoctorFindings,
    flags: &DoctorFlags,
    common: &CommonFlags,
    since: Instant,
) -> Result<(), Failure> {
    let mut mask = flags.mask.then(|| masked(&mut findings));
    let verdicts = diagnosis::diagnose(&findings);
    let failure = failure(&verdicts);
    if common.json {
        let mut object = object::object(&findings, &verdicts, since.elapsed());
        if let Some(mask) = &mut mask {
            mask.value(&mut object);
        }
        object["masked"] = flags.mask.into();
        return match failure {
            Some(failure) => Err(failure.with_details(object)),
            None => output::object(&object),
        };
    }
    let style = OutputStyle::of_stdout(common.color);
    output::page(&page::lines(&findings, &verdicts, mask.as_mut(), style), style)?;
    failure.map_or(Ok(()), Err)
}

/// Removes what no mask could recognise, and returns a mask for the rest.
fn masked(findings: &mut DoctorFindings) -> ReportMask {
    findings.machine.network = "network-1".to_owned();
    if let MemoryFinding::Unusable(why) = &mut findings.memory {
        // It has the path of a file, and so the name of its owner.
        *why = "the file cannot be used".to_owned();
    }
    let host = findings.host.iter().map(|host| host.host.clone());
    let portal = findings.portal.iter().flat_map(|portal| {
        let other = match &portal.answer {
            PortalAnswer::Response { redirects_to, .. } => redirects_to.clone(),
            PortalAnswer::Nothing => None,
        };
        [Some(portal.host.clone()), other].into_iter().flatten()
    });
    ReportMask::new(host.chain(portal))
}

/// Returns the failure if something is broken.
fn failure(verdicts: &[(Topic, TopicVerdict)]) -> Option<Failure> {
    let broken: Vec<&str> = verdicts
        .iter()
        .filter(|(_, verdict)| verdict.kind == VerdictKind::Broken)
        .map(|(topic, _)| topic.label())
        .collect();
    let count = counted(broken.len() as u64, "topic");
    (!broken.is_empty()).then(|| {
        Failure::new(FailureKind::Broken, format!("{count} broken: {}", broken.join(", ")))
    })
}
