//! Errors.

use std::{
    any::Any,
    ffi::{CString, c_char},
    fmt::Display,
    io,
};

use eyas::{ConnectError, Error, race::io::RaceFailure};
use eyas_sctp_tokio::SctpError;

use crate::{
    call::release,
    code::{
        Code, EYAS_BUG, EYAS_CANCELLED, EYAS_CERTIFICATE, EYAS_CLOSED, EYAS_CONNECT, EYAS_DNS,
        EYAS_INVALID, EYAS_IO, EYAS_MISUSE, EYAS_OK, EYAS_TIMEOUT, EYAS_TLS, EYAS_UNSUPPORTED,
    },
    json,
};

/// Why a call failed. A call that can fail takes a pointer to one of these, or NULL if only the
/// code is of interest. It is set to NULL, unless the call failed with a code other than
/// EYAS_WOULD_BLOCK and EYAS_END; then the caller must free it with eyas_error_free.
pub struct Failure {
    code: Code,
    message: CString,
    race: Option<CString>,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Display) -> Self {
        Self { code, message: json::c_string(message.to_string()), race: None }
    }

    pub(crate) fn invalid(message: impl Display) -> Self {
        Self::new(EYAS_INVALID, message)
    }

    pub(crate) fn misuse(message: impl Display) -> Self {
        Self::new(EYAS_MISUSE, message)
    }

    pub(crate) fn unsupported(message: impl Display) -> Self {
        Self::new(EYAS_UNSUPPORTED, message)
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::invalid(format_args!("{what} is NULL"))
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// The error for a panic, which is a bug of the library.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let message = panic.downcast_ref::<&str>().copied();
        let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::bug(message.unwrap_or("no message"))
    }

    /// The error for a bug of the library.
    pub(crate) fn bug(what: impl Display) -> Self {
        Self::new(EYAS_BUG, format_args!("a bug in eyas: {what}; please report it"))
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let code = match (error.failure(), error.cause()) {
            (RaceFailure::NoAddress(_), _) => EYAS_DNS,
            (RaceFailure::Cancelled, _) => EYAS_CANCELLED,
            _ if error.certificate().is_some() => EYAS_CERTIFICATE,
            (_, Some(cause)) if cause.is_of_security() => EYAS_TLS,
            (RaceFailure::Deadline(_), _) => EYAS_TIMEOUT,
            _ => EYAS_CONNECT,
        };
        let race = json::race(error.trace()).ok().map(json::c_text);
        Self { race, ..Self::new(code, &error) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Identity(_) | Error::PassphraseNeeded | Error::Security(_) => EYAS_TLS,
            Error::Resolver(_) | Error::Parameters(_) => EYAS_INVALID,
            _ => EYAS_IO,
        };
        Self::new(code, error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        let code = match error.kind() {
            Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::BrokenPipe
            | Kind::NotConnected
            | Kind::UnexpectedEof => EYAS_CLOSED,
            Kind::TimedOut => EYAS_TIMEOUT,
            Kind::InvalidInput => EYAS_INVALID,
            Kind::Unsupported => EYAS_UNSUPPORTED,
            Kind::InvalidData => EYAS_TLS,
            _ => EYAS_IO,
        };
        Self::new(code, error)
    }
}

impl From<SctpError> for Failure {
    fn from(error: SctpError) -> Self {
        let code = match &error {
            SctpError::Lost(_) | SctpError::Closed => EYAS_CLOSED,
            SctpError::StreamTaken(_) => EYAS_MISUSE,
            _ => EYAS_INVALID,
        };
        Self::new(code, error)
    }
}

/// Returns the code of an error, as returned by the call; EYAS_OK for NULL. May be called from any
/// thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_error_code(error: Option<&Failure>) -> Code {
    error.map_or(EYAS_OK, Failure::code)
}

/// Returns what went wrong and what to do about it, in English, UTF-8; the empty text for NULL. It
/// belongs to the error. May be called from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_error_message(error: Option<&Failure>) -> *const c_char {
    error.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// Returns the failed race as JSON (docs/reference/json.md: "A race"): each candidate, how far it came and
/// why it failed. NULL if the error is not from a race. It belongs to the error. May be called from
/// any thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_error_race_json(error: Option<&Failure>) -> *const c_char {
    error.and_then(|error| error.race.as_ref()).map_or(std::ptr::null(), |race| race.as_ptr())
}

/// Frees an error; NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_error_free(error: Option<Box<Failure>>) {
    release(error);
}
