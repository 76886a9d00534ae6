//! One call: its result, and panics, which must not reach the caller.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

use crate::{
    code::{Code, EYAS_OK},
    error::Failure,
    pointer::Out,
};

/// Makes a call, and says what became of it.
pub(crate) fn answer(
    error: Out<'_, *mut Failure>,
    call: impl FnOnce() -> Result<Code, Failure>,
) -> Code {
    // What a panic leaves half done is behind locks, and those who come later see it as it is.
    let result = catch_unwind(AssertUnwindSafe(call));
    match result.unwrap_or_else(|panic| Err(Failure::of_panic(&*panic))) {
        Ok(code) => {
            error.put(ptr::null_mut());
            code
        }
        Err(failure) => {
            let code = failure.code();
            error.give(failure);
            code
        }
    }
}

/// The same for a call that gives nothing but its success.
pub(crate) fn done(
    error: Out<'_, *mut Failure>,
    call: impl FnOnce() -> Result<(), Failure>,
) -> Code {
    answer(error, || call().map(|()| EYAS_OK))
}

/// Drops a value; a panic has said on standard error what it is.
pub(crate) fn release<T>(value: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}
