//! Options, and `ioctl`.

use core::ffi::{c_int, c_ulong, c_void};
use core::slice::from_raw_parts;

use libc::{iovec, socklen_t};

use super::{descriptor, is_nowhere};
use crate::call::{Answer, Call};
use crate::local::{Descriptor, Op};
use crate::transfer::part;
use crate::{Errno, answer, real, table};

const SOL_SCTP: c_int = 132;
const PEELOFF: c_int = 102;
const PEELOFF_FLAGS: c_int = 122;
const CONNECTX_OLD: c_int = 107;
const CONNECTX: c_int = 110;
const CONNECTX3: c_int = 111;
/// The most bytes of an option, whatever is asked for.
const MAX_OPTION: usize = 256 * 1024;
/// The most addresses, in bytes, that an option may point to.
const MAX_ADDRESSES: c_int = 64 * 1024;

/// Whether the descriptor itself keeps this.
fn is_the_descriptors_own(level: c_int, option: c_int) -> bool {
    // Where times have 64 bits on machines of 32, they have numbers of their own.
    const TIMES: [c_int; 4] = [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO, 66, 67];
    const OTHERS: [c_int; 5] = [
        libc::SO_PRIORITY,
        libc::SO_MARK,
        libc::SO_KEEPALIVE,
        libc::SO_BINDTODEVICE,
        libc::SO_COOKIE,
    ];
    level == libc::SOL_SOCKET && (TIMES.contains(&option) || OTHERS.contains(&option))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    match table::socket(fd) {
        Some(socket) if !is_the_descriptors_own(level, option) => {
            // SAFETY: the program's arguments, as they are.
            answer(unsafe { get(fd, socket, level, option, value, length) }) as c_int
        }
        // SAFETY: the program's arguments, as they are.
        _ => unsafe { real::getsockopt(fd, level, option, value, length) },
    }
}

/// # Safety
/// As `getsockopt`.
unsafe fn get(
    fd: c_int,
    socket: Descriptor,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> Result<i64, Errno> {
    if is_nowhere(length) {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: the caller says so.
    let given = c_int::try_from(unsafe { *length }).map_err(|_| Errno(libc::EINVAL))? as usize;
    let room = given.min(MAX_OPTION);
    if is_nowhere(value) && room > 0 {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: the caller says so.
    let before: &[u8] = if room == 0 { &[] } else { unsafe { from_raw_parts(value.cast(), room) } };
    let is_sctp = level == SOL_SCTP;
    let mut call = match (is_sctp, option) {
        (true, CONNECTX3) => connecting(Op::GetOption, fd),
        _ => Call::new(Op::GetOption),
    };
    let close_on_exec = libc::SOCK_CLOEXEC;
    let flags = match (is_sctp, option) {
        (true, PEELOFF_FLAGS) => i32_at(before, 8).unwrap_or(0),
        _ => 0,
    };
    (call.request.a, call.request.b, call.request.c) = (level, option, room as c_int);
    call.close_on_exec = flags & close_on_exec != 0;
    if is_sctp && option == CONNECTX3 {
        // SAFETY: the caller says so.
        call.name = unsafe { addresses(before)? };
    }
    let data = [part(before)];
    let room = [iovec { iov_base: value, iov_len: room }];
    (call.data, call.room) = (&data, &room);
    let told = call.on(fd, socket)?;
    // SAFETY: the caller says so.
    unsafe { *length = told.response.data };
    if is_sctp && matches!(option, PEELOFF | PEELOFF_FLAGS) {
        // SAFETY: the response was this long, and so is what `value` points to.
        return unsafe { peeled_off(&told, flags, value) };
    }
    if is_sctp && option == CONNECTX3 && told.response.flags != 0 {
        // The number of the association is told, and that it is not there yet.
        return Err(Errno(told.response.flags));
    }
    Ok(0)
}

/// The new descriptor is told in the structure, too.
///
/// # Safety
/// `value` points to as many bytes as the response says.
unsafe fn peeled_off(told: &Answer, flags: c_int, value: *mut c_void) -> Result<i64, Errno> {
    let fd = descriptor::descriptor(told, flags & libc::SOCK_NONBLOCK != 0)?;
    if told.response.data >= 8 {
        // SAFETY: the caller says so.
        unsafe { value.cast::<c_int>().add(1).write_unaligned(fd as c_int) };
    }
    Ok(fd)
}

/// The addresses that `SCTP_SOCKOPT_CONNECTX3` points to: a number, their bytes, where they are.
///
/// # Safety
/// They are there.
unsafe fn addresses<'a>(value: &[u8]) -> Result<&'a [u8], Errno> {
    let length = i32_at(value, 4).filter(|length| (1..=MAX_ADDRESSES).contains(length));
    let place = value.get(8..).and_then(|rest| rest.first_chunk::<{ size_of::<usize>() }>());
    match (length, place.map(|place| usize::from_ne_bytes(*place))) {
        (Some(length), Some(place)) if place != 0 => {
            // SAFETY: the caller says so.
            Ok(unsafe { from_raw_parts(place as *const u8, length as usize) })
        }
        _ => Err(Errno(libc::EINVAL)),
    }
}

fn i32_at(bytes: &[u8], at: usize) -> Option<c_int> {
    Some(c_int::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A call that opens an association.
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
        Some(socket) if !is_the_descriptors_own(level, option) => {
            // SAFETY: the program's arguments, as they are.
            answer(unsafe { set(fd, socket, level, option, value, length) }) as c_int
        }
        // SAFETY: the program's arguments, as they are.
        _ => unsafe { real::setsockopt(fd, level, option, value, length) },
    }
}

/// # Safety
/// As `setsockopt`.
unsafe fn set(
    fd: c_int,
    socket: Descriptor,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> Result<i64, Errno> {
    let length = c_int::try_from(length).map_err(|_| Errno(libc::EINVAL))? as usize;
    if length > MAX_OPTION {
        return Err(Errno(libc::EINVAL));
    }
    let connects = level == SOL_SCTP && matches!(option, CONNECTX | CONNECTX_OLD);
    let mut call = match connects {
        true => connecting(Op::SetOption, fd),
        false => Call::new(Op::SetOption),
    };
    (call.request.a, call.request.b) = (level, option);
    let data = [iovec { iov_base: value.cast_mut(), iov_len: length }];
    if value.is_null() && length > 0 {
        return Err(Errno(libc::EFAULT));
    }
    call.data = &data;
    Ok(i64::from(call.on(fd, socket)?.response.result))
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
        // SAFETY: the program's arguments, as they are.
        return unsafe { real::ioctl(fd, request, argument) };
    };
    let mut call = Call::new(Op::Ioctl);
    call.request.a = request as c_int;
    let told = call.on(fd, socket).map(|told| {
        if !argument.is_null() {
            // SAFETY: both requests have a pointer to an int.
            unsafe { argument.cast::<c_int>().write_unaligned(told.response.result) };
        }
        0
    });
    answer(told) as c_int
}
