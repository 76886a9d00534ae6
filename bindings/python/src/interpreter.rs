//! The single interpreter of the process that can use the module.
//!
//! The contents of statics, such as the classes and the runtime, belong to the interpreter that imported the module
//! first. Python itself refuses the import in a subinterpreter with its own GIL, but not in one that shares the GIL.

use std::sync::OnceLock;

use pyo3::{exceptions::PyImportError, prelude::*};

/// The address of the interpreter's `sys` module, which is unique to it for as long as it lives.
static OWNER: OnceLock<usize> = OnceLock::new();

/// Reserves the module for this interpreter; fails if another one has it.
pub(crate) fn claim(py: Python<'_>) -> PyResult<()> {
    let here = py.import("sys")?.as_ptr() as usize;
    if *OWNER.get_or_init(|| here) == here {
        return Ok(());
    }
    Err(PyImportError::new_err("the module does not support subinterpreters"))
}
