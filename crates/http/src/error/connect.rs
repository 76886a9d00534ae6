//! Errors of races that found no connection.

use eyas::{
    ConnectError,
    race::{evidence::FailureCause, io::RaceFailure},
};

use super::{Error, Kind};

/// Converts the error of a race that found no connection.
pub(crate) fn connect_error(error: ConnectError) -> Error {
    let kind = match (error.failure(), error.cause()) {
        (RaceFailure::NoAddress(_), _) => Kind::Dns,
        (RaceFailure::Cancelled, _) => Kind::Closed,
        _ if error.certificate().is_some() => Kind::Certificate,
        (_, Some(cause)) if cause.is_of_security() => Kind::Tls,
        (RaceFailure::Deadline(_), None)
        | (_, Some(FailureCause::Silent | FailureCause::Deadline)) => Kind::ConnectTimeout,
        _ => Kind::Connect,
    };
    let trace = error.trace().clone();
    Error::from_source(kind, error).with_advice().with_trace(trace)
}
