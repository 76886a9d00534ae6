//! Arguments from and results to C: the only place that trusts the caller's pointers.
//!
//! The types here have the representation of C pointers. Only C creates them (and the tests, from
//! values checked by Rust), so what they point to is what the header requires.

use std::{
    ffi::{CStr, CString, c_char, c_void},
    marker::PhantomData,
    mem::MaybeUninit,
    slice,
};

use crate::error::Failure;

/// Where a call stores its result, or NULL.
#[repr(transparent)]
pub struct Out<'a, T>(Option<&'a mut MaybeUninit<T>>);

/// A NUL-terminated text of the caller, or NULL.
#[repr(transparent)]
pub struct Text<'a>(*const c_char, PhantomData<&'a c_char>);

/// A pointer to bytes of the caller, or NULL.
#[repr(transparent)]
pub struct Data<'a>(*const c_void, PhantomData<&'a [u8]>);

/// A pointer to a buffer of the caller, or NULL.
#[repr(transparent)]
pub struct Room<'a>(*mut c_void, PhantomData<&'a mut [u8]>);

impl<'a, T> Out<'a, T> {
    /// The place, which has to be one.
    pub(crate) fn place(self, what: &str) -> Result<&'a mut MaybeUninit<T>, Failure> {
        self.0.ok_or_else(|| Failure::null(what))
    }

    /// Puts the value there, if the caller wants it.
    pub(crate) fn put(self, value: T) {
        if let Some(place) = self.0 {
            place.write(value);
        }
    }
}

impl<'a, T> Out<'a, *mut T> {
    /// The place for a handle, which has to be one. There is NULL in it until a handle is given.
    pub(crate) fn empty(self, what: &str) -> Result<&'a mut MaybeUninit<*mut T>, Failure> {
        let place = self.place(what)?;
        place.write(std::ptr::null_mut());
        Ok(place)
    }

    /// Gives a new handle to the caller, or nothing to who does not want one.
    pub(crate) fn give(self, value: T) {
        if let Some(place) = self.0 {
            give(place, value);
        }
    }
}

impl<'a> Text<'a> {
    pub(crate) fn read(self, what: &str) -> Result<&'a str, Failure> {
        if self.0.is_null() {
            return Err(Failure::null(what));
        }
        // SAFETY: the caller gives texts that end with NUL and live for the call.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| Failure::invalid(format_args!("{what} is not UTF-8")))
    }

    /// The same, where NULL means that there is none.
    pub(crate) fn read_if_any(self, what: &str) -> Result<Option<&'a str>, Failure> {
        if self.0.is_null() { Ok(None) } else { self.read(what).map(Some) }
    }
}

impl<'a> Data<'a> {
    pub(crate) fn read(self, size: usize, what: &str) -> Result<&'a [u8], Failure> {
        if size == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(Failure::null(what));
        }
        within_memory(size, what)?;
        // SAFETY: the caller gives so many bytes, which live and do not change for the call.
        Ok(unsafe { slice::from_raw_parts(self.0.cast(), size) })
    }
}

impl<'a> Room<'a> {
    pub(crate) fn of(self, size: usize, what: &str) -> Result<&'a mut [MaybeUninit<u8>], Failure> {
        if size == 0 {
            return Ok(&mut []);
        }
        if self.0.is_null() {
            return Err(Failure::null(what));
        }
        within_memory(size, what)?;
        // SAFETY: the caller gives room for so many bytes, which nobody else uses for the call.
        Ok(unsafe { slice::from_raw_parts_mut(self.0.cast(), size) })
    }
}

/// No object is larger than this, so a size beyond it is a mistake, such as -1.
fn within_memory(size: usize, what: &str) -> Result<(), Failure> {
    if isize::try_from(size).is_ok() {
        return Ok(());
    }
    Err(Failure::invalid(format_args!("{what} cannot have {size} bytes")))
}

/// A handle that has to be one.
pub(crate) fn handle<T>(handle: Option<T>, what: &str) -> Result<T, Failure> {
    handle.ok_or_else(|| Failure::null(what))
}

/// Gives a new handle to the caller.
pub(crate) fn give<T>(place: &mut MaybeUninit<*mut T>, value: T) {
    place.write(Box::into_raw(Box::new(value)));
}

/// Frees a text that was returned by a call; NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_text_free(text: Option<&mut c_char>) {
    let Some(text) = text else { return };
    // SAFETY: texts are given to the caller by CString::into_raw, and come back once.
    crate::call::release(unsafe { CString::from_raw(text) });
}

#[cfg(test)]
impl<'a, T> Out<'a, T> {
    pub(crate) fn to(place: &'a mut MaybeUninit<T>) -> Self {
        Self(Some(place))
    }

    pub(crate) fn nowhere() -> Self {
        Self(None)
    }
}

#[cfg(test)]
impl<'a> From<&'a CStr> for Text<'a> {
    fn from(text: &'a CStr) -> Self {
        Self(text.as_ptr(), PhantomData)
    }
}

#[cfg(test)]
impl Text<'_> {
    pub(crate) fn null() -> Self {
        Self(std::ptr::null(), PhantomData)
    }
}

#[cfg(test)]
impl<'a> From<&'a [u8]> for Data<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(bytes.as_ptr().cast(), PhantomData)
    }
}

#[cfg(test)]
impl Data<'_> {
    pub(crate) fn null() -> Self {
        Self(std::ptr::null(), PhantomData)
    }
}

#[cfg(test)]
impl<'a> From<&'a mut [u8]> for Room<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Self(bytes.as_mut_ptr().cast(), PhantomData)
    }
}
