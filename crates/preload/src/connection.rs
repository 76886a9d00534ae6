//! Connections to the supervisor, kept for the next call.
//!
//! Each call has one to itself. Programs that close whatever they find do not get at them through
//! libc; what was closed past libc is told by the number of the socket, which no other one has.

use core::ffi::{c_int, c_void};
use core::mem::size_of;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::{Errno, environment, last, real};

/// Connections that are known; with more calls at once, further ones last for one call.
const KEPT: usize = 32;
/// Programs that use `select` need the numbers below 1024: connections go above this one if they can.
const ABOVE: c_int = 900;
/// What a place holds besides a descriptor that is not used at the moment.
const EMPTY: i32 = -1;

/// Descriptors that wait for a call.
static IDLE: [AtomicI32; KEPT] = [const { AtomicI32::new(EMPTY) }; KEPT];
/// Descriptors that exist, in use or not.
static OPEN: [AtomicI32; KEPT] = [const { AtomicI32::new(EMPTY) }; KEPT];
/// The number of each socket.
static COOKIE: [AtomicU64; KEPT] = [const { AtomicU64::new(0) }; KEPT];

/// A connection that one call has to itself.
pub(crate) struct Connection {
    pub(crate) fd: c_int,
    place: Option<usize>,
}

impl Connection {
    /// One that is there already, or a new one.
    pub(crate) fn take() -> Result<Self, Errno> {
        if environment::owns_tables() {
            for place in 0..KEPT {
                let fd = IDLE[place].swap(EMPTY, Ordering::Acquire);
                if fd == EMPTY {
                    continue;
                }
                if cookie(fd) == Some(COOKIE[place].load(Ordering::Relaxed)) {
                    return Ok(Self { fd, place: Some(place) });
                }
                // Somebody closed it, and may have given the number to something else.
                OPEN[place].store(EMPTY, Ordering::Release);
            }
        }
        Self::open()
    }

    /// A new one.
    pub(crate) fn open() -> Result<Self, Errno> {
        let (address, length) = environment::supervisor().ok_or(Errno(libc::EPROTONOSUPPORT))?;
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is passed.
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
        Ok(Self { fd, place: register(fd) })
    }

    /// Does something in which the thread may be cancelled: the connection ends with the thread then, and
    /// with it the call that waits.
    pub(crate) fn unless_cancelled<T>(&self, action: impl FnOnce() -> T) -> T {
        let mut record = real::CleanupRecord::default();
        // SAFETY: record and connection are live until the record is taken back, in this frame.
        unsafe { real::push_cleanup(&mut record, abandon, self) };
        let outcome = action();
        // SAFETY: as above.
        unsafe { real::pop_cleanup(&mut record) };
        outcome
    }

    /// The call is over, and nothing of it is on its way any more.
    pub(crate) fn put_back(self) {
        match self.place {
            Some(place) if environment::owns_tables() => {
                IDLE[place].store(self.fd, Ordering::Release);
            }
            _ => close(self.fd),
        }
    }

    /// Nobody knows what is still on its way.
    pub(crate) fn discard(self) {
        if let Some(place) = self.place
            && environment::owns_tables()
        {
            OPEN[place].store(EMPTY, Ordering::Release);
        }
        close(self.fd);
    }
}

/// What libc calls in a thread that is cancelled.
unsafe extern "C" fn abandon(connection: *mut c_void) {
    // SAFETY: it was passed as such, and is live still.
    let connection = unsafe { connection.cast::<Connection>().read() };
    connection.discard();
}

/// A place for a descriptor, if there is one.
fn register(fd: c_int) -> Option<usize> {
    if !environment::owns_tables() {
        return None;
    }
    let number = cookie(fd)?;
    let (from, to) = (Ordering::AcqRel, Ordering::Relaxed);
    let place =
        (0..KEPT).find(|place| OPEN[*place].compare_exchange(EMPTY, fd, from, to).is_ok())?;
    COOKIE[place].store(number, Ordering::Relaxed);
    Some(place)
}

/// The same connection at a number that programs do not use.
fn move_to_high_number(fd: c_int) -> c_int {
    let command = libc::F_DUPFD_CLOEXEC;
    // SAFETY: no memory is passed.
    let higher = unsafe { libc::syscall(libc::SYS_fcntl, fd, command, ABOVE) } as c_int;
    if higher < 0 {
        return fd;
    }
    close(fd);
    higher
}

/// A number that no other socket has.
fn cookie(fd: c_int) -> Option<u64> {
    let mut number = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_COOKIE);
    // SAFETY: both are live, and the length is the number's.
    let asked = unsafe {
        libc::syscall(libc::SYS_getsockopt, fd, level, option, &raw mut number, &raw mut length)
    };
    (asked == 0).then_some(number)
}

fn close(fd: c_int) {
    // SAFETY: no memory is passed, and the descriptor is ours.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

/// Whether a number is that of a connection.
pub(crate) fn is_one(fd: c_int) -> bool {
    OPEN.iter().zip(&COOKIE).any(|(open, number)| {
        open.load(Ordering::Relaxed) == fd && cookie(fd) == Some(number.load(Ordering::Relaxed))
    })
}

/// Calls libc's `close_range` for all numbers between these that are not connections.
pub(crate) fn close_around(first: u32, last: u32, flags: c_int) -> c_int {
    let mut from = first;
    loop {
        let ours = OPEN.iter().map(|open| open.load(Ordering::Relaxed));
        let ours = ours.filter(|fd| is_one(*fd)).filter_map(|fd| u32::try_from(fd).ok());
        let next = ours.filter(|fd| (from..=last).contains(fd)).min();
        let to = next.map_or(Some(last), |next| next.checked_sub(1));
        if let Some(to) = to.filter(|to| *to >= from) {
            // SAFETY: no memory is passed.
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

/// A child of `fork` shares its parent's connections, and must not speak on them.
pub(crate) fn let_go_of_all() {
    for place in 0..KEPT {
        let fd = OPEN[place].swap(EMPTY, Ordering::Relaxed);
        IDLE[place].store(EMPTY, Ordering::Relaxed);
        if fd != EMPTY && cookie(fd) == Some(COOKIE[place].load(Ordering::Relaxed)) {
            close(fd);
        }
    }
}
