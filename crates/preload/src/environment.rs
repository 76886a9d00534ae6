//! The address of the supervisor, and the identity of this process.

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

use crate::{connection, local};

/// The maximum length of a local socket's path, including its final zero byte.
const MAX_PATH: usize = 108;

/// The process that the tables belong to. A child of `vfork` is a different process that shares
/// them.
static PROCESS: AtomicI32 = AtomicI32::new(0);
static KEY: AtomicU64 = AtomicU64::new(0);
/// Written once, before `LENGTH` is set.
static ADDRESS: [AtomicU64; MAX_PATH] = [const { AtomicU64::new(0) }; MAX_PATH];
static LENGTH: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// Reads the environment, once, because programs may change it.
pub(crate) fn read() {
    PROCESS.store(this_process(), Ordering::Relaxed);
    const NAME: &[u8; local::ENVIRONMENT.len() + 1] = b"EYAS_SCTP_SOCKET\0";
    // SAFETY: the name ends with a zero byte, and nothing changes the environment this early.
    let value = unsafe { libc::getenv(NAME.as_ptr().cast()) };
    if value.is_null() {
        return;
    }
    // SAFETY: values of the environment end with a zero byte.
    let value = unsafe { CStr::from_ptr(value) }.to_bytes();
    let (address, key) = match value.iter().rposition(|byte| *byte == b' ') {
        Some(separator) => (&value[..separator], local::key_of(&value[separator + 1..])),
        None => (value, Some(0)),
    };
    let Some(key) = key.filter(|_| address.len() < MAX_PATH) else { return };
    for (cell, byte) in ADDRESS.iter().zip(address) {
        cell.store(u64::from(*byte), Ordering::Relaxed);
    }
    KEY.store(key, Ordering::Relaxed);
    LENGTH.store(address.len(), Ordering::Release);
    // SAFETY: the handler uses only atomics and our own descriptors.
    unsafe { pthread_atfork(None, None, Some(in_child)) };
}

/// Resets the tables in a child of `fork`, which has inherited its parent's connections.
extern "C" fn in_child() {
    PROCESS.store(this_process(), Ordering::Relaxed);
    connection::drop_all();
}

fn this_process() -> i32 {
    // SAFETY: it has no arguments and cannot fail.
    unsafe { libc::getpid() }
}

/// Returns whether the tables belong to this process.
pub(crate) fn owns_tables() -> bool {
    PROCESS.load(Ordering::Relaxed) == this_process()
}

/// Returns the key that requests contain.
pub(crate) fn key() -> u64 {
    KEY.load(Ordering::Relaxed)
}

/// Returns the address of the supervisor, and its length.
pub(crate) fn supervisor() -> Option<(libc::sockaddr_un, libc::socklen_t)> {
    let length = LENGTH.load(Ordering::Acquire);
    if length == 0 {
        return None;
    }
    // SAFETY: zeros are a valid address.
    let mut address: libc::sockaddr_un = unsafe { core::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (cell, byte) in address.sun_path.iter_mut().zip(&ADDRESS[..length]) {
        *cell = byte.load(Ordering::Relaxed) as libc::c_char;
    }
    let is_abstract = address.sun_path[0] == b'@' as libc::c_char;
    if is_abstract {
        address.sun_path[0] = 0;
    }
    let end = if is_abstract { length } else { length + 1 };
    Some((address, (core::mem::offset_of!(libc::sockaddr_un, sun_path) + end) as libc::socklen_t))
}
