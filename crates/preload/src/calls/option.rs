//! Options, and `ioctl`.

use core::ffi::{c_int, c_ulong, c_void};
use core::slice::from_raw_parts;

use libc::{iovec, socklen_t};

use super::{descriptor, is_invalid};
use crate::call::{Answer, Call};
use crate::local::subject::{
    MAX_OPTION, addresses, is_kept_by_descriptor, opens_when_read, opens_when_set, peeloff_flags,
    peels_off,
};
use crate::local::{Capability, Op};
use crate::transfer::part;
use crate::{Errno, answer, real, table};

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    match table::socket(fd) {
        Some(socket) if !is_kept_by_descriptor(level, option) => {
            // SAFETY: `get` demands what the program owes `getsockopt`.
            answer(unsafe { get(fd, socket, level, option, value, length) }) as c_int
        }
        // SAFETY: the kernel writes at most the `*length` bytes that the program has at `value`.
        _ => unsafe { real::getsockopt(fd, level, option, value, length) },
    }
}

/// # Safety
/// As `getsockopt`.
unsafe fn get(
    fd: c_int,
    socket: Capability,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> Result<i64, Errno> {
    if is_invalid(length) {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: the caller vouches for the length, which `getsockopt` reads and writes.
    let length_in = c_int::try_from(unsafe { *length }).map_err(|_| Errno(libc::EINVAL))? as usize;
    let room = length_in.min(MAX_OPTION);
    if is_invalid(value) && room > 0 {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: these bytes are part of those that the caller vouches for. They may be uninitialized,
    // but are only copied, unless the option has a structure that the program must set.
    let old_value: &[u8] =
        if room == 0 { &[] } else { unsafe { from_raw_parts(value.cast(), room) } };
    let mut call = match opens_when_read(level, option) {
        true => connecting(Op::GetOption, fd),
        false => Call::new(Op::GetOption),
    };
    let flags = peeloff_flags(level, option, old_value);
    (call.request.a, call.request.b, call.request.c) = (level, option, room as c_int);
    call.close_on_exec = flags & libc::SOCK_CLOEXEC != 0;
    if opens_when_read(level, option) {
        let (address, length) = addresses(old_value).ok_or(Errno(libc::EINVAL))?;
        // SAFETY: the program put both into the structure; only the kernel reads what is there.
        call.name = unsafe { from_raw_parts(address as *const u8, length) };
    }
    let data = [part(old_value)];
    let room = [iovec { iov_base: value, iov_len: room }];
    (call.data, call.room) = (&data, &room);
    let answer = call.send_for(fd, socket)?;
    // SAFETY: it is the length that was read above, and no reference to it exists.
    unsafe { *length = answer.response.data };
    if peels_off(level, option) {
        // SAFETY: the response was this long, and so is what `value` points to.
        return unsafe { peeled_off(&answer, flags, value) };
    }
    if opens_when_read(level, option) && answer.response.flags != 0 {
        // The identifier of the association has been written; the errno says that it is not
        // established yet.
        return Err(Errno(answer.response.flags));
    }
    Ok(0)
}

/// Writes the new descriptor to the structure as well.
///
/// # Safety
/// `value` points to as many bytes as the response states.
unsafe fn peeled_off(answer: &Answer, flags: c_int, value: *mut c_void) -> Result<i64, Errno> {
    let fd = descriptor::descriptor(answer, flags & libc::SOCK_NONBLOCK != 0)?;
    if answer.response.data >= 8 {
        // SAFETY: the caller vouches for the response's length, which has room for a second number.
        unsafe { value.cast::<c_int>().add(1).write_unaligned(fd as c_int) };
    }
    Ok(fd)
}

/// Returns a call that opens an association.
fn connecting<'a>(op: Op, fd: c_int) -> Call<'a> {
    Call::waiting(op, fd, 0, (libc::SO_SNDTIMEO, Errno(libc::EINPROGRESS)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    match table::socket(fd) {
        Some(socket) if !is_kept_by_descriptor(level, option) => {
            // SAFETY: `set` demands what the program owes `setsockopt`.
            answer(unsafe { set(fd, socket, level, option, value, length) }) as c_int
        }
        // SAFETY: the kernel copies the `length` bytes that the program has at `value`.
        _ => unsafe { real::setsockopt(fd, level, option, value, length) },
    }
}

/// # Safety
/// As `setsockopt`.
unsafe fn set(
    fd: c_int,
    socket: Capability,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> Result<i64, Errno> {
    let length = c_int::try_from(length).map_err(|_| Errno(libc::EINVAL))? as usize;
    if length > MAX_OPTION {
        return Err(Errno(libc::EINVAL));
    }
    let mut call = match opens_when_set(level, option) {
        true => connecting(Op::SetOption, fd),
        false => Call::new(Op::SetOption),
    };
    (call.request.a, call.request.b) = (level, option);
    let data = [iovec { iov_base: value.cast_mut(), iov_len: length }];
    if value.is_null() && length > 0 {
        return Err(Errno(libc::EFAULT));
    }
    call.data = &data;
    Ok(i64::from(call.send_for(fd, socket)?.response.result))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    const FIONREAD: c_ulong = libc::FIONREAD as c_ulong;
    const SIOCOUTQ: c_ulong = libc::TIOCOUTQ as c_ulong;
    let socket = match request {
        FIONREAD | SIOCOUTQ => table::socket(fd),
        _ => None,
    };
    let Some(socket) = socket else {
        // SAFETY: the program chose the request, which says what the argument points to, if
        // anything.
        return unsafe { real::ioctl(fd, request, argument) };
    };
    let mut call = Call::new(Op::Ioctl);
    call.request.a = request as c_int;
    let result = call.send_for(fd, socket).map(|answer| {
        if !argument.is_null() {
            // SAFETY: both requests have a pointer to an int.
            unsafe { argument.cast::<c_int>().write_unaligned(answer.response.result) };
        }
        0
    });
    answer(result) as c_int
}
