//! Conversion of Rust errors into Python exceptions, which `eyas/_errors.py` defines.

use std::error::Error as StdError;

use eyas::{
    ConnectError, Error,
    race::{evidence::FailureCause, io::RaceFailure},
};
use eyas_http::Kind;
use eyas_sctp_tokio::{SctpError, protocol::error::Error as Misuse};
use pyo3::{exceptions::PyOSError, prelude::*};

/// The kind of an error of a call on an association that has been shut down.
const ASSOCIATION_CLOSED: &str = "association-closed";
/// The kind of an error of a call on an association that ended abnormally.
const ASSOCIATION_LOST: &str = "association-lost";

/// The fields of an exception.
#[derive(IntoPyObject)]
struct ErrorFields {
    /// One of [`kinds`].
    kind: String,
    message: String,
    url: Option<String>,
    /// Every attempted candidate, with the cause of its failure.
    candidates: Vec<(String, String)>,
    /// The causes, most informative first.
    causes: Vec<String>,
}

impl ErrorFields {
    fn new(kind: &str, message: impl std::fmt::Display) -> Self {
        let (kind, message) = (kind.to_owned(), message.to_string());
        Self { message, url: None, candidates: Vec::new(), causes: vec![kind.clone()], kind }
    }

    fn from_race(error: &ConnectError) -> Self {
        let name =
            |cause: Option<FailureCause>| cause.unwrap_or(FailureCause::Deadline).name().to_owned();
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

    fn from_http(error: &eyas_http::Error) -> Self {
        let (kind, message) = (error.kind().name().to_owned(), error.to_string());
        let url = error.url().map(str::to_owned);
        if let Some(race) = find::<ConnectError>(error) {
            return Self { message, url, ..Self::from_race(race) };
        }
        let failed = |candidate: &str| (candidate.to_owned(), kind.clone());
        let candidates = error.candidate().map(failed).into_iter().collect();
        Self { message, url, candidates, causes: vec![kind.clone()], kind }
    }

    /// Returns the exception, or the error that kept it from being created.
    fn into_exception(self, cause: Option<PyErr>) -> PyErr {
        Python::attach(|py| {
            let created = py
                .import("eyas._errors")
                .and_then(|errors| errors.getattr("from_native"))
                .and_then(|from_native| from_native.call1((self,)));
            match created {
                Ok(exception) => {
                    let exception = PyErr::from_value(exception);
                    if cause.is_some() {
                        exception.set_cause(py, cause);
                    }
                    exception
                }
                Err(error) => error,
            }
        })
    }
}

/// Returns the kind of error of a race without a winner.
fn kind(error: &ConnectError) -> Kind {
    match (error.failure(), error.cause()) {
        (RaceFailure::NoAddress(_), _) => Kind::Dns,
        (RaceFailure::Cancelled, _) => Kind::Closed,
        _ if error.certificate().is_some() => Kind::Certificate,
        (_, Some(FailureCause::Certificate | FailureCause::Tls)) => Kind::Tls,
        (RaceFailure::Deadline(_), _) => Kind::ConnectTimeout,
        _ => Kind::Connect,
    }
}

/// Returns the first error of a type in the chain of sources.
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

/// Converts the error of a race without a winner.
pub(crate) fn race_error(error: &ConnectError) -> PyErr {
    ErrorFields::from_race(error).into_exception(None)
}

/// Converts the error of an HTTP exchange. An exception of the caller's own iterator becomes its cause.
pub(crate) fn http_error(error: &eyas_http::Error) -> PyErr {
    let own = find::<PyErr>(error).map(|own| Python::attach(|py| own.clone_ref(py)));
    ErrorFields::from_http(error).into_exception(own)
}

/// Returns a `ValueError`: an argument cannot be used.
pub(crate) fn value_error(error: impl std::fmt::Display) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(error.to_string())
}

/// Returns a `LocalProtocolError`: a request cannot be sent as it is.
pub(crate) fn request_error(error: impl std::fmt::Display) -> PyErr {
    ErrorFields::new(Kind::Request.name(), error).into_exception(None)
}

/// Returns an `InvalidURL`: a URL or host cannot be used.
pub(crate) fn url_error(error: impl std::fmt::Display) -> PyErr {
    ErrorFields::new(Kind::Url.name(), error).into_exception(None)
}

/// Returns an `AssociationClosed`, for an association that has been shut down or whose loss was already reported.
pub(crate) fn association_closed(message: impl std::fmt::Display) -> PyErr {
    ErrorFields::new(ASSOCIATION_CLOSED, message).into_exception(None)
}

/// Converts the error of a call on an association.
pub(crate) fn sctp_error(error: &SctpError) -> PyErr {
    match error {
        SctpError::Lost(_) => ErrorFields::new(ASSOCIATION_LOST, error).into_exception(None),
        SctpError::Closed | SctpError::Misuse(Misuse::NoAssociation | Misuse::WrongState) => {
            association_closed(error)
        }
        _ => value_error(error),
    }
}

/// Returns the name of every kind of `eyas.Error` that this module creates.
#[pyfunction]
pub(crate) fn kinds() -> Vec<&'static str> {
    let own = [ASSOCIATION_CLOSED, ASSOCIATION_LOST];
    Kind::ALL.into_iter().map(Kind::name).chain(own).collect()
}

/// Converts the error of a listener that could not be opened.
pub(crate) fn listen_error(error: &Error) -> PyErr {
    let source = match error {
        Error::Listen(error) => &error.source,
        Error::Socket(error) => error,
        _ => return value_error(error),
    };
    match source.raw_os_error() {
        Some(code) => PyOSError::new_err((code, error.to_string())),
        None => PyOSError::new_err(error.to_string()),
    }
}

/// Converts seconds into a duration.
pub(crate) fn duration(seconds: f64) -> PyResult<std::time::Duration> {
    std::time::Duration::try_from_secs_f64(seconds)
        .map_err(|_| value_error(format_args!("{seconds} is not a valid number of seconds")))
}
