//! The functions that programs call.
//!
//! | file | purpose |
//! | --- | --- |
//! | `descriptor` | socket, accept, close, duplicates |
//! | `name` | bind, connect, listen, shutdown, names |
//! | `option` | options, `ioctl` |
//! | `send` | sending |
//! | `receive` | receiving |
//!
//! Each first consults the table, and calls libc's function if the descriptor is not an SCTP socket.
//! Its contract is that of libc's function: the program vouches for its pointers. A bad one gets
//! EFAULT where only the kernel follows it, and may end the program where this library does.

mod descriptor;
mod name;
mod option;
mod receive;
mod send;

use core::ffi::c_int;
use core::ptr::copy_nonoverlapping;
use core::slice::from_raw_parts;

use libc::{iovec, sockaddr, socklen_t};

use crate::Errno;

/// Returns whether a pointer is certainly invalid, because it is in the first or the last page;
/// programs test error handling with such pointers. Where only the kernel dereferences a pointer,
/// the kernel detects this itself.
fn is_invalid<T>(pointer: *const T) -> bool {
    const PAGE: usize = 4096;
    (pointer as usize).wrapping_add(PAGE) < 2 * PAGE
}

/// The size of the kernel's `sockaddr_storage`.
const MAX_NAME: c_int = 128;
/// The error of a call with a header that has too many pieces of memory.
const TOO_MANY_PARTS: Errno = Errno(libc::EMSGSIZE);

/// Returns the bytes of an address that a program passes.
///
/// # Safety
/// It points to as many bytes as stated, which remain for `'a`, unless it is null.
unsafe fn name_of<'a>(name: *const sockaddr, length: socklen_t) -> Result<&'a [u8], Errno> {
    match (name.is_null(), c_int::try_from(length)) {
        (_, Err(_)) => Err(Errno(libc::EINVAL)),
        (_, Ok(length)) if length > MAX_NAME => Err(Errno(libc::EINVAL)),
        (_, Ok(0)) | (true, _) => Ok(&[]),
        // SAFETY: not null, so the caller vouches for these bytes; only the kernel reads them.
        (false, Ok(_)) => Ok(unsafe { from_raw_parts(name.cast(), length as usize) }),
    }
}

/// Copies as much of an address as fits to a program, and its full length.
///
/// # Safety
/// Both pointers are valid for what they refer to, unless they are null.
unsafe fn copy_name(from: &[u8], name: *mut sockaddr, length: *mut socklen_t) -> Result<(), Errno> {
    if name.is_null() {
        return Ok(());
    }
    if is_invalid(name) || is_invalid(length) {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: neither is null, so the caller vouches for `*length` and as many bytes at `name`;
    // `from`, our response, overlaps neither.
    unsafe {
        let copied = (*length as usize).min(from.len());
        copy_nonoverlapping(from.as_ptr(), name.cast(), copied);
        *length = from.len() as socklen_t;
    }
    Ok(())
}

/// Returns the program's pieces of memory.
///
/// # Safety
/// It points to as many pieces as stated, which remain for `'a`, unless it is null.
unsafe fn parts_of<'a>(parts: *const iovec, count: usize) -> Result<&'a [iovec], Errno> {
    match (count, is_invalid(parts)) {
        (0, _) => Ok(&[]),
        (1..=1024, false) => {
            // SAFETY: the caller vouches for these pieces; only the kernel follows their pointers.
            Ok(unsafe { from_raw_parts(parts, count) })
        }
        (_, true) => Err(Errno(libc::EFAULT)),
        (_, false) => Err(TOO_MANY_PARTS),
    }
}

/// Returns the program's pieces of memory in a call without a header.
///
/// # Safety
/// As for [`parts_of`].
unsafe fn plain_parts_of<'a>(parts: *const iovec, count: c_int) -> Result<&'a [iovec], Errno> {
    let count = usize::try_from(count).map_err(|_| Errno(libc::EINVAL))?;
    // SAFETY: `parts_of` asks the same of `parts`, and `count` is not negative.
    let found = unsafe { parts_of(parts, count) };
    found.map_err(|error| if error == TOO_MANY_PARTS { Errno(libc::EINVAL) } else { error })
}
