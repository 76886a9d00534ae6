//! Errors of the HTTP client as failures of the command.

use eyas_http::Error;

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
        failure.hint(error.next_step()).with_details(details)
    });
    match look {
        Some(_) => failure.with_below(below),
        None => failure,
    }
}

/// What happened, without the next step, which is the hint.
fn message(error: &Error) -> String {
    let whole = error.to_string();
    let step = format!("; {}", error.next_step());
    whole.strip_suffix(&step).unwrap_or(&whole).to_owned()
}
