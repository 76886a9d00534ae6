//! Errors of the HTTP client as failures of the command.

use eyas_http::{Error, Kind};

use super::report;
use crate::command::race::failed_race_lines;
use crate::failure::{self, Failure};
use crate::race_report::ReplayedRace;
use crate::terminal::OutputStyle;

/// Converts an error to a failure. If a race failed, its failure is more informative than the
/// client's. With a style it also contains what led to it: the redirects and the race.
pub(super) fn from_error(error: &Error, style: Option<OutputStyle>) -> Failure {
    let race_report = error.trace().and_then(|trace| ReplayedRace::from_trace(trace.clone()).ok());
    let raced = race_report.as_ref().and_then(ReplayedRace::failure);
    let mut below = report::hops(error.redirected());
    if let (Some(race_report), Some(style), true) = (&race_report, style, raced.is_some()) {
        below.extend(failed_race_lines(race_report, style));
    }
    let is_of_proxy = error.kind() == Kind::Proxy;
    let failure = match raced {
        Some(failure) if is_of_proxy => of_proxy_race(failure),
        Some(failure) => failure,
        None => {
            let details = report::race_members(race_report.as_ref());
            let message = error.without_next_step().to_string();
            let failure = Failure::new(kind(error), message);
            failure.hint(next_step(error)).with_details(details)
        }
    };
    let failure = match is_of_proxy {
        true => failure.hint("-x URL or https_proxy sets a proxy; no_proxy lists the exceptions"),
        false => failure,
    };
    match style {
        Some(_) => failure.with_below(below),
        None => failure,
    }
}

/// Returns the kind of failure, and with it the exit code, which is curl's.
fn kind(error: &Error) -> failure::FailureKind {
    match error.kind() {
        Kind::Protocol if error.is_empty_reply() => failure::FailureKind::Empty,
        // The proxy was reached, and has answered.
        Kind::Proxy if error.status().is_some() => failure::FailureKind::Protocol,
        kind => kind.into(),
    }
}

fn next_step(error: &Error) -> &'static str {
    let is_cleartext = error.url().is_some_and(|url| url.starts_with("http://"));
    match error.kind() {
        Kind::BodyDecode => "without --compressed the body is written as it was sent",
        Kind::Protocol if is_cleartext && error.status().is_none() => {
            "does the port require TLS? use https://"
        }
        _ => error.next_step(),
    }
}

/// Adapts the failure of a race to a proxy, whose name the user did not enter as the server.
fn of_proxy_race(mut failure: Failure) -> Failure {
    failure.message.insert_str(0, "the proxy: ");
    failure
}
