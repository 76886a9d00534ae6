//! Creating, accepting, duplicating and closing descriptors.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;

use libc::{FILE, sockaddr, socklen_t};

use super::copy_name;
use crate::call::{Answer, Call};
use crate::local::subject::{KIND_FLAGS, is_sctp};
use crate::local::{Capability, Op, blocks};
use crate::{Errno, answer, connection, environment, real, table};

#[unsafe(no_mangle)]
unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    if !is_sctp(domain, kind, protocol) || environment::supervisor().is_none() {
        // SAFETY: three numbers; the kernel refuses a combination that it does not have.
        let fd = unsafe { real::socket(domain, kind, protocol) };
        table::forget(fd);
        return fd;
    }
    let mut call = Call::new(Op::Socket);
    (call.request.a, call.request.b, call.request.c) = (domain, kind & !KIND_FLAGS, protocol);
    call.close_on_exec = kind & libc::SOCK_CLOEXEC != 0;
    let created = call.send(None).map_err(|error| match error {
        // Like a kernel without SCTP, because that is the situation without the supervisor.
        Errno(libc::ECONNRESET | libc::ECONNREFUSED | libc::ENOENT) => Errno(libc::EPROTONOSUPPORT),
        error => error,
    });
    answer(created.and_then(|created| descriptor(&created, kind & libc::SOCK_NONBLOCK != 0)))
        as c_int
}

/// Returns the descriptor received with a response.
pub(super) fn descriptor(created: &Answer, is_nonblocking: bool) -> Result<i64, Errno> {
    if created.response.result < 0 {
        return Err(Errno(-created.response.result));
    }
    // The program has reached its limit of descriptors.
    let fd = created.descriptor.ok_or(Errno(libc::EMFILE))?;
    table::forget(fd);
    if is_nonblocking {
        // SAFETY: F_SETFL takes a number, and the program does not know the descriptor yet.
        unsafe {
            libc::syscall(libc::SYS_fcntl, fd, libc::F_SETFL, libc::O_RDWR | libc::O_NONBLOCK)
        };
    }
    Ok(i64::from(fd))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn accept(fd: c_int, name: *mut sockaddr, length: *mut socklen_t) -> c_int {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: the kernel follows `name` and `length` itself: EFAULT if they are bad.
        let created = unsafe { real::accept(fd, name, length) };
        table::forget(created);
        return created;
    };
    // SAFETY: `accept` demands of `name` and `length` what `accept4` does.
    unsafe { accept_sctp(fd, socket, name, length, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn accept4(
    fd: c_int,
    name: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: the kernel writes at most the `*length` bytes that `name` has room for.
        let created = unsafe { real::accept4(fd, name, length, flags) };
        table::forget(created);
        return created;
    };
    // SAFETY: its contract is that of this function.
    unsafe { accept_sctp(fd, socket, name, length, flags) }
}

/// # Safety
/// As `accept4`.
unsafe fn accept_sctp(
    fd: c_int,
    socket: Capability,
    name: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if flags & !KIND_FLAGS != 0 {
        return answer(Err(Errno(libc::EINVAL))) as c_int;
    }
    let mut call = Call::waiting(Op::Accept, fd, 0, (libc::SO_RCVTIMEO, Errno(libc::EAGAIN)));
    call.close_on_exec = flags & libc::SOCK_CLOEXEC != 0;
    let created = call.send_for(fd, socket).and_then(|created| {
        let fd = descriptor(&created, flags & libc::SOCK_NONBLOCK != 0)?;
        // SAFETY: `accept4` is given a null `name`, or one with room for `*length` bytes.
        let result = unsafe { copy_name(created.response.peer(), name, length) };
        if result.is_err() {
            // SAFETY: the descriptor has just been received, and nothing else knows its number.
            unsafe { close(fd as c_int) };
        }
        result.map(|()| fd)
    });
    answer(created) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close(fd: c_int) -> c_int {
    if connection::is_connection(fd) {
        return answer(Err(Errno(libc::EBADF))) as c_int;
    }
    let socket = table::socket(fd);
    let is_waiting = socket.is_some() && !crate::call::is_nonblocking(fd);
    table::forget(fd);
    // SAFETY: the program gives up this number; those of tracked connections were refused above.
    let closed = unsafe { real::close(fd) };
    if let Some(socket) = socket {
        report_close(socket, is_waiting);
    }
    closed
}

/// Reports a closed descriptor to the supervisor at once, so that its port is free when `close`
/// returns.
fn report_close(socket: Capability, is_waiting: bool) {
    // SAFETY: the address is that of this thread's errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: errno's location is valid as long as its thread runs.
    let previous = unsafe { *errno };
    let mut call = Call::new(Op::Closed);
    call.request.capability = socket.number();
    call.request.blocks = if is_waiting { blocks::YES } else { blocks::NO };
    // If this fails, the supervisor still learns of it from the kernel.
    let _ = call.send(None);
    // SAFETY: still the same thread, and so the same errno.
    unsafe { *errno = previous };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    let closes = first <= last && flags as c_uint & libc::CLOSE_RANGE_CLOEXEC == 0;
    if !closes {
        // SAFETY: only numbers, of which the kernel closes none now.
        return unsafe { real::close_range(first, last, flags) };
    }
    table::forget_range(first as usize, last as usize);
    connection::close_range_except_connections(first, last, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn closefrom(first: c_int) {
    let first = c_uint::try_from(first).unwrap_or(0);
    // SAFETY: our own function takes numbers, and spares the connections.
    unsafe { close_range(first, c_uint::MAX, 0) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: it adds a descriptor and ends none; a number that is not open gets EBADF.
    let copy = unsafe { real::dup(fd) };
    table::forget(copy);
    copy
}

/// Duplicates a descriptor to another number, whose previous descriptor may have been the last one
/// of a socket.
fn duplicate_onto(wanted: c_int, duplicate: impl FnOnce() -> c_int) -> c_int {
    let previous = table::socket(wanted);
    table::forget(wanted);
    let copy = duplicate();
    if let (Some(socket), true) = (previous, copy >= 0) {
        report_close(socket, false);
    }
    copy
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup2(fd: c_int, wanted: c_int) -> c_int {
    if fd == wanted {
        // SAFETY: with equal numbers it only asks whether the descriptor is open.
        return unsafe { real::dup2(fd, wanted) };
    }
    // SAFETY: the program gives up what `wanted` was; cookies reveal that a connection was lost.
    duplicate_onto(wanted, || unsafe { real::dup2(fd, wanted) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup3(fd: c_int, wanted: c_int, flags: c_int) -> c_int {
    // SAFETY: what `wanted` was ends, as in `dup2`; the kernel checks the flags.
    duplicate_onto(wanted, || unsafe { real::dup3(fd, wanted, flags) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the program chose the command, and with it the type of the argument, if there is one.
    let result = unsafe { real::fcntl(fd, command, argument) };
    if command == libc::F_DUPFD || command == libc::F_DUPFD_CLOEXEC {
        table::forget(result);
    }
    result
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: as in `fcntl`: the two names differ only in the structure of file locks.
    let result = unsafe { real::fcntl64(fd, command, argument) };
    if command == libc::F_DUPFD || command == libc::F_DUPFD_CLOEXEC {
        table::forget(result);
    }
    result
}

/// What stdio writes reaches the supervisor without a call, but it would read tokens.
#[unsafe(no_mangle)]
unsafe extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    // SAFETY: the program's argument is a string.
    if table::socket(fd).is_some() && unsafe { reads(mode) } {
        answer(Err(Errno(libc::EINVAL)));
        return null_mut();
    }
    // SAFETY: libc reads the mode, a string, and the `FILE` that it makes is the program's.
    unsafe { real::fdopen(fd, mode) }
}

/// Returns whether a mode of `fdopen` allows reading.
///
/// # Safety
/// It is a string.
unsafe fn reads(mode: *const c_char) -> bool {
    // SAFETY: the caller vouches for a string, of which nothing is kept beyond this function.
    let mode = unsafe { CStr::from_ptr(mode) }.to_bytes();
    mode.first() == Some(&b'r') || mode.contains(&b'+')
}

/// Records that a descriptor received from elsewhere may be an SCTP socket, whatever its number
/// referred to before.
pub(super) fn mark_unknown(fd: c_int) {
    table::forget(fd);
}
