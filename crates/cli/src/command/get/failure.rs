//! Errors of the HTTP client as failures of the command.

use eyas_http::Error;

use crate::account::Account;
use crate::command::race::of_failed;
use crate::failure::Failure;
use crate::terminal::Look;

/// The failure that an error is. If a race failed, the race tells more than the client, and with a
/// look the whole of it.
pub(super) fn of(error: &Error, look: Option<Look>) -> Failure {
    let account = error.trace().and_then(|trace| Account::of(trace.clone()).ok());
    if let Some(account) = &account
        && let Some(failure) = account.failure()
    {
        return match look {
            Some(look) => failure.with_below(of_failed(account, look)),
            None => failure,
        };
    }
    let details = super::tell::race_of(account.as_ref());
    Failure::new(error.kind().into(), message(error)).hint(error.next_step()).with_details(details)
}

/// What happened, without the next step, which is the hint.
fn message(error: &Error) -> String {
    let whole = error.to_string();
    let step = format!("; {}", error.next_step());
    whole.strip_suffix(&step).unwrap_or(&whole).to_owned()
}
