//! Programs in which the number of a descriptor comes to mean something else.

use std::ffi::c_int;
use std::mem::zeroed;

use super::{check, errno, send, socket};

pub(super) const PROGRAMS: [(&str, fn()); 2] = [("ranges", ranges), ("passed", passed)];

/// Returns a descriptor that is no socket.
fn file() -> c_int {
    // SAFETY: the name is a string, which the kernel copies.
    check(unsafe { libc::memfd_create(c"file".as_ptr(), 0) }).unwrap() as c_int
}

fn write(fd: c_int, data: &[u8]) -> i64 {
    // SAFETY: the data are live and have this length.
    unsafe { libc::write(fd, data.as_ptr().cast(), data.len()) as i64 }
}

/// Closes all numbers from one to another.
fn close_range(first: c_int, last: c_int, flags: u32) -> c_int {
    // SAFETY: the callers have opened what is in the range, and use it no more.
    unsafe { libc::close_range(first as u32, last as u32, flags as c_int) }
}

fn ranges() {
    let fd = socket();
    assert_eq!(errno(close_range(fd, fd - 1, 0)), libc::EINVAL);
    assert_eq!(errno(close_range(fd, fd, 1)), libc::EINVAL);
    check(close_range(fd, fd, libc::CLOSE_RANGE_CLOEXEC)).unwrap();
    assert_eq!(send(fd, b"x", 0), 1);
    check(close_range(fd, fd, libc::CLOSE_RANGE_UNSHARE)).unwrap();
    assert_eq!(file(), fd);
    assert_eq!(write(fd, b"into the file"), 13);
}

/// Passes a socket to this process itself, at a number that was known to be none.
fn passed() {
    let fd = socket();
    let mut ends = [0; 2];
    // SAFETY: there is room for two numbers.
    check(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, ends.as_mut_ptr()) })
        .unwrap();
    let number = file();
    assert_eq!(write(number, b"x"), 1);
    // SAFETY: `file` has opened it. This bypasses the library.
    unsafe { libc::syscall(libc::SYS_close, number) };
    let mut byte = 0_u8;
    let mut data = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // Aligned as a header.
    let mut control = [0_u64; 4];
    // SAFETY: zeros are a valid header.
    let mut headers: [libc::mmsghdr; 2] = unsafe { zeroed() };
    headers[0].msg_hdr.msg_iov = &raw mut data;
    headers[0].msg_hdr.msg_iovlen = 1;
    headers[0].msg_hdr.msg_control = control.as_mut_ptr().cast();
    // SAFETY: it only computes a length.
    headers[0].msg_hdr.msg_controllen = unsafe { libc::CMSG_SPACE(4) } as _;
    // SAFETY: the control memory has room for one message with a number, and all of it is live.
    let (sent, received) = unsafe {
        let message = libc::CMSG_FIRSTHDR(&raw const headers[0].msg_hdr);
        (*message).cmsg_level = libc::SOL_SOCKET;
        (*message).cmsg_type = libc::SCM_RIGHTS;
        (*message).cmsg_len = libc::CMSG_LEN(4) as _;
        libc::CMSG_DATA(message).cast::<c_int>().write_unaligned(fd);
        let sent = libc::sendmsg(ends[0], &raw const headers[0].msg_hdr, 0);
        let flags = libc::MSG_DONTWAIT as _;
        (sent, libc::recvmmsg(ends[1], headers.as_mut_ptr(), 2, flags, std::ptr::null_mut()))
    };
    assert_eq!((sent, received), (1, 1));
    assert_eq!(send(number, b"x", 0), 1);
}
