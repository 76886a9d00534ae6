//! Names of sockets and of their peers, and connecting, listening and shutting down.

use core::ffi::c_int;

use libc::{sockaddr, socklen_t};

use super::{copy_name, name_of};
use crate::call::Call;
use crate::local::{Capability, Op};
use crate::{Errno, answer, real, table};

#[unsafe(no_mangle)]
unsafe extern "C" fn bind(fd: c_int, name: *const sockaddr, length: socklen_t) -> c_int {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: the kernel copies the `length` bytes that the program has at `name`.
        return unsafe { real::bind(fd, name, length) };
    };
    // SAFETY: the program has `length` bytes at `name`, and keeps them until `bind` returns.
    let bound = unsafe { name_of(name, length) }.and_then(|name| {
        let mut call = Call::new(Op::Bind);
        call.name = name;
        call.send_for(fd, socket)
    });
    answer(bound.map(|_| 0)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn connect(fd: c_int, name: *const sockaddr, length: socklen_t) -> c_int {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: the kernel has copied the program's address before it begins to connect.
        return unsafe { real::connect(fd, name, length) };
    };
    // SAFETY: the program lends the address until `connect` returns, also if that takes long.
    let connected = unsafe { name_of(name, length) }.and_then(|name| {
        let on_timeout = (libc::SO_SNDTIMEO, Errno(libc::EINPROGRESS));
        let mut call = Call::waiting(Op::Connect, fd, 0, on_timeout);
        call.name = name;
        call.send_for(fd, socket)
    });
    answer(connected.map(|_| 0)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: a descriptor and the length of a queue; neither is followed as a pointer.
        return unsafe { real::listen(fd, backlog) };
    };
    call_with_number(Op::Listen, fd, socket, backlog)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: it ends directions of the program's socket, but not the descriptor.
        return unsafe { real::shutdown(fd, how) };
    };
    call_with_number(Op::Shutdown, fd, socket, how)
}

/// Makes a call with one number.
fn call_with_number(op: Op, fd: c_int, socket: Capability, argument: c_int) -> c_int {
    let mut call = Call::new(op);
    call.request.a = argument;
    answer(call.send_for(fd, socket).map(|_| 0)) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockname(fd: c_int, name: *mut sockaddr, length: *mut socklen_t) -> c_int {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: the program has room for `*length` bytes at `name`; the kernel checks both.
        return unsafe { real::getsockname(fd, name, length) };
    };
    // SAFETY: `write_name` demands what this function demands.
    unsafe { write_name(Op::LocalName, fd, socket, name, length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getpeername(fd: c_int, name: *mut sockaddr, length: *mut socklen_t) -> c_int {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: the kernel writes the name and its length, and refuses bad pointers.
        return unsafe { real::getpeername(fd, name, length) };
    };
    // SAFETY: `getpeername` and `getsockname` differ in whose name they write, not in where.
    unsafe { write_name(Op::PeerName, fd, socket, name, length) }
}

/// # Safety
/// As `getsockname`.
unsafe fn write_name(
    op: Op,
    fd: c_int,
    socket: Capability,
    name: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    if name.is_null() || length.is_null() {
        return answer(Err(Errno(libc::EFAULT))) as c_int;
    }
    let result = Call::new(op).send_for(fd, socket).and_then(|answer| {
        // SAFETY: the caller vouches for `*length` bytes at `name`; neither is null.
        unsafe { copy_name(answer.response.peer(), name, length)? };
        Ok(0)
    });
    answer(result) as c_int
}
