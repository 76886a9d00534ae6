//! Connections to the supervisor, kept for the next call.
//!
//! Each call uses a connection exclusively. Programs that close arbitrary descriptors cannot close
//! connections through libc; a connection that was closed by a direct system call is detected by
//! its socket's cookie, which is unique.

use core::ffi::{c_int, c_void};
use core::mem::size_of;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::{Errno, environment, last, real};

/// The number of connections that are tracked; with more concurrent calls, further ones are used
/// only once.
const MAX_TRACKED: usize = 32;
/// Programs that use `select` need numbers below 1024, so connections use numbers from this one on
/// if possible.
const MIN_NUMBER: c_int = 900;
/// The value of an empty slot.
const EMPTY: i32 = -1;

/// The descriptors of idle connections.
static IDLE: [AtomicI32; MAX_TRACKED] = [const { AtomicI32::new(EMPTY) }; MAX_TRACKED];
/// The descriptors of all connections, in use or idle.
static OPEN: [AtomicI32; MAX_TRACKED] = [const { AtomicI32::new(EMPTY) }; MAX_TRACKED];
/// The cookie of each connection's socket.
static COOKIE: [AtomicU64; MAX_TRACKED] = [const { AtomicU64::new(0) }; MAX_TRACKED];

/// A connection that is used by one call exclusively.
pub(crate) struct Connection {
    pub(crate) fd: c_int,
    slot: Option<usize>,
}

impl Connection {
    /// Returns an existing connection, or a new one.
    pub(crate) fn acquire() -> Result<Self, Errno> {
        if environment::owns_tables() {
            for slot in 0..MAX_TRACKED {
                let fd = IDLE[slot].swap(EMPTY, Ordering::Acquire);
                if fd == EMPTY {
                    continue;
                }
                if cookie(fd) == Some(COOKIE[slot].load(Ordering::Relaxed)) {
                    return Ok(Self { fd, slot: Some(slot) });
                }
                // The connection was closed, and its number may have been reused.
                OPEN[slot].store(EMPTY, Ordering::Release);
            }
        }
        Self::open()
    }

    /// Opens a new connection.
    pub(crate) fn open() -> Result<Self, Errno> {
        let (address, length) = environment::supervisor().ok_or(Errno(libc::EPROTONOSUPPORT))?;
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: three numbers; the new descriptor is the connection's.
        let fd = unsafe { libc::syscall(libc::SYS_socket, libc::AF_UNIX, kind, 0) } as c_int;
        if fd < 0 {
            return Err(last());
        }
        loop {
            // SAFETY: the address is live and has this length.
            let done = unsafe { libc::syscall(libc::SYS_connect, fd, &raw const address, length) };
            match (done, last()) {
                (0, _) => break,
                (_, Errno(libc::EINTR)) => {}
                (_, error) => {
                    close(fd);
                    return Err(error);
                }
            }
        }
        let fd = move_to_high_number(fd);
        Ok(Self { fd, slot: register(fd) })
    }

    /// Runs an action during which the thread may be cancelled; cancellation closes the connection,
    /// which also ends the waiting call.
    pub(crate) fn unless_cancelled<T>(&self, action: impl FnOnce() -> T) -> T {
        let mut record = real::CleanupRecord::default();
        // SAFETY: record and connection are live until the record is removed, in this frame.
        unsafe { real::push_cleanup(&mut record, abandon, self) };
        let outcome = action();
        // SAFETY: the action removes what it registers, so this record is the last one again.
        unsafe { real::pop_cleanup(&mut record) };
        outcome
    }

    /// Returns the connection after a call, once none of its data is in flight.
    pub(crate) fn put_back(self) {
        match self.slot {
            Some(slot) if environment::owns_tables() => {
                IDLE[slot].store(self.fd, Ordering::Release);
            }
            _ => close(self.fd),
        }
    }

    /// Closes the connection because unknown data may still be in flight.
    pub(crate) fn discard(self) {
        if let Some(slot) = self.slot
            && environment::owns_tables()
        {
            OPEN[slot].store(EMPTY, Ordering::Release);
        }
        close(self.fd);
    }
}

/// Called by libc in a thread that is cancelled.
unsafe extern "C" fn abandon(connection: *mut c_void) {
    // SAFETY: this is the connection of `unless_cancelled`, whose frame still exists but never goes
    // on, so only this copy is used from now on.
    let connection = unsafe { connection.cast::<Connection>().read() };
    connection.discard();
}

/// Registers a descriptor in a free slot, if there is one.
fn register(fd: c_int) -> Option<usize> {
    if !environment::owns_tables() {
        return None;
    }
    let number = cookie(fd)?;
    let (from, to) = (Ordering::AcqRel, Ordering::Relaxed);
    let slot =
        (0..MAX_TRACKED).find(|slot| OPEN[*slot].compare_exchange(EMPTY, fd, from, to).is_ok())?;
    COOKIE[slot].store(number, Ordering::Relaxed);
    Some(slot)
}

/// Moves the connection to a number that programs do not use.
fn move_to_high_number(fd: c_int) -> c_int {
    let command = libc::F_DUPFD_CLOEXEC;
    // SAFETY: the third argument is the lowest number to use, and `fd` itself stays open.
    let higher = unsafe { libc::syscall(libc::SYS_fcntl, fd, command, MIN_NUMBER) } as c_int;
    if higher < 0 {
        return fd;
    }
    close(fd);
    higher
}

/// Returns the unique number of a socket.
fn cookie(fd: c_int) -> Option<u64> {
    let mut number = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_COOKIE);
    // SAFETY: both are live, and the length is that of the number.
    let result = unsafe {
        libc::syscall(libc::SYS_getsockopt, fd, level, option, &raw mut number, &raw mut length)
    };
    (result == 0).then_some(number)
}

fn close(fd: c_int) {
    // SAFETY: it is a connection's descriptor, and whoever calls this does not use it any more.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

/// Returns whether a number is that of a connection.
pub(crate) fn is_connection(fd: c_int) -> bool {
    OPEN.iter().zip(&COOKIE).any(|(open, number)| {
        open.load(Ordering::Relaxed) == fd && cookie(fd) == Some(number.load(Ordering::Relaxed))
    })
}

/// Calls libc's `close_range` for all numbers in this range that are not connections.
pub(crate) fn close_range_except_connections(first: u32, last: u32, flags: c_int) -> c_int {
    let mut from = first;
    loop {
        let own = OPEN.iter().map(|open| open.load(Ordering::Relaxed));
        let own = own.filter(|fd| is_connection(*fd)).filter_map(|fd| u32::try_from(fd).ok());
        let next = own.filter(|fd| (from..=last).contains(fd)).min();
        let to = next.map_or(Some(last), |next| next.checked_sub(1));
        if let Some(to) = to.filter(|to| *to >= from) {
            // SAFETY: the program gives up these numbers, and no tracked connection has one of
            // them.
            let closed = unsafe { real::close_range(from, to, flags) };
            if closed != 0 {
                return closed;
            }
        }
        match next.and_then(|next| next.checked_add(1)).filter(|next| *next <= last) {
            Some(next) => from = next,
            None => return 0,
        }
    }
}

/// Drops all connections in a child of `fork`, which has inherited them from its parent and must
/// not use them.
pub(crate) fn drop_all() {
    for slot in 0..MAX_TRACKED {
        let fd = OPEN[slot].swap(EMPTY, Ordering::Relaxed);
        IDLE[slot].store(EMPTY, Ordering::Relaxed);
        if fd != EMPTY && cookie(fd) == Some(COOKIE[slot].load(Ordering::Relaxed)) {
            close(fd);
        }
    }
}
