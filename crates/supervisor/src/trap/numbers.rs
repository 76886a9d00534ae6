//! Numbers of new descriptors.

use libc::c_int;
use nix::sys::resource::{Resource, getrlimit};

use super::Errno;
use super::filter::{BASE, TOP};
use super::thread::Thread;

/// What `select` cannot have begins here.
const SELECT: c_int = 1024;

/// Chooses numbers. The kernel has no word for a free one above another: who asks keeps others from
/// asking until the number is taken.
#[derive(Debug)]
pub(super) struct Numbers {
    /// No process here has one above it.
    limit: c_int,
    /// Where to look first among those that `select` cannot have.
    next: c_int,
}

impl Numbers {
    pub(super) fn new() -> Self {
        let hard = getrlimit(Resource::RLIMIT_NOFILE).ok();
        let hard = hard.and_then(|(_, hard)| c_int::try_from(hard).ok());
        let limit = hard.map_or(TOP, |hard| hard.min(TOP));
        Self { limit, next: limit - 1 }
    }

    /// A number that the thread's process has not in use.
    pub(super) fn free(&mut self, thread: &Thread) -> Result<c_int, Errno> {
        let is_free = |number: c_int| match thread.copy(number) {
            Ok(_) => Ok(false),
            Err(Errno(libc::EBADF)) => Ok(true),
            Err(error) => Err(error),
        };
        // The kernel gives other descriptors the lowest number that is free. Where that is far below,
        // none of them takes one of these in this moment; else those are safe that are far above.
        let low = BASE..SELECT.min(self.limit);
        if is_free(BASE - 1)? {
            for number in low.clone() {
                if is_free(number)? {
                    return Ok(number);
                }
            }
        }
        let high = (SELECT..=self.next).rev().chain((self.next + 1..self.limit).rev());
        for number in high {
            if is_free(number)? {
                self.next = if number > SELECT { number - 1 } else { self.limit - 1 };
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
