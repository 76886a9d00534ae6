//! Bytes to and from the program's memory, over a connection.

use core::ffi::c_int;
use core::mem::{size_of, zeroed};
use core::ptr::null_mut;

use libc::{c_void, iovec, msghdr, ssize_t};

use crate::{Errno, last};

/// The maximum number of parts per system call; small, because stacks of signal handlers are small.
const BATCH: usize = 24;

/// Pieces of memory, and how much of them has been processed.
pub(crate) struct Parts<'a> {
    own: &'a [iovec],
    program: &'a [iovec],
    done: usize,
    left: usize,
}

impl<'a> Parts<'a> {
    /// Creates parts from our memory and the program's, limited to this number of bytes.
    pub(crate) fn new(own: &'a [iovec], program: &'a [iovec], left: usize) -> Self {
        Self { own, program, done: 0, left }
    }

    /// Writes the next pieces to `batch`, and returns their number.
    fn batch(&self, batch: &mut [iovec; BATCH]) -> usize {
        let (mut skip, mut left, mut count) = (self.done, self.left, 0);
        for part in self.own.iter().chain(self.program) {
            if count == BATCH || left == 0 {
                break;
            }
            if skip >= part.iov_len {
                skip -= part.iov_len;
                continue;
            }
            let length = (part.iov_len - skip).min(left);
            let start = part.iov_base.cast::<u8>().wrapping_add(skip);
            batch[count] = iovec { iov_base: start.cast(), iov_len: length };
            (skip, left, count) = (0, left - length, count + 1);
        }
        count
    }

    fn advance(&mut self, bytes: usize) {
        self.done += bytes;
        self.left -= bytes.min(self.left);
    }
}

/// Returns the sum of lengths; `EINVAL` if there are too many, as in the kernel.
pub(crate) fn total(parts: &[iovec]) -> Result<usize, Errno> {
    let add = |sum: usize, part: &iovec| sum.checked_add(part.iov_len);
    let sum = parts.iter().try_fold(0, add).filter(|sum| *sum <= isize::MAX as usize);
    sum.ok_or(Errno(libc::EINVAL))
}

fn message(batch: &mut [iovec; BATCH], count: usize) -> msghdr {
    // SAFETY: zeros are a valid, empty header.
    let mut message: msghdr = unsafe { zeroed() };
    message.msg_iov = batch.as_mut_ptr();
    message.msg_iovlen = count as _;
    message
}

const NOTHING: iovec = iovec { iov_base: null_mut(), iov_len: 0 };

/// Sends everything.
pub(crate) fn send(fd: c_int, mut parts: Parts<'_>) -> Result<(), Errno> {
    while parts.left > 0 {
        let mut batch = [NOTHING; BATCH];
        let count = parts.batch(&mut batch);
        if count == 0 {
            break;
        }
        let message = message(&mut batch, count);
        let flags = libc::MSG_NOSIGNAL;
        // SAFETY: header and batch are live; what the pieces point to is only read.
        let sent = unsafe { libc::syscall(libc::SYS_sendmsg, fd, &raw const message, flags) };
        match (usize::try_from(sent), last()) {
            (Ok(sent), _) => parts.advance(sent),
            (Err(_), Errno(libc::EINTR)) => {}
            (Err(_), error) => return Err(error),
        }
    }
    Ok(())
}

/// The maximum number of pieces of the program's memory in a message that is written at once.
pub(crate) const MAX_PARTS: usize = BATCH - 1;

/// Writes one message with a header of ours and at most [`MAX_PARTS`] pieces, in libc's function,
/// which waits and is interrupted like the program's call, and is a cancellation point.
pub(crate) fn write(fd: c_int, parts: &Parts<'_>, flags: c_int) -> Result<(), Errno> {
    let mut batch = [NOTHING; BATCH];
    let count = parts.batch(&mut batch);
    let message = message(&mut batch, count);
    // SAFETY: the header is live, and the kernel writes nothing; bad pieces get EFAULT.
    let sent = unsafe { crate::real::sendmsg(fd, &raw const message, flags) };
    if sent < 0 { Err(last()) } else { Ok(()) }
}

/// The first bytes of a response and the descriptor that came with them.
pub(crate) struct First {
    pub(crate) length: usize,
    pub(crate) descriptor: Option<c_int>,
}

/// How to wait for the first bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// In libc's function, which is interrupted by signals and is a cancellation point.
    Cancellable,
    /// Regardless of signals and cancellation.
    Uninterruptible,
}

/// Receives the first bytes, and a descriptor if one comes with them.
pub(crate) fn receive_first(
    fd: c_int,
    parts: &mut Parts<'_>,
    close_on_exec: bool,
    wait: Wait,
) -> Result<First, Errno> {
    let mut batch = [NOTHING; BATCH];
    let count = parts.batch(&mut batch);
    let mut message = message(&mut batch, count);
    // Room for one descriptor, aligned as control messages are.
    let mut control = [0_usize; 4];
    loop {
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<[usize; 3]>() as _;
        let flags = if close_on_exec { libc::MSG_CMSG_CLOEXEC } else { 0 };
        // SAFETY: header, batch and control are live, and to each piece, ours or the program's, the
        // kernel writes no more than its length.
        let received = match wait {
            Wait::Cancellable => unsafe { crate::real::recvmsg(fd, &raw mut message, flags) },
            Wait::Uninterruptible => unsafe {
                libc::syscall(libc::SYS_recvmsg, fd, &raw mut message, flags) as ssize_t
            },
        };
        match (usize::try_from(received), last()) {
            (Ok(0), _) => return Err(Errno(libc::ECONNRESET)),
            (Ok(length), _) => {
                parts.advance(length);
                return Ok(First { length, descriptor: descriptor(&message) });
            }
            (Err(_), Errno(libc::EINTR)) if wait == Wait::Uninterruptible => {}
            (Err(_), error) => return Err(error),
        }
    }
}

/// Returns the descriptor in the control messages.
fn descriptor(message: &msghdr) -> Option<c_int> {
    // SAFETY: the kernel has filled in the header, and its control memory is live.
    let first = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    let is_rights = first.cmsg_level == libc::SOL_SOCKET && first.cmsg_type == libc::SCM_RIGHTS;
    // SAFETY: a message of this kind holds at least one number.
    is_rights.then(|| unsafe { libc::CMSG_DATA(first).cast::<c_int>().read_unaligned() })
}

/// Receives everything that is left.
pub(crate) fn receive_rest(fd: c_int, mut parts: Parts<'_>, done: usize) -> Result<(), Errno> {
    parts.advance(done);
    while parts.left > 0 {
        let mut batch = [NOTHING; BATCH];
        let count = parts.batch(&mut batch);
        if count == 0 {
            return Err(Errno(libc::EPROTO));
        }
        let mut message = message(&mut batch, count);
        // SAFETY: header and batch are live, and the pieces have room where `receive_first`
        // stopped.
        let received = unsafe { libc::syscall(libc::SYS_recvmsg, fd, &raw mut message, 0) };
        match (usize::try_from(received), last()) {
            (Ok(0), _) => return Err(Errno(libc::ECONNRESET)),
            (Ok(received), _) => parts.advance(received),
            (Err(_), Errno(libc::EINTR)) => {}
            (Err(_), error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns a piece of memory that is only read.
pub(crate) fn part(bytes: &[u8]) -> iovec {
    iovec { iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(), iov_len: bytes.len() }
}
