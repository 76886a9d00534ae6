//! Errors of the HTTP client as failures of the command.

use eyas_http::Error;

use super::tell;
use crate::account::Account;
use crate::command::race::of_failed;
use crate::failure::Failure;
use crate::terminal::Look;

/// The failure that an error is. If a race failed, the race tells more than the client. With a look
/// it has what led there: the redirects, and how the race ran.
pub(super) fn of(error: &Error, look: Option<Look>) -> Failure {
    let account = error.trace().and_then(|trace| Account::of(trace.clone()).ok());
    let raced = account.as_ref().and_then(Account::failure);
    let mut below = tell::hops(error.redirected());
    if let (Some(account), Some(look), true) = (&account, look, raced.is_some()) {
        below.extend(of_failed(account, look));
    }
    let failure = raced.unwrap_or_else(|| {
        let details = tell::race_of(account.as_ref());
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
