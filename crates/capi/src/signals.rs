//! The program's signals, which the library neither handles nor raises.
//!
//! Writing to a connection that the peer has reset raises SIGPIPE, unless the kernel is told not
//! to, which some of the code that writes here does not do. By default SIGPIPE terminates a C
//! program.

use std::{mem::MaybeUninit, ptr};

/// Blocks every signal in this thread, so that the program's handlers run in threads of its own.
pub(crate) fn block_all() {
    // SAFETY: the set is made by sigfillset before it is read.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut());
    }
}

/// While it lives, SIGPIPE of this thread is held back, and what came of it is forgotten at the end.
pub(crate) struct Quiet {
    /// The mask to go back to; nothing if SIGPIPE was held back before, by the program.
    before: Option<libc::sigset_t>,
}

impl Quiet {
    pub(crate) fn new() -> Self {
        let pipe = sigpipe();
        let mut pending = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: the sets are filled in by the calls before they are read.
        let is_ours = unsafe {
            libc::sigpending(pending.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, &pipe, before.as_mut_ptr());
            // One that waits already is somebody else's, and is not to be taken away.
            libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 0
        };
        // SAFETY: filled in by pthread_sigmask.
        Self { before: is_ours.then(|| unsafe { before.assume_init() }) }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let Some(before) = &self.before else { return };
        let pipe = sigpipe();
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: all sets are made; sigtimedwait takes one pending signal or says that there is none.
        unsafe {
            while libc::sigtimedwait(&pipe, ptr::null_mut(), &now) == libc::SIGPIPE {}
            libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut());
        }
    }
}

fn sigpipe() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset makes the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE);
        set.assume_init()
    }
}
