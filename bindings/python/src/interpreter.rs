//! The one interpreter of the process that the module serves.
//!
//! What is kept in statics, such as the classes and the runtime, belongs to the interpreter that imported the
//! module first. One with a GIL of its own is refused by Python itself; one that shares it is not.

use std::sync::OnceLock;

use pyo3::{exceptions::PyImportError, prelude::*};

/// Where the `sys` of the interpreter lies: each has its own, for as long as it lives.
static OWNER: OnceLock<usize> = OnceLock::new();

/// Takes the module for this interpreter, unless another one has it.
pub(crate) fn claim(py: Python<'_>) -> PyResult<()> {
    let here = py.import("sys")?.as_ptr() as usize;
    if *OWNER.get_or_init(|| here) == here {
        return Ok(());
    }
    Err(PyImportError::new_err("the module does not support subinterpreters"))
}
