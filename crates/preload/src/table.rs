//! Which descriptors are SCTP sockets.
//!
//! Descriptors that are known to be something else cost one byte's lookup. Those that are unknown,
//! or were SCTP sockets at the last check, are checked again, because a descriptor's number can be
//! reused without a call of any libc function that could be interposed.

use core::mem::{offset_of, size_of, zeroed};
use core::sync::atomic::{AtomicU8, Ordering};

use libc::c_int;

use crate::environment;
use crate::local::{Descriptor, MAX_NAME};

/// The number of descriptors that are tracked; those above are checked every time.
const KEPT: usize = 65_536;
/// It may be an SCTP socket.
const UNKNOWN: u8 = 0;
/// It is something else.
const FOREIGN: u8 = 1;

static TABLE: [AtomicU8; KEPT] = [const { AtomicU8::new(UNKNOWN) }; KEPT];

fn place(fd: c_int) -> Option<&'static AtomicU8> {
    usize::try_from(fd).ok().and_then(|index| TABLE.get(index))
}

/// Returns the SCTP socket of this descriptor, if it is one.
#[inline]
pub(crate) fn socket(fd: c_int) -> Option<Descriptor> {
    match place(fd) {
        Some(place) if place.load(Ordering::Relaxed) == FOREIGN => None,
        place => ask(fd, place),
    }
}

#[cold]
fn ask(fd: c_int, place: Option<&AtomicU8>) -> Option<Descriptor> {
    if fd < 0 {
        return None;
    }
    let found = peer(fd);
    // A child of `vfork` may have another descriptor with this number.
    if let (None, Some(place)) = (found, place)
        && environment::owns_tables()
    {
        place.store(FOREIGN, Ordering::Relaxed);
    }
    found
}

/// Returns what the name of the far end states.
fn peer(fd: c_int) -> Option<Descriptor> {
    // SAFETY: zeros are a valid address.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    let mut length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: errno is this thread's.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: errno is this thread's; a question that nobody asked leaves no trace.
    let before = unsafe { *errno };
    // SAFETY: address and length are live, and the length is the address's.
    let asked =
        unsafe { libc::syscall(libc::SYS_getpeername, fd, &raw mut address, &raw mut length) };
    // SAFETY: as above.
    unsafe { *errno = before };
    if asked != 0 || i32::from(address.sun_family) != libc::AF_UNIX {
        return None;
    }
    let length = (length as usize).checked_sub(offset_of!(libc::sockaddr_un, sun_path))?;
    let mut name = [0; MAX_NAME];
    if length != MAX_NAME {
        return None;
    }
    for (place, byte) in name.iter_mut().zip(address.sun_path) {
        *place = byte as u8;
    }
    Descriptor::parse(&name)
}

/// Forgets this number, which refers to something else from now on.
pub(crate) fn forget(fd: c_int) {
    if let Some(place) = place(fd) {
        place.store(UNKNOWN, Ordering::Relaxed);
    }
}

/// Forgets a range of numbers.
pub(crate) fn forget_range(first: usize, last: usize) {
    let last = last.min(KEPT - 1);
    for place in TABLE.get(first..=last).unwrap_or_default() {
        if place.load(Ordering::Relaxed) != UNKNOWN {
            place.store(UNKNOWN, Ordering::Relaxed);
        }
    }
}
