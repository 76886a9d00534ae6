//! Installs the filter in a program that is being started.
#![allow(unsafe_code, reason = "only system calls are allowed between fork and exec")]

use std::io::{self, IoSliceMut};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;

use libc::{c_int, sock_filter, sock_fprog};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, socketpair,
};
use tokio::process::Command;

use super::filter::{BASE, program};
use super::listener::Listener;

/// A command that installs the filter.
#[derive(Debug)]
pub(super) struct Installation(OwnedFd);

/// Checks that the kernel supports user notification.
fn check() -> io::Result<()> {
    if cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let action = libc::SECCOMP_RET_USER_NOTIF;
    let operation = libc::SECCOMP_GET_ACTION_AVAIL;
    // SAFETY: the action is live.
    let available = unsafe { libc::syscall(libc::SYS_seccomp, operation, 0, &raw const action) };
    if available == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Installation {
    /// Makes the command install the filter on itself before it starts.
    pub(super) fn install_in(command: &mut Command) -> io::Result<Self> {
        check()?;
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        // If the filter stopped the calls made here, they would wait for ever, because nothing
        // answers them yet.
        if theirs.as_raw_fd() >= BASE {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let filter = program();
        // SAFETY: the closure only makes system calls, and allocates nothing.
        unsafe { command.pre_exec(move || install(&filter, theirs.as_raw_fd())) };
        Ok(Self(ours))
    }

    /// Returns the listener once the command has started, or the error.
    pub(super) fn listener(self) -> io::Result<Listener> {
        let mut errno = [0; size_of::<c_int>()];
        let mut control = nix::cmsg_space!(RawFd);
        let mut room = [IoSliceMut::new(&mut errno)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let control_message =
            recvmsg::<()>(self.0.as_raw_fd(), &mut room, Some(&mut control), flags)?;
        for control_message in control_message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(descriptors) = control_message
                && let Some(fd) = descriptors.first()
            {
                // SAFETY: the kernel has just created it for us.
                return Ok(Listener::new(unsafe { OwnedFd::from_raw_fd(*fd) }));
            }
        }
        match c_int::from_ne_bytes(errno) {
            // The command failed before it got this far.
            0 => Err(io::ErrorKind::NotFound.into()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Installs the filter on this process, and sends its listener, or the error.
fn install(filter: &[sock_filter], to: RawFd) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the program is live and has the stated length.
    let listener = unsafe {
        // The kernel requires this if an unprivileged user installs a filter.
        match libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) {
            0 => libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) as c_int,
            _ => -1,
        }
    };
    let error = io::Error::last_os_error();
    if listener < 0 {
        let errno = error.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes();
        // SAFETY: the number is live and has this length.
        unsafe { libc::send(to, errno.as_ptr().cast(), errno.len(), libc::MSG_NOSIGNAL) };
        return Err(error);
    }
    let sent = send(listener, to);
    // SAFETY: it is ours and no longer needed here.
    unsafe { libc::close(listener) };
    sent
}

/// Sends a descriptor.
fn send(fd: c_int, to: RawFd) -> io::Result<()> {
    let mut nothing = [0_u8; size_of::<c_int>()];
    let mut part = libc::iovec { iov_base: nothing.as_mut_ptr().cast(), iov_len: nothing.len() };
    // Room for one descriptor, aligned as control messages are.
    let mut control = [0_usize; 3];
    // SAFETY: zeros are a valid header, all that it points to is live, and the control memory has room
    // for one message with one number.
    let sent = unsafe {
        let mut header: libc::msghdr = zeroed();
        (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(size_of::<c_int>() as u32) as _;
        header.msg_name = null_mut();
        let control_message = libc::CMSG_FIRSTHDR(&raw const header);
        (*control_message).cmsg_level = libc::SOL_SOCKET;
        (*control_message).cmsg_type = libc::SCM_RIGHTS;
        (*control_message).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
        libc::CMSG_DATA(control_message).cast::<c_int>().write_unaligned(fd);
        libc::sendmsg(to, &raw const header, libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
