//! The cookies of a client, which Python keeps.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use eyas_http::CookieStore;
use http::HeaderValue;
use pyo3::{prelude::*, types::PyList};
use url::Url;

use crate::finalization::{CallStart, InterpreterGuard};

/// A jar of cookies: an `eyas.Cookies`. The first request of a chain of redirects has its cookies already, from the
/// call, so that most requests do not need the GIL for them.
pub(crate) struct Cookies {
    jar: Py<PyAny>,
    /// Whether there has been a cookie at all.
    pub(crate) in_use: AtomicBool,
}

impl Cookies {
    pub(crate) fn new(py: Python<'_>, jar: &Py<PyAny>) -> Self {
        Self { jar: jar.clone_ref(py), in_use: AtomicBool::new(false) }
    }

    /// Calls into Python, unless it is exiting. An exception there is not the request's: it is reported like one of a
    /// destructor.
    fn call<T>(&self, function: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let _guard = InterpreterGuard::acquire(CallStart::now())?;
        Python::attach(|py| {
            let jar = self.jar.bind(py);
            function(jar).map_err(|error| error.write_unraisable(py, Some(jar))).ok()
        })
    }
}

impl CookieStore for Cookies {
    fn set_cookies(&self, fields: &mut dyn Iterator<Item = &HeaderValue>, url: &Url) {
        self.in_use.store(true, Ordering::Relaxed);
        self.call(|jar| {
            let fields = PyList::new(
                jar.py(),
                fields.map(|field| Bytes::copy_from_slice(field.as_bytes())).collect::<Vec<_>>(),
            )?;
            jar.call_method1("_store", (url.as_str(), fields)).map(drop)
        });
    }

    fn cookies(&self, url: &Url) -> Option<HeaderValue> {
        if !self.in_use.load(Ordering::Relaxed) {
            return None;
        }
        let field = self.call(|jar| {
            jar.call_method1("_field_for", (url.as_str(),))?
                .extract::<Option<Bytes>>()
                .map_err(PyErr::from)
        });
        HeaderValue::from_maybe_shared(field??).ok()
    }
}
