//! The version of the library.

use std::ffi::c_char;

/// The version of this header.
pub const EYAS_VERSION_MAJOR: u32 = 0;
/// See EYAS_VERSION_MAJOR.
pub const EYAS_VERSION_MINOR: u32 = 1;
/// See EYAS_VERSION_MAJOR.
pub const EYAS_VERSION_PATCH: u32 = 0;

/// Returns the version of the library at run time, as 0x00MMmmpp: a program may have been compiled
/// with another version of the header. May be called from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_version() -> u32 {
    EYAS_VERSION_MAJOR << 16 | EYAS_VERSION_MINOR << 8 | EYAS_VERSION_PATCH
}

/// Returns the same as a text such as "0.1.0", which is valid as long as the library is loaded. May
/// be called from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn eyas_version_text() -> *const c_char {
    const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    TEXT.as_ptr().cast()
}
