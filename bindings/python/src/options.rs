//! The options of calls, as the attributes of Python objects.

use pyo3::{
    exceptions::{PyOverflowError, PyTypeError, PyValueError},
    prelude::*,
};

/// How the error of a derived `FromPyObject` begins; the name of the attribute follows, after that of the type.
const FAILED: &str = "failed to extract field ";

/// Reads options. An argument of the wrong type is an error that names it.
pub(crate) fn read<'py, T>(object: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    object.extract().map_err(|error| named(object.py(), error))
}

fn named(py: Python<'_>, error: PyErr) -> PyErr {
    let (mut field, mut cause) = (None, error);
    loop {
        let text = cause.value(py).to_string();
        let Some(path) = text.strip_prefix(FAILED) else { break };
        field = Some(path.rsplit('.').next().unwrap_or(path).to_owned());
        match cause.cause(py) {
            Some(next) => cause = next,
            None => break,
        }
    }
    let Some(field) = field else { return cause };
    let message = format!("{field}: {}", cause.value(py));
    if cause.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(message)
    } else if cause.is_instance_of::<PyOverflowError>(py) {
        PyOverflowError::new_err(message)
    } else {
        PyValueError::new_err(message)
    }
}
