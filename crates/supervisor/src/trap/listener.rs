//! The interface to the kernel: stopped calls, and the answers to them.
#![allow(unsafe_code, reason = "no library wraps these system calls")]

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libc::{Ioctl, c_int, seccomp_notif, seccomp_notif_addfd, seccomp_notif_resp};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Receives stopped calls.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd);

/// A descriptor to add to the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewDescriptor {
    pub(super) number: c_int,
    pub(super) close_on_exec: bool,
    /// Whether this also completes the call, which then returns the number.
    pub(super) completes_call: bool,
}

impl Listener {
    pub(super) const fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Waits for a stopped call; `None` if no process is left whose calls could stop.
    pub(super) fn next(&self) -> io::Result<Option<seccomp_notif>> {
        loop {
            let mut ends = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ends, PollTimeout::NONE) {
                Ok(_) => {}
                Err(nix::Error::EINTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let found = ends[0].revents().unwrap_or(PollFlags::empty());
            if !found.contains(PollFlags::POLLIN) {
                return Ok(None);
            }
            // SAFETY: zeros are a valid notification, and required by the kernel.
            let mut notification: seccomp_notif = unsafe { zeroed() };
            match self.control(libc::SECCOMP_IOCTL_NOTIF_RECV, (&raw mut notification).cast()) {
                Ok(_) => return Ok(Some(notification)),
                // The thread has ended in the meantime, or was interrupted by a signal.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends a call with its return value or an errno.
    ///
    /// # Errors
    /// `NotFound` if it no longer waits.
    pub(super) fn answer(&self, id: u64, result: Result<i64, c_int>) -> io::Result<()> {
        let (val, error) = match result {
            Ok(value) => (value, 0),
            Err(errno) => (0, -errno),
        };
        self.respond(seccomp_notif_resp { id, val, error, flags: 0 })
    }

    /// Makes the kernel execute the call.
    pub(super) fn pass(&self, id: u64) -> io::Result<()> {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        self.respond(seccomp_notif_resp { id, val: 0, error: 0, flags })
    }

    fn respond(&self, mut response: seccomp_notif_resp) -> io::Result<()> {
        self.control(libc::SECCOMP_IOCTL_NOTIF_SEND, (&raw mut response).cast()).map(drop)
    }

    /// Returns whether the call still waits, and therefore whether its thread is still the one that
    /// made it.
    pub(super) fn is_waiting(&self, mut id: u64) -> bool {
        self.control(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, (&raw mut id).cast()).is_ok()
    }

    /// Adds a descriptor to the program.
    pub(super) fn add_descriptor(
        &self,
        id: u64,
        fd: BorrowedFd<'_>,
        new_descriptor: NewDescriptor,
    ) -> io::Result<c_int> {
        let sends = if new_descriptor.completes_call { libc::SECCOMP_ADDFD_FLAG_SEND } else { 0 };
        let flags = if new_descriptor.close_on_exec { libc::O_CLOEXEC } else { 0 };
        let mut request = seccomp_notif_addfd {
            id,
            flags: (libc::SECCOMP_ADDFD_FLAG_SETFD | sends) as u32,
            srcfd: fd.as_raw_fd() as u32,
            newfd: new_descriptor.number as u32,
            newfd_flags: flags as u32,
        };
        self.control(libc::SECCOMP_IOCTL_NOTIF_ADDFD, (&raw mut request).cast())
    }

    fn control(&self, request: Ioctl, argument: *mut libc::c_void) -> io::Result<c_int> {
        // SAFETY: each caller passes the structure of the request, which is live.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request, argument) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }
}
