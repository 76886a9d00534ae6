//! Errors of Rust as exceptions of Python, which `eyas/_errors.py` defines.

use std::error::Error as StdError;

use eyas::{
    ConnectError, Error,
    race::{evidence::Cause, io::RaceFailure},
    sctp::{SctpError, protocol::error::Error as Misuse},
};
use eyas_http::Kind;
use pyo3::{exceptions::PyOSError, prelude::*};

/// The kind of a call on an association that is over.
const ASSOCIATION_CLOSED: &str = "association-closed";
/// The kind of calls on an association that ended, and not in order.
const ASSOCIATION_LOST: &str = "association-lost";

/// What an exception is made of.
#[derive(IntoPyObject)]
struct Facts {
    /// One of [`kinds`].
    kind: String,
    message: String,
    url: Option<String>,
    /// Each candidate that was tried, with the cause of its failure.
    candidates: Vec<(String, String)>,
    /// The causes, what tells most first.
    causes: Vec<String>,
}

impl Facts {
    fn plain(kind: &str, message: impl std::fmt::Display) -> Self {
        let (kind, message) = (kind.to_owned(), message.to_string());
        Self { message, url: None, candidates: Vec::new(), causes: vec![kind.clone()], kind }
    }

    fn of_race(error: &ConnectError) -> Self {
        let name = |cause: Option<Cause>| cause.unwrap_or(Cause::Deadline).name().to_owned();
        let attempts = error.attempts();
        let candidates: Vec<_> = attempts
            .into_iter()
            .map(|(candidate, failure)| {
                (candidate.to_string(), name(failure.map(|failure| failure.cause)))
            })
            .collect();
        let mut causes: Vec<String> =
            error.cause().map(|cause| name(Some(cause))).into_iter().collect();
        for (_, cause) in &candidates {
            if !causes.contains(cause) {
                causes.push(cause.clone());
            }
        }
        let kind = kind(error);
        if causes.is_empty() {
            causes.push(kind.name().to_owned());
        }
        Self {
            kind: kind.name().to_owned(),
            message: error.to_string(),
            url: None,
            candidates,
            causes,
        }
    }

    fn of_http(error: &eyas_http::Error) -> Self {
        let (kind, message) = (error.kind().name().to_owned(), error.to_string());
        let url = error.url().map(str::to_owned);
        if let Some(race) = find::<ConnectError>(error) {
            return Self { message, url, ..Self::of_race(race) };
        }
        let of = |candidate: &str| (candidate.to_owned(), kind.clone());
        let candidates = error.candidate().map(of).into_iter().collect();
        Self { message, url, candidates, causes: vec![kind.clone()], kind }
    }

    /// The exception; in an interpreter that has none of ours, what kept it from being made.
    fn raise(self, cause: Option<PyErr>) -> PyErr {
        Python::attach(|py| {
            let made = py
                .import("eyas._errors")
                .and_then(|errors| errors.getattr("of"))
                .and_then(|of| of.call1((self,)));
            match made {
                Ok(exception) => {
                    let raised = PyErr::from_value(exception);
                    if cause.is_some() {
                        raised.set_cause(py, cause);
                    }
                    raised
                }
                Err(error) => error,
            }
        })
    }
}

/// What kind of error a race without a winner is.
fn kind(error: &ConnectError) -> Kind {
    match (error.failure(), error.cause()) {
        (RaceFailure::NoAddress(_), _) => Kind::Dns,
        (RaceFailure::Cancelled, _) => Kind::Closed,
        _ if error.certificate().is_some() => Kind::Certificate,
        (_, Some(Cause::Certificate | Cause::Tls)) => Kind::Tls,
        (RaceFailure::Deadline(_), _) => Kind::ConnectTimeout,
        _ => Kind::Connect,
    }
}

/// The first error of a type beneath this one.
fn find<T: StdError + 'static>(error: &eyas_http::Error) -> Option<&T> {
    let mut next = error.source();
    while let Some(source) = next {
        if let Some(found) = source.downcast_ref::<T>() {
            return Some(found);
        }
        next = source.source();
    }
    None
}

/// Why a race found no connection.
pub(crate) fn of_race(error: &ConnectError) -> PyErr {
    Facts::of_race(error).raise(None)
}

/// Why an exchange failed. What the caller's own iterator raised becomes its cause.
pub(crate) fn of_http(error: &eyas_http::Error) -> PyErr {
    let own = find::<PyErr>(error).map(|own| Python::attach(|py| own.clone_ref(py)));
    Facts::of_http(error).raise(own)
}

/// What the caller gave cannot be used.
pub(crate) fn of_value(error: impl std::fmt::Display) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(error.to_string())
}

/// A URL or a host that cannot be used.
pub(crate) fn of_url(error: impl std::fmt::Display) -> PyErr {
    Facts::plain(Kind::Url.name(), error).raise(None)
}

/// The association is over, and how it came to that was said before.
pub(crate) fn of_closed(message: impl std::fmt::Display) -> PyErr {
    Facts::plain(ASSOCIATION_CLOSED, message).raise(None)
}

/// A call on an association failed.
pub(crate) fn of_sctp(error: &SctpError) -> PyErr {
    match error {
        SctpError::Lost(_) => Facts::plain(ASSOCIATION_LOST, error).raise(None),
        SctpError::Closed | SctpError::Misuse(Misuse::NoAssociation | Misuse::WrongState) => {
            of_closed(error)
        }
        _ => of_value(error),
    }
}

/// The name of every kind of failure that an `eyas.Error` can have from here.
#[pyfunction]
pub(crate) fn kinds() -> Vec<&'static str> {
    let own = [ASSOCIATION_CLOSED, ASSOCIATION_LOST];
    Kind::ALL.into_iter().map(Kind::name).chain(own).collect()
}

/// There is no listener.
pub(crate) fn of_listen(error: &Error) -> PyErr {
    let source = match error {
        Error::Listen(error) => &error.source,
        Error::Socket(error) => error,
        _ => return of_value(error),
    };
    match source.raw_os_error() {
        Some(code) => PyOSError::new_err((code, error.to_string())),
        None => PyOSError::new_err(error.to_string()),
    }
}

/// Seconds of Python as a duration.
pub(crate) fn duration(seconds: f64) -> PyResult<std::time::Duration> {
    std::time::Duration::try_from_secs_f64(seconds)
        .map_err(|_| of_value(format_args!("{seconds} is no number of seconds to wait")))
}
