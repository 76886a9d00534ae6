//! One call: its result, and panics, which must not reach the caller.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

use crate::{
    code::{Code, EYAS_OK},
    error::Failure,
    pointer::OutPointer,
};

/// Makes a call and returns its code; stores its error, or NULL.
pub(crate) fn ffi_call_with_code(
    error: OutPointer<'_, *mut Failure>,
    call: impl FnOnce() -> Result<Code, Failure>,
) -> Code {
    // State left inconsistent by a panic is behind locks; later calls use it as it is.
    let result = catch_unwind(AssertUnwindSafe(call));
    match result.unwrap_or_else(|panic| Err(Failure::of_panic(&*panic))) {
        Ok(code) => {
            error.store(ptr::null_mut());
            code
        }
        Err(failure) => {
            let code = failure.code();
            error.store_handle(failure);
            code
        }
    }
}

/// Like [`ffi_call_with_code`], for a call that only succeeds or fails.
pub(crate) fn ffi_call(
    error: OutPointer<'_, *mut Failure>,
    call: impl FnOnce() -> Result<(), Failure>,
) -> Code {
    ffi_call_with_code(error, || call().map(|()| EYAS_OK))
}

/// Drops a value and catches panics, which are reported on standard error.
pub(crate) fn release<T>(value: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}
