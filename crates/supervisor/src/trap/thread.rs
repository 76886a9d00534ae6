//! A thread whose call has stopped: access to its memory and its descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use libc::c_int;
use nix::sys::socket::sockopt::{ReceiveTimeout, SendTimeout};
use nix::sys::socket::{MsgFlags, getsockopt, recv, send};
use nix::sys::time::TimeVal;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, pidfd_getfd, pidfd_open, pidfd_send_signal,
};

use super::listener::Listener;
use super::{Errno, interruption};
use crate::descriptor::capability_of;
use crate::local::{Capability, filler, mark};

/// The maximum number of pieces of memory per system call.
const MAX_PARTS: usize = 1024;
/// `PIDFD_THREAD`: a thread that is not the first of its process (Linux 6.9).
const THREAD: u32 = libc::O_EXCL as u32;

/// A piece of a program's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) at: u64,
    pub(super) length: usize,
}

/// A thread whose call has stopped.
#[derive(Debug)]
pub(super) struct Thread {
    listener: Arc<Listener>,
    /// The call.
    pub(super) call: u64,
    id: Pid,
    process: OwnedFd,
}

impl Thread {
    /// Returns the thread that made a call, if the call still waits.
    pub(super) fn from_notification(listener: &Arc<Listener>, call: u64, id: u32) -> Option<Self> {
        let id = Pid::from_raw(i32::try_from(id).ok()?)?;
        let process = pidfd_open(id, PidfdFlags::from_bits_retain(THREAD))
            .or_else(|_| pidfd_open(process_of(id)?, PidfdFlags::empty()))
            .ok()?;
        let thread = Self { listener: Arc::clone(listener), call, id, process };
        thread.is_waiting().then_some(thread)
    }

    /// Returns whether the call still waits. Until then its thread has not ended, so its number has
    /// not been reused.
    pub(super) fn is_waiting(&self) -> bool {
        self.listener.is_waiting(self.call)
    }

    /// Returns whether it runs as root.
    pub(super) fn is_of_root(&self) -> bool {
        let folder = format!("/proc/{}", self.id.as_raw_nonzero());
        std::fs::metadata(folder).is_ok_and(|folder| folder.uid() == 0)
    }

    /// Returns the result of its call if a signal interrupts it.
    pub(super) fn interruption(&self) -> Option<Errno> {
        interruption::errno(self.id.as_raw_nonzero().get())
    }

    /// Returns a copy of one of its descriptors; `EBADF` if there is none with this number.
    pub(super) fn copy(&self, fd: c_int) -> Result<OwnedFd, Errno> {
        pidfd_getfd(&self.process, fd, PidfdGetfdFlags::empty())
            .map_err(|error| Errno(error.raw_os_error()))
    }

    /// Returns one of its descriptors, if it is an SCTP socket.
    pub(super) fn socket(&self, fd: c_int) -> Option<(OwnedFd, Capability)> {
        let copy = self.copy(fd).ok()?;
        let capability = capability_of(&copy)?;
        Some((copy, capability))
    }

    /// Reads its memory.
    pub(super) fn read(&self, parts: &[Part]) -> Result<Vec<u8>, Errno> {
        let whole: usize = parts.iter().map(|part| part.length).sum();
        let mut bytes = vec![0; whole];
        let mut place = bytes.as_mut_slice();
        for chunk in parts.chunks(MAX_PARTS) {
            let length = chunk.iter().map(|part| part.length).sum();
            let (now, rest) = place.split_at_mut(length);
            let mut local = [IoSliceMut::new(now)];
            let pid = nix::unistd::Pid::from_raw(self.id.as_raw_nonzero().get());
            match process_vm_readv(pid, &mut local, &remote(chunk)) {
                Ok(read) if read == length => {}
                Ok(_) | Err(nix::Error::EFAULT) => return Err(Errno(libc::EFAULT)),
                Err(error) => return Err(Errno(error as c_int)),
            }
            place = rest;
        }
        // Otherwise the memory may have been that of another process.
        if self.is_waiting() { Ok(bytes) } else { Err(Errno(libc::EINTR)) }
    }

    /// Reads one piece of its memory.
    pub(super) fn read_at(&self, at: u64, length: usize) -> Result<Vec<u8>, Errno> {
        self.read(&[Part { at, length }])
    }

    /// Writes its memory.
    pub(super) fn write(&self, parts: &[Part], mut bytes: &[u8]) -> Result<(), Errno> {
        if !self.is_waiting() {
            return Err(Errno(libc::EINTR));
        }
        for chunk in parts.chunks(MAX_PARTS) {
            let room = chunk.iter().map(|part| part.length).sum::<usize>();
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            if now.is_empty() {
                break;
            }
            let pid = nix::unistd::Pid::from_raw(self.id.as_raw_nonzero().get());
            match process_vm_writev(
                pid,
                &[IoSlice::new(now)],
                &remote(&truncated(chunk, now.len())),
            ) {
                Ok(written) if written == now.len() => {}
                Ok(_) | Err(nix::Error::EFAULT) => return Err(Errno(libc::EFAULT)),
                Err(error) => return Err(Errno(error as c_int)),
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Writes one piece of its memory.
    pub(super) fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.write(&[Part { at, length: bytes.len() }], bytes)
    }

    /// Sends SIGPIPE to it.
    pub(super) fn send_sigpipe(&self) {
        // It may have ended in the meantime.
        let _ = pidfd_send_signal(&self.process, Signal::PIPE);
    }

    /// Performs the actions on one of its descriptors that are possible only at the program's end.
    pub(super) fn apply_marks(&self, fd: c_int, capability: u64, marks: u32) {
        if marks == 0 {
            return;
        }
        // Another thread may have closed it in the meantime.
        let found = self.socket(fd).filter(|(_, found)| found.number() == capability);
        let Some((copy, _)) = found else { return };
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        for _ in 0..mark::tokens(marks) {
            let _ = recv(copy.as_raw_fd(), &mut [0; 8], flags);
        }
        if marks & mark::ADD_FILLER != 0 {
            let _ = send(copy.as_raw_fd(), &filler(), flags);
        }
    }
}

/// The timeouts of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Receive,
    Send,
}

/// Returns the timeout that was set; `None` for no timeout.
pub(super) fn limit(copy: &OwnedFd, which: Limit) -> Option<std::time::Duration> {
    let time = match which {
        Limit::Receive => getsockopt(copy, ReceiveTimeout),
        Limit::Send => getsockopt(copy, SendTimeout),
    };
    let time: TimeVal = time.ok()?;
    let seconds = u64::try_from(time.tv_sec()).ok()?;
    let micros = u64::try_from(time.tv_usec()).ok()?;
    let time = std::time::Duration::from_secs(seconds) + std::time::Duration::from_micros(micros);
    (!time.is_zero()).then_some(time)
}

/// Returns whether the descriptor is non-blocking.
pub(super) fn is_nonblocking(copy: &OwnedFd) -> bool {
    let flags = rustix::fs::fcntl_getfl(copy.as_fd());
    flags.is_ok_and(|flags| flags.contains(rustix::fs::OFlags::NONBLOCK))
}

fn remote(parts: &[Part]) -> Vec<RemoteIoVec> {
    let part = |part: &Part| RemoteIoVec { base: part.at as usize, len: part.length };
    parts.iter().map(part).collect()
}

/// Returns the parts, truncated to this number of bytes.
fn truncated(parts: &[Part], mut left: usize) -> Vec<Part> {
    let fill = |part: &Part| {
        let length = part.length.min(left);
        left -= length;
        Part { at: part.at, length }
    };
    parts.iter().map(fill).collect()
}

/// Returns the process that a thread belongs to.
fn process_of(id: Pid) -> rustix::io::Result<Pid> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", id.as_raw_nonzero()));
    let status = status.map_err(|_| rustix::io::Errno::SRCH)?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let id = line.and_then(|line| line.trim().parse().ok()).and_then(Pid::from_raw);
    id.ok_or(rustix::io::Errno::SRCH)
}
