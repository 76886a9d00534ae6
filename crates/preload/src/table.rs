//! Tracks which descriptors are SCTP sockets.
//!
//! For descriptors that are known to be something else, only one byte is read. Those that are
//! unknown, or were SCTP sockets at the last check, are checked again, because a descriptor's
//! number can be reused without a call of any libc function that could be interposed.

use core::mem::size_of;
use core::sync::atomic::{AtomicU8, Ordering};

use libc::c_int;

use crate::environment;
use crate::local::Capability;

/// The number of descriptors that are tracked; those above are checked every time.
const MAX_TRACKED: usize = 65_536;
/// The descriptor may be an SCTP socket.
const UNKNOWN: u8 = 0;
/// The descriptor is something else.
const FOREIGN: u8 = 1;

static TABLE: [AtomicU8; MAX_TRACKED] = [const { AtomicU8::new(UNKNOWN) }; MAX_TRACKED];

fn entry(fd: c_int) -> Option<&'static AtomicU8> {
    usize::try_from(fd).ok().and_then(|index| TABLE.get(index))
}

/// Returns the SCTP socket of this descriptor, if it is one.
#[inline]
pub(crate) fn socket(fd: c_int) -> Option<Capability> {
    match entry(fd) {
        Some(entry) if entry.load(Ordering::Relaxed) == FOREIGN => None,
        entry => check(fd, entry),
    }
}

#[cold]
fn check(fd: c_int, entry: Option<&AtomicU8>) -> Option<Capability> {
    if fd < 0 {
        return None;
    }
    let found = capability(fd);
    // A child of `vfork` may have another descriptor with this number.
    if let (None, Some(entry)) = (found, entry)
        && environment::owns_tables()
    {
        entry.store(FOREIGN, Ordering::Relaxed);
    }
    found
}

/// Returns the capability that the descriptor has.
fn capability(fd: c_int) -> Option<Capability> {
    let mut rate = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: errno is this thread's.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: errno is this thread's. It is restored below, because the program did not make this
    // call.
    let saved = unsafe { *errno };
    // SAFETY: value and length are live, and the length is that of the value.
    let result = unsafe {
        libc::syscall(
            libc::SYS_getsockopt,
            fd,
            libc::SOL_SOCKET,
            Capability::OPTION,
            &raw mut rate,
            &raw mut length,
        )
    };
    // SAFETY: the same thread, and its errno does not move.
    unsafe { *errno = saved };
    if result != 0 || length as usize != size_of::<u64>() {
        return None;
    }
    Capability::from_rate(rate)
}

/// Forgets this number, which refers to something else from now on.
pub(crate) fn forget(fd: c_int) {
    if let Some(entry) = entry(fd) {
        entry.store(UNKNOWN, Ordering::Relaxed);
    }
}

/// Forgets a range of numbers.
pub(crate) fn forget_range(first: usize, last: usize) {
    let last = last.min(MAX_TRACKED - 1);
    for entry in TABLE.get(first..=last).unwrap_or_default() {
        if entry.load(Ordering::Relaxed) != UNKNOWN {
            entry.store(UNKNOWN, Ordering::Relaxed);
        }
    }
}
