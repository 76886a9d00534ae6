//! The program's signals, which the library neither handles nor raises.
//!
//! Writing to a connection that the peer has reset raises SIGPIPE, unless the kernel is told not
//! to, which some of the code that writes here does not do. By default SIGPIPE terminates a C
//! program.

use std::{mem::MaybeUninit, ptr};

/// Blocks every signal in this thread, so that the program's handlers run in the program's threads.
pub(crate) fn block_all() {
    // SAFETY: sigfillset initialises the set before it is read.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut());
    }
}

/// Blocks SIGPIPE in this thread while it exists, and discards a SIGPIPE raised meanwhile.
pub(crate) struct SigpipeBlocked {
    /// The signal mask to restore; `None` if a SIGPIPE of the program was pending before.
    before: Option<libc::sigset_t>,
}

impl SigpipeBlocked {
    pub(crate) fn new() -> Self {
        let pipe = sigpipe();
        let mut pending = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: the sets are filled in by the calls before they are read.
        let is_ours = unsafe {
            libc::sigpending(pending.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, &pipe, before.as_mut_ptr());
            // A signal that is already pending is not ours and must not be consumed.
            libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 0
        };
        // SAFETY: filled in by pthread_sigmask.
        Self { before: is_ours.then(|| unsafe { before.assume_init() }) }
    }
}

impl Drop for SigpipeBlocked {
    fn drop(&mut self) {
        let Some(before) = &self.before else { return };
        let pipe = sigpipe();
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: all sets are initialised; sigtimedwait consumes one pending signal or fails.
        unsafe {
            while libc::sigtimedwait(&pipe, ptr::null_mut(), &now) == libc::SIGPIPE {}
            libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut());
        }
    }
}

fn sigpipe() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE);
        set.assume_init()
    }
}
