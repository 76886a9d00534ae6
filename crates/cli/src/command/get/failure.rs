//! Errors of the HTTP client as failures of the command.

use eyas_http::{Error, Kind as HttpKind};

use crate::account::Account;
use crate::failure::{Failure, Kind};

/// The failure that an error is. If a race failed, the race tells more than the client.
pub(super) fn of(error: &Error) -> Failure {
    let account = error.trace().and_then(|trace| Account::of(trace.clone()).ok());
    if let Some(failure) = account.as_ref().and_then(Account::failure) {
        return failure;
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
        HttpKind::ConnectTimeout | HttpKind::TotalTimeout | HttpKind::IdleTimeout => Kind::Timeout,
        HttpKind::Redirect => Kind::Redirect,
        HttpKind::BodyReset | HttpKind::BodyTruncated | HttpKind::BodyLength => Kind::Partial,
        HttpKind::RequestBody => Kind::Read,
        _ => Kind::Protocol,
    }
}
