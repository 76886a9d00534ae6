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
pub struct OutPointer<'a, T>(Option<&'a mut MaybeUninit<T>>);

/// A NUL-terminated text of the caller, or NULL.
#[repr(transparent)]
pub struct TextPointer<'a>(*const c_char, PhantomData<&'a c_char>);

/// A pointer to bytes of the caller, or NULL.
#[repr(transparent)]
pub struct DataPointer<'a>(*const c_void, PhantomData<&'a [u8]>);

/// A pointer to a buffer of the caller, or NULL.
#[repr(transparent)]
pub struct BufferPointer<'a>(*mut c_void, PhantomData<&'a mut [u8]>);

impl<'a, T> OutPointer<'a, T> {
    /// Returns the place; an error if it is NULL.
    pub(crate) fn required(self, what: &str) -> Result<&'a mut MaybeUninit<T>, Failure> {
        self.0.ok_or_else(|| Failure::null(what))
    }

    /// Stores the value, unless the place is NULL.
    pub(crate) fn store(self, value: T) {
        if let Some(place) = self.0 {
            place.write(value);
        }
    }
}

impl<'a, T> OutPointer<'a, *mut T> {
    /// Returns the place for a handle, initialised with NULL; an error if the place is NULL.
    pub(crate) fn null_place(self, what: &str) -> Result<&'a mut MaybeUninit<*mut T>, Failure> {
        let place = self.required(what)?;
        place.write(std::ptr::null_mut());
        Ok(place)
    }

    /// Stores a new handle, unless the place is NULL.
    pub(crate) fn store_handle(self, value: T) {
        if let Some(place) = self.0 {
            return_handle(place, value);
        }
    }
}

impl<'a> TextPointer<'a> {
    pub(crate) fn read(self, what: &str) -> Result<&'a str, Failure> {
        if self.0.is_null() {
            return Err(Failure::null(what));
        }
        // SAFETY: texts of callers end with NUL and remain valid for the call.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| Failure::invalid(format_args!("{what} is not UTF-8")))
    }

    /// Like [`read`](Self::read), but NULL means `None`.
    pub(crate) fn read_if_any(self, what: &str) -> Result<Option<&'a str>, Failure> {
        if self.0.is_null() { Ok(None) } else { self.read(what).map(Some) }
    }
}

impl<'a> DataPointer<'a> {
    pub(crate) fn read(self, size: usize, what: &str) -> Result<&'a [u8], Failure> {
        if size == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(Failure::null(what));
        }
        within_memory(size, what)?;
        // SAFETY: the caller guarantees that this number of bytes is valid and unchanged during the
        // call.
        Ok(unsafe { slice::from_raw_parts(self.0.cast(), size) })
    }
}

impl<'a> BufferPointer<'a> {
    pub(crate) fn into_slice(
        self,
        size: usize,
        what: &str,
    ) -> Result<&'a mut [MaybeUninit<u8>], Failure> {
        if size == 0 {
            return Ok(&mut []);
        }
        if self.0.is_null() {
            return Err(Failure::null(what));
        }
        within_memory(size, what)?;
        // SAFETY: the caller guarantees that this number of bytes is writable and not used
        // otherwise during the call.
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

/// Returns the handle; an error if it is NULL.
pub(crate) fn required_handle<T>(handle: Option<T>, what: &str) -> Result<T, Failure> {
    handle.ok_or_else(|| Failure::null(what))
}

/// Stores a new handle for the caller.
pub(crate) fn return_handle<T>(place: &mut MaybeUninit<*mut T>, value: T) {
    place.write(Box::into_raw(Box::new(value)));
}

/// Frees a text that was returned by a call; NULL is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_text_free(text: Option<&mut c_char>) {
    let Some(text) = text else { return };
    // SAFETY: texts are returned to callers with CString::into_raw, and freed once.
    crate::call::release(unsafe { CString::from_raw(text) });
}

#[cfg(test)]
impl<'a, T> OutPointer<'a, T> {
    pub(crate) fn from_place(place: &'a mut MaybeUninit<T>) -> Self {
        Self(Some(place))
    }

    pub(crate) fn null() -> Self {
        Self(None)
    }
}

#[cfg(test)]
impl<'a> From<&'a CStr> for TextPointer<'a> {
    fn from(text: &'a CStr) -> Self {
        Self(text.as_ptr(), PhantomData)
    }
}

#[cfg(test)]
impl TextPointer<'_> {
    pub(crate) fn null() -> Self {
        Self(std::ptr::null(), PhantomData)
    }
}

#[cfg(test)]
impl<'a> From<&'a [u8]> for DataPointer<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(bytes.as_ptr().cast(), PhantomData)
    }
}

#[cfg(test)]
impl DataPointer<'_> {
    pub(crate) fn null() -> Self {
        Self(std::ptr::null(), PhantomData)
    }
}

#[cfg(test)]
impl<'a> From<&'a mut [u8]> for BufferPointer<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Self(bytes.as_mut_ptr().cast(), PhantomData)
    }
}
