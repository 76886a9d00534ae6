//! `eyas load`: requests that arrive when they are due, over any transport.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | running the load in a separate thread, Ctrl-C, the object |
//! | `wanted` | converting flags to a load |
//! | `files` | results second by second |
//! | `page` | the live line, and the report on a terminal |

mod files;
mod page;
mod wanted;

use eyas_lab::load::{self, LoadError, Outcome, Stop, Summary};
use serde_json::{Value, json};
use url::Url;

use self::{files::Files, wanted::Wanted};
use crate::failure::{Failure, Kind};
use crate::flags::{ColorChoice, CommonFlags, LoadFlags};
use crate::output::{self, Progress};
use crate::terminal::{self, OutputStyle};

/// Generates the load until it is over or Ctrl-C ends it, and reports the outcome.
pub(crate) async fn run(flags: LoadFlags, common: CommonFlags) -> Result<(), Failure> {
    let mut interruption = super::listen()?;
    let wanted = wanted::read(&flags).await?;
    super::descriptors::raise_limit();
    let stop = Stop::default();
    let stopped = stop.clone();
    let work = tokio::task::spawn_blocking(move || {
        let outcome = put_on(&wanted, &flags, &stopped, !common.json, common.color)?;
        print(&wanted, &outcome, &common)
    });
    tokio::pin!(work);
    let mut is_asked = false;
    loop {
        tokio::select! {
            finished = &mut work => {
                return finished.unwrap_or_else(|cause| {
                    Err(Failure::new(Kind::Interrupted, cause.to_string()))
                });
            }
            kind = interruption.next() => {
                if is_asked {
                    return Err(Failure::new(kind, "interrupted"));
                }
                is_asked = true;
                stop.stop();
            }
        }
    }
}

fn put_on(
    wanted: &Wanted,
    flags: &LoadFlags,
    stop: &Stop,
    watched: bool,
    color: ColorChoice,
) -> Result<Outcome, Failure> {
    let mut files = Files::create(&flags.files)?;
    let line = Progress::of_words(watched, color);
    let mut unwritable = None;
    let outcome = load::run(&wanted.load, stop, |progress| {
        line.say(page::live(progress, terminal::room()));
        if let Err(failure) = files.add(progress) {
            unwritable = Some(failure);
            stop.stop();
        }
    });
    line.clear();
    let outcome = outcome.map_err(|cause| refused(&cause))?;
    match unwritable {
        Some(failure) => Err(failure),
        None => files.finish().map(|()| outcome),
    }
}

fn refused(cause: &LoadError) -> Failure {
    let kind = match cause {
        LoadError::Url(_) | LoadError::Object(_) => Kind::Url,
        LoadError::Endpoint(_) => Kind::Identity,
        LoadError::Machine(_) => Kind::Connect,
        _ => Kind::Usage,
    };
    Failure::new(kind, cause.to_string())
}

fn print(wanted: &Wanted, outcome: &Outcome, common: &CommonFlags) -> Result<(), Failure> {
    let summary = outcome.summary();
    if let Some(failure) = nothing_at_all(&wanted.load.url, &summary) {
        return Err(failure.with_details(object(wanted, &summary)?));
    }
    if common.json {
        return output::object(&object(wanted, &summary)?);
    }
    let style = OutputStyle::of_stdout(common.color);
    output::page(&page::report(wanted, &summary, style), style)
}

/// Returns a failure if there was no response at all: then the measurements do not describe the
/// server.
fn nothing_at_all(url: &Url, summary: &Summary) -> Option<Failure> {
    let trouble = summary.troubles.first()?;
    if summary.answered > 0 {
        return None;
    }
    let kind = match trouble.kind.as_str() {
        "timeout" => Kind::Timeout,
        name => eyas_http::Kind::from_name(name).map_or(Kind::Protocol, Kind::from),
    };
    // For certificates the hint names flags.
    let cause = match kind {
        Kind::Certificate => {
            trouble.first.rsplit_once("; ").map_or(&*trouble.first, |(what, _)| what)
        }
        _ => &trouble.first,
    };
    let text = match (summary.intended, trouble.count) {
        (1, _) => format!("the only request was not answered: {cause}"),
        (all, count) if all == count => format!("none of {all} requests was answered: {cause}"),
        (all, count) => format!("none of {all} requests was answered; {count} of them: {cause}"),
    };
    let hint = match kind {
        Kind::Certificate => {
            "--cacert FILE trusts the certificates in FILE; -k accepts any".to_owned()
        }
        Kind::Dns => "is the name right? --dns-server ADDR asks another server".to_owned(),
        _ => {
            let origin = url.origin().ascii_serialization();
            format!("eyas race --all {origin}/ shows why each candidate fails")
        }
    };
    Some(Failure::new(kind, text).hint(hint))
}

fn object(wanted: &Wanted, summary: &Summary) -> Result<Value, Failure> {
    let outcome = serde_json::to_value(summary)
        .map_err(|cause| Failure::new(Kind::Write, format!("cannot write JSON: {cause}")))?;
    Ok(json!({ "load": wanted.shape(), "outcome": outcome }))
}
