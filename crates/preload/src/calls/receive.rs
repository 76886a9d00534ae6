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
        // SAFETY: the kernel writes at most `length` bytes at `data`, the program's room.
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
        // SAFETY: libc ends the program if `length` is more than `size`, the room at `data`.
        _ => unsafe { real::__recv_chk(fd, data, length, size, flags) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn read(fd: c_int, data: *mut c_void, length: size_t) -> ssize_t {
    match table::socket(fd) {
        Some(socket) => receive_plain(fd, socket, data, length, 0),
        // SAFETY: the program has room for `length` bytes; without memory there, EFAULT.
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
        // SAFETY: `size` is what the compiler knows of `data`; more ends the program in libc.
        _ => unsafe { real::__read_chk(fd, data, length, size) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: the kernel reads `count` pieces, and writes only into the room that they state.
        return unsafe { real::readv(fd, parts, count) };
    };
    // SAFETY: the program has `count` pieces, which it does not change until `readv` returns.
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
        // SAFETY: the program owes `recvfrom` what `receive_from` demands of the two pairs.
        Some(socket) => unsafe {
            receive_from(fd, socket, (data, length), flags, (name, name_length))
        },
        // SAFETY: message and name have room of the program's, whose lengths the kernel obeys.
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
            // SAFETY: `data` has `size` bytes, at least `length`; the name is as in `recvfrom`.
            unsafe { receive_from(fd, socket, (data, length), flags, (name, name_length)) }
        }
        // SAFETY: libc ends the program if `length` exceeds `size`; else this is `recvfrom`.
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
        // SAFETY: `recvfrom` is given a null `name`, or one with room for `*name_length` bytes.
        unsafe { copy_name(received.response.peer(), name, name_length)? };
        Ok(i64::from(received.response.result))
    });
    answer(received) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvmsg(fd: c_int, header: *mut msghdr, flags: c_int) -> ssize_t {
    match table::socket(fd) {
        // SAFETY: the program vouches for the header and for all that it points to.
        Some(socket) => answer(unsafe { with_header(fd, socket, header, flags) }) as ssize_t,
        None => {
            // SAFETY: the kernel reads the header, and writes to it and to the room that it states.
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
    // SAFETY: `recvmsg` may write to the header, so nobody else uses it during the call.
    let header = unsafe { header.as_mut() }.ok_or(Errno(libc::EFAULT))?;
    // SAFETY: `msg_iov` has `msg_iovlen` pieces in every header that a program may pass.
    let parts = unsafe { parts_of(header.msg_iov, header.msg_iovlen as usize)? };
    let received = receive_message(fd, socket, parts, flags)?;
    let name = header.msg_name.cast();
    // SAFETY: `msg_name` is null, or has the `msg_namelen` bytes that the header still states.
    unsafe { copy_name(received.response.peer(), name, &raw mut header.msg_namelen)? };
    if name.is_null() {
        header.msg_namelen = 0;
    }
    header.msg_flags = received.response.flags;
    // SAFETY: `msg_controllen` is still what the program stated: nothing above writes it.
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
    // SAFETY: the caller vouches that the kernel has set `msg_controllen`.
    let mut current = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: the kernel has made these messages.
    while let Some(found) = unsafe { current.as_ref() } {
        if found.cmsg_level == libc::SOL_SOCKET && found.cmsg_type == libc::SCM_RIGHTS {
            // SAFETY: it only computes the address of the data behind a header that was just read.
            let start = unsafe { libc::CMSG_DATA(current) }.cast::<c_int>();
            let bytes = (found.cmsg_len as usize).saturating_sub(size_of::<cmsghdr>());
            for index in 0..bytes / size_of::<c_int>() {
                // SAFETY: the message contains this many descriptors.
                descriptor::mark_unknown(unsafe { start.add(index).read_unaligned() });
            }
        }
        // SAFETY: `current` is one of this header's messages, and the kernel has set its length.
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
        // SAFETY: `count` headers and a timeout of the program; the kernel checks every pointer.
        let received = unsafe { real::recvmmsg(fd, headers, count, flags, timeout) };
        for index in 0..usize::try_from(received).unwrap_or(0) {
            // SAFETY: the kernel has filled in this many headers.
            unsafe { mark_received_descriptors(&raw mut (*headers.add(index)).msg_hdr) };
        }
        return received;
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
