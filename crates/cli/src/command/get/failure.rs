//! Errors of the HTTP client as failures of the command.

use eyas_http::{Error, Kind as HttpKind};

use crate::account::Account;
use crate::command::race::of_failed;
use crate::failure::{Failure, Kind};
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
    Failure::new(kind(error.kind()), message(error)).hint(error.next_step()).with_details(details)
}

/// What happened, without the next step, which is the hint.
fn message(error: &Error) -> String {
    let whole = error.to_string();
    let step = format!("; {}", error.next_step());
    whole.strip_suffix(&step).unwrap_or(&whole).to_owned()
}

fn kind(kind: HttpKind) -> Kind {
    match kind {
        HttpKind::Url => Kind::Url,
        HttpKind::Request => Kind::Usage,
        HttpKind::Dns => Kind::Dns,
        HttpKind::Connect | HttpKind::Proxy => Kind::Connect,
        HttpKind::Tls => Kind::Tls,
        HttpKind::Certificate => Kind::Certificate,
        HttpKind::ConnectTimeout | HttpKind::TotalTimeout | HttpKind::IdleTimeout => Kind::Timeout,
        HttpKind::Redirect => Kind::Redirect,
        HttpKind::BodyReset | HttpKind::BodyTruncated | HttpKind::BodyLength => Kind::Partial,
        HttpKind::RequestBody => Kind::Read,
        _ => Kind::Protocol,
    }
}
