//! Errors of the HTTP client as failures of the command.

use eyas_http::{Error, Kind};

use super::report;
use crate::command::race::of_failed;
use crate::failure::Failure;
use crate::race_report::RaceReport;
use crate::terminal::Look;

/// The failure that an error is. If a race failed, the race tells more than the client. With a look
/// it has what led there: the redirects, and how the race ran.
pub(super) fn of(error: &Error, look: Option<Look>) -> Failure {
    let race_report = error.trace().and_then(|trace| RaceReport::of(trace.clone()).ok());
    let raced = race_report.as_ref().and_then(RaceReport::failure);
    let mut below = report::hops(error.redirected());
    if let (Some(race_report), Some(look), true) = (&race_report, look, raced.is_some()) {
        below.extend(of_failed(race_report, look));
    }
    let failure = raced.unwrap_or_else(|| {
        let details = report::race_of(race_report.as_ref());
        let failure = Failure::new(error.kind().into(), message(error));
        failure.hint(next_step(error)).with_details(details)
    });
    let failure = match error.kind() {
        Kind::Proxy => of_proxy(failure),
        _ => failure,
    };
    match look {
        Some(_) => failure.with_below(below),
        None => failure,
    }
}

fn next_step(error: &Error) -> &'static str {
    let in_clear = error.url().is_some_and(|url| url.starts_with("http://"));
    match error.kind() {
        Kind::Protocol if in_clear => "does the port require TLS? use https://",
        _ => error.next_step(),
    }
}

/// Who asked for a server would look for its name in vain.
fn of_proxy(mut failure: Failure) -> Failure {
    if !failure.message.contains("proxy") {
        failure.message.insert_str(0, "the proxy: ");
    }
    failure.hint("-x URL or https_proxy sets a proxy; no_proxy lists the exceptions")
}

/// What happened, without the next step, which is the hint.
fn message(error: &Error) -> String {
    let whole = error.to_string();
    let step = format!("; {}", error.next_step());
    whole.strip_suffix(&step).unwrap_or(&whole).to_owned()
}
