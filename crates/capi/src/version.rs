//! Which version this is.

use std::ffi::c_char;

/// The version that this header is of.
pub const EYAS_VERSION_MAJOR: u32 = 0;
/// See EYAS_VERSION_MAJOR.
pub const EYAS_VERSION_MINOR: u32 = 1;
/// See EYAS_VERSION_MAJOR.
pub const EYAS_VERSION_PATCH: u32 = 0;

/// The version of the library that runs, as 0x00MMmmpp: a program may be built with the header of another
/// one. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_version() -> u32 {
    EYAS_VERSION_MAJOR << 16 | EYAS_VERSION_MINOR << 8 | EYAS_VERSION_PATCH
}

/// The same as a text such as "0.1.0", which lives as long as the library. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_version_text() -> *const c_char {
    const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    TEXT.as_ptr().cast()
}
