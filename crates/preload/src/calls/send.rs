//! Sending.

use core::ffi::{c_int, c_uint, c_void};
use core::slice::from_raw_parts;

use libc::{iovec, loff_t, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};

use super::{MAX_NAME, is_invalid, name_of, parts_of, plain_parts_of};
use crate::call::{Call, broken_pipe};
use crate::local::{Capability, MAX_WRITTEN, Op, REQUEST, Request};
use crate::transfer::{MAX_PARTS, Parts, part, total, write as write_parts};
use crate::{Errno, answer, last, real, table};

/// The number of bytes of a file that are sent as one message; small, because the buffer is on the
/// stack.
const CHUNK: usize = 16 * 1024;
/// "The value specified in vlen is capped to UIO_MAXIOV (1024)" (sendmmsg(2)).
const MAX_HEADERS: c_uint = 1024;
/// The flags of calls whose messages can be written to the descriptor.
const PLAIN_FLAGS: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// Sends one message.
fn send_message(
    fd: c_int,
    socket: Capability,
    (name, control): (&[u8], &[u8]),
    data: &[iovec],
    flags: c_int,
) -> Result<i64, Errno> {
    let is_plain = name.is_empty() && control.is_empty() && flags & !PLAIN_FLAGS == 0;
    let length = total(data)?;
    let fits = (1..=MAX_WRITTEN).contains(&length) && data.len() <= MAX_PARTS;
    if is_plain
        && fits
        && socket.is_writable()
        && !has_ended(fd)
        && let Some(written) = write_message(fd, socket, data, length, flags)
    {
        return written.map(|()| length as i64);
    }
    let on_timeout = (libc::SO_SNDTIMEO, Errno(libc::EAGAIN));
    let mut call = Call::waiting(Op::Send, fd, flags, on_timeout);
    (call.request.a, call.request.b) = (flags, c_int::from(is_plain && fits));
    (call.name, call.control, call.data) = (name, control, data);
    match call.send_for(fd, socket) {
        Ok(sent) => Ok(i64::from(sent.response.result)),
        Err(error) => Err(broken_pipe(error, flags)),
    }
}

/// Returns whether the descriptor shows that the association has ended, so that the supervisor has
/// to say how.
fn has_ended(fd: c_int) -> bool {
    let mut polled = libc::pollfd { fd, events: libc::POLLRDHUP, revents: 0 };
    let time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mask = core::ptr::null::<libc::sigset_t>();
    // SAFETY: there is one entry, and the time is live; a null mask changes no signals.
    let found = unsafe {
        libc::syscall(libc::SYS_ppoll, &raw mut polled, 1_usize, &raw const time, mask, 0_usize)
    };
    found != 0
}

/// Writes a message to the descriptor, whose buffer decides whether the call waits. `None` if the
/// supervisor has to send it: it does not fit, or the supervisor has ended.
fn write_message(
    fd: c_int,
    socket: Capability,
    data: &[iovec],
    length: usize,
    flags: c_int,
) -> Option<Result<(), Errno>> {
    let request =
        Request { capability: socket.number(), data: length as u32, ..Request::new(Op::Send) };
    let header = request.encode();
    let own = [part(&header)];
    let parts = Parts::new(&own, data, REQUEST + length);
    match write_parts(fd, &parts, flags | libc::MSG_NOSIGNAL) {
        Err(Errno(libc::EAGAIN | libc::EINTR | libc::EFAULT)) => Some(Err(last())),
        Err(_) => None,
        Ok(()) => Some(Ok(())),
    }
}

/// Returns a piece of memory that is only read.
fn single_part(data: *const c_void, length: size_t) -> [iovec; 1] {
    [iovec { iov_base: data.cast_mut(), iov_len: length }]
}

#[unsafe(no_mangle)]
unsafe extern "C" fn send(fd: c_int, data: *const c_void, length: size_t, flags: c_int) -> ssize_t {
    match table::socket(fd) {
        Some(socket) => {
            answer(send_message(fd, socket, (&[], &[]), &single_part(data, length), flags))
                as ssize_t
        }
        // SAFETY: the kernel only reads the `length` bytes at `data`, or answers EFAULT.
        None => unsafe { real::send(fd, data, length, flags) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendto(
    fd: c_int,
    data: *const c_void,
    length: size_t,
    flags: c_int,
    name: *const sockaddr,
    name_length: socklen_t,
) -> ssize_t {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: message and name are the program's, and the kernel only reads them.
        return unsafe { real::sendto(fd, data, length, flags, name, name_length) };
    };
    // SAFETY: the program has `name_length` bytes at `name` until `sendto` returns.
    let sent = unsafe { name_of(name, name_length) }
        .and_then(|name| send_message(fd, socket, (name, &[]), &single_part(data, length), flags));
    answer(sent) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendmsg(fd: c_int, header: *const msghdr, flags: c_int) -> ssize_t {
    match table::socket(fd) {
        // SAFETY: `with_header` demands what the program owes `sendmsg`.
        Some(socket) => answer(unsafe { with_header(fd, socket, header, flags) }) as ssize_t,
        // SAFETY: the kernel reads the header and what it points to, and writes nothing.
        None => unsafe { real::sendmsg(fd, header, flags) },
    }
}

/// Returns the length of a name in a header, where what is too long is cut off. The kernel refuses
/// negative lengths.
fn cut_off(length: socklen_t) -> socklen_t {
    match c_int::try_from(length) {
        Ok(_) => length.min(MAX_NAME as socklen_t),
        Err(_) => length,
    }
}

/// # Safety
/// As `sendmsg`.
unsafe fn with_header(
    fd: c_int,
    socket: Capability,
    header: *const msghdr,
    flags: c_int,
) -> Result<i64, Errno> {
    if is_invalid(header) {
        return Err(Errno(libc::EFAULT));
    }
    // SAFETY: the caller vouches for a header that nobody changes during the call.
    let header = unsafe { header.as_ref() }.ok_or(Errno(libc::EFAULT))?;
    // SAFETY: `msg_name` is null or has `msg_namelen` bytes, and `cut_off` adds none.
    let name = unsafe { name_of(header.msg_name.cast(), cut_off(header.msg_namelen))? };
    // SAFETY: the caller's header has `msg_iovlen` pieces at `msg_iov`.
    let data = unsafe { parts_of(header.msg_iov, header.msg_iovlen as usize)? };
    let control: &[u8] = match header.msg_control.is_null() || header.msg_controllen == 0 {
        true => &[],
        // SAFETY: not null, so it has `msg_controllen` bytes, which only the kernel reads.
        false => unsafe {
            from_raw_parts(header.msg_control.cast(), header.msg_controllen as usize)
        },
    };
    send_message(fd, socket, (name, control), data, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendmmsg(
    fd: c_int,
    headers: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: the kernel reads `count` headers, and writes to each how much of it was sent.
        return unsafe { real::sendmmsg(fd, headers, count, flags) };
    };
    let count = count.min(MAX_HEADERS);
    for index in 0..count as usize {
        // SAFETY: the program guarantees this number of headers.
        let sent = unsafe {
            let header = headers.add(index);
            let sent = with_header(fd, socket, &raw const (*header).msg_hdr, flags);
            sent.map(|length| (*header).msg_len = length as c_uint)
        };
        match sent {
            Ok(()) => {}
            Err(error) if index == 0 => return answer(Err(error)) as c_int,
            Err(_) => return index as c_int,
        }
    }
    count as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, data: *const c_void, length: size_t) -> ssize_t {
    match table::socket(fd) {
        Some(socket) => {
            answer(send_message(fd, socket, (&[], &[]), &single_part(data, length), 0)) as ssize_t
        }
        // SAFETY: the program has `length` bytes at `data`, which `write` does not change.
        None => unsafe { real::write(fd, data, length) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    let Some(socket) = table::socket(fd) else {
        // SAFETY: the kernel checks the `count` pieces, and each piece of memory that it reads.
        return unsafe { real::writev(fd, parts, count) };
    };
    // SAFETY: the pieces are the program's until `writev` returns, and their number is checked.
    let sent = unsafe { plain_parts_of(parts, count) }
        .and_then(|parts| send_message(fd, socket, (&[], &[]), parts, 0));
    answer(sent) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendfile(
    out: c_int,
    from: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    match table::socket(out) {
        // SAFETY: the program owes `sendfile` an `offset` that is null or its own.
        Some(socket) => {
            answer(unsafe { send_file_in_messages(out, socket, from, offset, count) }) as ssize_t
        }
        // SAFETY: two descriptors and a count; the kernel checks `offset`, if there is one.
        None => unsafe { real::sendfile(out, from, offset, count) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendfile64(
    out: c_int,
    from: c_int,
    offset: *mut libc::off64_t,
    count: size_t,
) -> ssize_t {
    match table::socket(out) {
        // SAFETY: only 64-bit programs load this library, and there both offsets are one type.
        Some(socket) => {
            answer(unsafe { send_file_in_messages(out, socket, from, offset.cast(), count) })
                as ssize_t
        }
        // SAFETY: the kernel reads and writes the `off64_t`, if there is one.
        None => unsafe { real::sendfile64(out, from, offset, count) },
    }
}

/// Sends a file in messages.
///
/// # Safety
/// As `sendfile`.
unsafe fn send_file_in_messages(
    out: c_int,
    socket: Capability,
    from: c_int,
    offset: *mut off_t,
    count: size_t,
) -> Result<i64, Errno> {
    // SAFETY: null, or an offset that the caller lends until `sendfile` returns.
    let start = match unsafe { offset.as_ref() } {
        Some(offset) => *offset,
        // SAFETY: 0 bytes from where it is: this asks for the file's position and changes nothing.
        None => unsafe { libc::lseek(from, 0, libc::SEEK_CUR) },
    };
    if start < 0 {
        return Err(Errno(libc::EINVAL));
    }
    let mut chunk = [0_u8; CHUNK];
    let mut done = 0_usize;
    while done < count {
        let wanted = CHUNK.min(count - done);
        // SAFETY: the chunk is live and has room for this many bytes.
        let read =
            unsafe { libc::pread(from, chunk.as_mut_ptr().cast(), wanted, start + done as off_t) };
        let sent = match usize::try_from(read) {
            Ok(0) => break,
            Ok(read) => {
                send_message(out, socket, (&[], &[]), &single_part(chunk.as_ptr().cast(), read), 0)
            }
            Err(_) => Err(last()),
        };
        match sent {
            Ok(sent) => done += sent as usize,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    let end = start + done as off_t;
    // SAFETY: `sendfile` writes the offset, and the reference from above is gone.
    match unsafe { offset.as_mut() } {
        Some(offset) => *offset = end,
        // SAFETY: numbers; `sendfile` moves the file's position unless it has an offset.
        None => drop(unsafe { libc::lseek(from, end, libc::SEEK_SET) }),
    }
    Ok(done as i64)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn splice(
    from: c_int,
    from_offset: *mut loff_t,
    out: c_int,
    out_offset: *mut loff_t,
    length: size_t,
    flags: c_uint,
) -> ssize_t {
    if table::socket(from).is_some() || table::socket(out).is_some() {
        // The kernel would move tokens. Programs interpret this as a descriptor that cannot be
        // spliced.
        return answer(Err(Errno(libc::EINVAL))) as ssize_t;
    }
    // SAFETY: either offset is null or the program's, and the kernel checks them.
    unsafe { real::splice(from, from_offset, out, out_offset, length, flags) }
}
