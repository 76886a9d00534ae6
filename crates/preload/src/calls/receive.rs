//! Receiving.

use core::ffi::{c_int, c_uint, c_void};
use core::mem::size_of;
use core::ptr::copy_nonoverlapping;

use libc::{cmsghdr, iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t, timespec};

use super::{copy_name, descriptor, is_invalid, parts_of, plain_parts_of};
use crate::call::{Answer, Call};
use crate::local::control::copy_control;
use crate::local::{Capability, Op, blocks};
use crate::transfer::total;
use crate::{Errno, answer, real, table};

/// Receives a message, or part of one.
fn receive_message(
    fd: c_int,
    socket: Capability,
    room: &[iovec],
    flags: c_int,
) -> Result<Answer, Errno> {
    let on_timeout = (libc::SO_RCVTIMEO, Errno(libc::EAGAIN));
    let mut call = Call::waiting(Op::Receive, fd, flags, on_timeout);
    let does_not_wait = call.request.blocks == blocks::NO;
    call.request.a = if does_not_wait { flags | libc::MSG_DONTWAIT } else { flags };
    call.request.b = total(room)?.min(c_int::MAX as usize) as c_int;
    call.room = room;
    call.send_for(fd, socket)
}

/// Receives into a single piece of memory.
fn receive_plain(
    fd: c_int,
    socket: Capability,
    data: *mut c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    let room = [iovec { iov_base: data, iov_len: length }];
    answer(
        receive_message(fd, socket, &room, flags)
            .map(|received| i64::from(received.response.result)),
    ) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recv(fd: c_int, data: *mut c_void, length: size_t, flags: c_int) -> ssize_t {
    match table::socket(fd) {
        Some(socket) => receive_plain(fd, socket, data, length, flags),
        // SAFETY: the program's arguments are passed on unchanged.
        None => unsafe { real::recv(fd, data, length, flags) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __recv_chk(
    fd: c_int,
    data: *mut c_void,
    length: size_t,
    size: size_t,
    flags: c_int,
) -> ssize_t {
    match table::socket(fd) {
        Some(socket) if length <= size => receive_plain(fd, socket, data, length, flags),
        // SAFETY: the program's arguments are passed on unchanged; libc ends the program if they are wrong.
        _ => unsafe { real::__recv_chk(fd, data, length, size, flags) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn read(fd: c_int, data: *mut c_void, length: size_t) -> ssize_t {
    match table::socket(fd) {
        Some(socket) => receive_plain(fd, socket, data, length, 0),
        // SAFETY: the program's arguments are passed on unchanged.
        None => unsafe { real::read(fd, data, length) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __read_chk(
    fd: c_int,
    data: *mut c_void,
    length: size_t,
    size: size_t,
) -> ssize_t {
    match table::socket(fd) {
        Some(socket) if length <= size => receive_plain(fd, socket, data, length, 0),
        // SAFETY: the program's arguments are passed on unchanged; libc ends the program if they are wrong.
        _ => unsafe { real::__read_chk(fd, data, length, size) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: the program's arguments are passed on unchanged.
        return unsafe { real::readv(fd, parts, count) };
    };
    // SAFETY: the program's arguments are passed on unchanged.
    let received = unsafe { plain_parts_of(parts, count) }
        .and_then(|parts| receive_message(fd, socket, parts, 0));
    answer(received.map(|received| i64::from(received.response.result))) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvfrom(
    fd: c_int,
    data: *mut c_void,
    length: size_t,
    flags: c_int,
    name: *mut sockaddr,
    name_length: *mut socklen_t,
) -> ssize_t {
    match table::socket(fd) {
        // SAFETY: the program's arguments are passed on unchanged.
        Some(socket) => unsafe {
            receive_from(fd, socket, (data, length), flags, (name, name_length))
        },
        // SAFETY: the program's arguments are passed on unchanged.
        None => unsafe { real::recvfrom(fd, data, length, flags, name, name_length) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    data: *mut c_void,
    length: size_t,
    size: size_t,
    flags: c_int,
    name: *mut sockaddr,
    name_length: *mut socklen_t,
) -> ssize_t {
    match table::socket(fd) {
        Some(socket) if length <= size => {
            // SAFETY: the program's arguments are passed on unchanged.
            unsafe { receive_from(fd, socket, (data, length), flags, (name, name_length)) }
        }
        // SAFETY: the program's arguments are passed on unchanged; libc ends the program if they are wrong.
        _ => unsafe { real::__recvfrom_chk(fd, data, length, size, flags, name, name_length) },
    }
}

/// # Safety
/// As `recvfrom`.
unsafe fn receive_from(
    fd: c_int,
    socket: Capability,
    (data, length): (*mut c_void, size_t),
    flags: c_int,
    (name, name_length): (*mut sockaddr, *mut socklen_t),
) -> ssize_t {
    let room = [iovec { iov_base: data, iov_len: length }];
    let received = receive_message(fd, socket, &room, flags).and_then(|received| {
        // SAFETY: guaranteed by the caller.
        unsafe { copy_name(received.response.peer(), name, name_length)? };
        Ok(i64::from(received.response.result))
    });
    answer(received) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvmsg(fd: c_int, header: *mut msghdr, flags: c_int) -> ssize_t {
    match table::socket(fd) {
        // SAFETY: the program's arguments are passed on unchanged.
        Some(socket) => answer(unsafe { with_header(fd, socket, header, flags) }) as ssize_t,
        None => {
            // SAFETY: the program's arguments are passed on unchanged.
            let received = unsafe { real::recvmsg(fd, header, flags) };
            if received >= 0 {
                // SAFETY: the kernel has filled in the header.
                unsafe { mark_received_descriptors(header) };
            }
            received
        }
    }
}

/// # Safety
/// As `recvmsg`.
unsafe fn with_header(
    fd: c_int,
    socket: Capability,
    header: *mut msghdr,
    flags: c_int,
) -> Result<i64, Errno> {
    if is_invalid(header) {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: guaranteed by the caller.
    let header = unsafe { header.as_mut() }.ok_or(Errno(libc::EFAULT))?;
    // SAFETY: guaranteed by the caller.
    let parts = unsafe { parts_of(header.msg_iov, header.msg_iovlen as usize)? };
    let received = receive_message(fd, socket, parts, flags)?;
    let name = header.msg_name.cast();
    // SAFETY: guaranteed by the caller.
    unsafe { copy_name(received.response.peer(), name, &raw mut header.msg_namelen)? };
    if name.is_null() {
        header.msg_namelen = 0;
    }
    header.msg_flags = received.response.flags;
    // SAFETY: guaranteed by the caller.
    unsafe { write_control(received.response.control(), header) };
    Ok(i64::from(received.response.result))
}

/// Copies control messages to a program, as many as fit, the last one truncated.
///
/// # Safety
/// The header's control memory is as long as stated.
unsafe fn write_control(control: &[u8], header: &mut msghdr) {
    let room = if header.msg_control.is_null() { 0 } else { header.msg_controllen as usize };
    let place = header.msg_control.cast::<u8>();
    let copied = copy_control(control, room, |at, bytes| {
        // SAFETY: no more is copied than there is room for.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), place.add(at), bytes.len()) };
    });
    if copied.is_truncated {
        header.msg_flags |= libc::MSG_CTRUNC;
    }
    header.msg_controllen = copied.length as _;
}

/// Handles descriptors received from another process, which may be SCTP sockets.
///
/// # Safety
/// The kernel has filled in the header.
unsafe fn mark_received_descriptors(header: *mut msghdr) {
    // SAFETY: guaranteed by the caller.
    let mut current = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: the kernel has made these messages.
    while let Some(found) = unsafe { current.as_ref() } {
        if found.cmsg_level == libc::SOL_SOCKET && found.cmsg_type == libc::SCM_RIGHTS {
            // SAFETY: as above.
            let start = unsafe { libc::CMSG_DATA(current) }.cast::<c_int>();
            let bytes = (found.cmsg_len as usize).saturating_sub(size_of::<cmsghdr>());
            for index in 0..bytes / size_of::<c_int>() {
                // SAFETY: the message contains this many descriptors.
                descriptor::mark_unknown(unsafe { start.add(index).read_unaligned() });
            }
        }
        // SAFETY: as above.
        current = unsafe { libc::CMSG_NXTHDR(header, current) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvmmsg(
    fd: c_int,
    headers: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: the program's arguments are passed on unchanged.
        return unsafe { real::recvmmsg(fd, headers, count, flags, timeout) };
    };
    let mut next_flags = flags & !libc::MSG_WAITFORONE;
    for index in 0..count as usize {
        // SAFETY: the program guarantees this number of headers.
        let received = unsafe {
            let header = headers.add(index);
            let received = with_header(fd, socket, &raw mut (*header).msg_hdr, next_flags);
            received.map(|length| (*header).msg_len = length as c_uint)
        };
        match received {
            Ok(()) => {}
            Err(error) if index == 0 => return answer(Err(error)) as c_int,
            Err(_) => return index as c_int,
        }
        // The timeout is checked only between messages, as in the kernel.
        if flags & libc::MSG_WAITFORONE != 0 || !timeout.is_null() {
            next_flags |= libc::MSG_DONTWAIT;
        }
    }
    count as c_int
}
