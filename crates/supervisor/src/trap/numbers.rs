//! Chooses numbers for new descriptors.

use libc::c_int;
use nix::sys::resource::{Resource, getrlimit};

use super::Errno;
use super::filter::{BASE, TOP};
use super::thread::Thread;

/// Numbers from this one on do not work with `select` (`FD_SETSIZE`).
const FD_SETSIZE: c_int = 1024;

/// Chooses numbers. No system call atomically takes a free number above another one in a different
/// process, so a lock is held until the number is used.
#[derive(Debug)]
pub(super) struct Numbers {
    /// No process here can have a number at or above this.
    limit: c_int,
    /// Where to start the search among those that do not work with `select`.
    next: c_int,
}

impl Numbers {
    pub(super) fn new() -> Self {
        let hard = getrlimit(Resource::RLIMIT_NOFILE).ok();
        let hard = hard.and_then(|(_, hard)| c_int::try_from(hard).ok());
        let limit = hard.map_or(TOP, |hard| hard.min(TOP));
        Self { limit, next: limit - 1 }
    }

    /// Returns a number that the thread's process does not use.
    pub(super) fn free(&mut self, thread: &Thread) -> Result<c_int, Errno> {
        let is_free = |number: c_int| match thread.copy(number) {
            Ok(_) => Ok(false),
            Err(Errno(libc::EBADF)) => Ok(true),
            Err(error) => Err(error),
        };
        // The kernel gives other descriptors the lowest free number. If that is below `BASE`,
        // numbers just above are safe for the moment; otherwise only those far above are.
        let low = BASE..FD_SETSIZE.min(self.limit);
        if is_free(BASE - 1)? {
            for number in low.clone() {
                if is_free(number)? {
                    return Ok(number);
                }
            }
        }
        let high = (FD_SETSIZE..=self.next).rev().chain((self.next + 1..self.limit).rev());
        for number in high {
            if is_free(number)? {
                self.next = if number > FD_SETSIZE { number - 1 } else { self.limit - 1 };
                return Ok(number);
            }
        }
        for number in low {
            if is_free(number)? {
                return Ok(number);
            }
        }
        Err(Errno(libc::EMFILE))
    }
}
