//! `eyas load`: requests that arrive when they are due, over any transport.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | running the load in a separate thread, Ctrl-C, the object |
//! | `requested` | converting flags to a load |
//! | `files` | results second by second |
//! | `page` | the live line, and the report on a terminal |

mod files;
mod page;
mod requested;

use eyas_load::{LoadError, LoadOutcome, LoadStop, LoadSummary};
use serde_json::{Value, json};
use url::Url;

use self::{files::LoadFiles, requested::RequestedLoad};
use crate::failure::{Failure, FailureKind};
use crate::flags::{ColorChoice, CommonFlags, LoadFlags};
use crate::output::{self, BodyProgress};
use crate::terminal::{self, OutputStyle, count, counted};

/// Generates the load until it is over or Ctrl-C ends it, and reports the outcome.
pub(crate) async fn run(flags: LoadFlags, common: CommonFlags) -> Result<(), Failure> {
    let mut interruption = super::listen()?;
    let requested = requested::read(&flags).await?;
    super::descriptors::raise_limit();
    let stop = LoadStop::default();
    let stopped = stop.clone();
    let work = tokio::task::spawn_blocking(move || {
        let outcome = generate(&requested, &flags, &stopped, !common.json, common.color)?;
        print(&requested, &outcome, &common)
    });
    tokio::pin!(work);
    let mut is_stopping = false;
    loop {
        tokio::select! {
            finished = &mut work => {
                return finished.unwrap_or_else(|cause| {
                    Err(Failure::new(FailureKind::Interrupted, cause.to_string()))
                });
            }
            kind = interruption.next() => {
                if is_stopping {
                    return Err(Failure::new(kind, "interrupted"));
                }
                is_stopping = true;
                stop.stop();
            }
        }
    }
}

fn generate(
    requested: &RequestedLoad,
    flags: &LoadFlags,
    stop: &LoadStop,
    watched: bool,
    color: ColorChoice,
) -> Result<LoadOutcome, Failure> {
    let mut files = LoadFiles::create(&flags.files)?;
    let line = BodyProgress::text_line(watched, color);
    let mut write_failure = None;
    let outcome = eyas_load::run(&requested.load, stop, |progress| {
        line.set_text(page::progress_line(progress, terminal::current_width()));
        if let Err(failure) = files.add(progress) {
            write_failure = Some(failure);
            stop.stop();
        }
    });
    line.clear();
    let outcome = outcome.map_err(|cause| refused(&cause))?;
    match write_failure {
        Some(failure) => Err(failure),
        None => files.finish().map(|()| outcome),
    }
}

fn refused(cause: &LoadError) -> Failure {
    let kind = match cause {
        LoadError::Url(_) | LoadError::Object(_) => FailureKind::Url,
        LoadError::Endpoint(_) => FailureKind::Identity,
        LoadError::Machine(_) => FailureKind::Connect,
        _ => FailureKind::Usage,
    };
    Failure::new(kind, cause.to_string())
}

fn print(
    requested: &RequestedLoad,
    outcome: &LoadOutcome,
    common: &CommonFlags,
) -> Result<(), Failure> {
    let summary = outcome.summary();
    if let Some(failure) = failure_without_responses(&requested.load.url, &summary) {
        return Err(failure.with_details(object(requested, &summary)?));
    }
    if common.json {
        return output::object(&object(requested, &summary)?);
    }
    let style = OutputStyle::of_stdout(common.color);
    output::page(&page::report(requested, &summary, style), style)
}

/// Returns a failure if there was no response at all: then the measurements do not describe the
/// server.
fn failure_without_responses(url: &Url, summary: &LoadSummary) -> Option<Failure> {
    if summary.answered > 0 {
        return None;
    }
    let Some(error) = summary.errors.first() else {
        return (summary.unfinished > 0 && !summary.interrupted).then(|| {
            let requests = counted(summary.unfinished, "request");
            Failure::new(
                FailureKind::Timeout,
                format!("the load ended before any of {requests} was answered"),
            )
            .hint("--duration gives it more time, --max-time limits each request")
        });
    };
    let kind = match error.kind.as_str() {
        "timeout" => FailureKind::Timeout,
        name => eyas_http::Kind::from_name(name).map_or(FailureKind::Protocol, FailureKind::from),
    };
    // For certificates the hint names flags.
    let cause = match kind {
        FailureKind::Certificate => {
            error.first.rsplit_once("; ").map_or(&*error.first, |(what, _)| what)
        }
        _ => &error.first,
    };
    let text = match (summary.intended, error.count) {
        (1, _) => format!("the only request was not answered: {cause}"),
        (all, failed) if all == failed => {
            format!("none of {} was answered: {cause}", counted(all, "request"))
        }
        (all, failed) => {
            let all = counted(all, "request");
            format!("none of {all} was answered; {}: {cause}", count(failed))
        }
    };
    let hint = match kind {
        FailureKind::Certificate => {
            "--cacert FILE trusts the certificates in FILE; -k accepts any".to_owned()
        }
        FailureKind::Dns => "is the name right? --dns-server ADDR asks another server".to_owned(),
        _ => {
            let origin = url.origin().ascii_serialization();
            format!("eyas race --all {origin}/ shows why each candidate fails")
        }
    };
    Some(Failure::new(kind, text).hint(hint))
}

fn object(requested: &RequestedLoad, summary: &LoadSummary) -> Result<Value, Failure> {
    let outcome = serde_json::to_value(summary)
        .map_err(|cause| Failure::new(FailureKind::Write, format!("cannot write JSON: {cause}")))?;
    Ok(json!({ "load": requested.shape(), "outcome": outcome }))
}
