//! A pair of local sockets, one end of which belongs to a program.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{
    AddressFamily, MsgFlags, Shutdown, SockFlag, SockType, UnixAddr, bind, recv, send, setsockopt,
    shutdown, socketpair, sockopt,
};
use tokio::sync::Notify;

use crate::local::{Descriptor, FILLER, mark};
use crate::service::poll;

/// The token that represents `POLLIN`.
const TOKEN: [u8; 1] = [1];

/// Our end of a pair, and the readiness shown at the program's end.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) fd: Arc<OwnedFd>,
    /// Wakes calls that wait for this socket.
    pub(crate) retry: Arc<Notify>,
    shows_in: bool,
    hides_out: bool,
    has_ended: bool,
    /// Actions that only the holder of the program's end can perform.
    marks: u32,
}

impl End {
    /// Creates a pair for a socket without readiness, and returns the program's end as well.
    pub(crate) fn pair(name: Descriptor) -> io::Result<(Self, OwnedFd)> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        let name = name.name();
        // The name starts with the zero byte that marks it as abstract, which nix adds itself.
        bind(ours.as_raw_fd(), &UnixAddr::new_abstract(&name[1..])?)?;
        // The kernel raises this to the smallest possible size.
        setsockopt(&theirs, sockopt::SndBuf, &1)?;
        send(theirs.as_raw_fd(), &[0; FILLER], MsgFlags::MSG_DONTWAIT)?;
        let end = Self {
            fd: Arc::new(ours),
            retry: Arc::new(Notify::new()),
            shows_in: false,
            hides_out: true,
            has_ended: false,
            marks: 0,
        };
        Ok((end, theirs))
    }

    /// Shows this readiness to `poll`. An error is shown as an event that wakes any waiting thread,
    /// because local sockets have no errors that could be withdrawn.
    pub(crate) fn show(&mut self, bits: u16) {
        self.show_in(bits & (poll::IN | poll::ERR) != 0);
        self.show_out(bits & (poll::OUT | poll::ERR) != 0);
        if bits & (poll::RDHUP | poll::HUP) != 0 && !self.has_ended {
            self.has_ended = true;
            // The program may have closed its end in the meantime.
            let _ = shutdown(self.fd.as_raw_fd(), Shutdown::Write);
        }
    }

    fn show_in(&mut self, shown: bool) {
        match (shown, self.shows_in) {
            (true, false) if self.marks & mark::REMOVE_TOKEN != 0 => {
                self.marks &= !mark::REMOVE_TOKEN
            }
            (true, false) => {
                let _ = send(self.fd.as_raw_fd(), &TOKEN, flags());
            }
            (false, true) => self.marks |= mark::REMOVE_TOKEN,
            _ => {}
        }
        self.shows_in = shown;
    }

    fn show_out(&mut self, shown: bool) {
        match (shown, self.hides_out) {
            (true, true) if self.marks & mark::ADD_FILLER != 0 => self.marks &= !mark::ADD_FILLER,
            (false, false) => self.marks |= mark::ADD_FILLER,
            _ => {}
        }
        self.hides_out = !shown;
        self.remove_fillers();
    }

    /// Returns the actions for the library in the next response.
    pub(crate) fn take_marks(&mut self) -> u32 {
        std::mem::take(&mut self.marks)
    }

    /// Removes fillers that hide `POLLOUT`, if it is to be shown: a filler may arrive late.
    pub(crate) fn remove_fillers(&self) {
        let mut filler = [0; FILLER];
        while !self.hides_out
            && recv(self.fd.as_raw_fd(), &mut filler, flags()).is_ok_and(|length| length > 0)
        {
        }
    }

    /// Shows that this end is closed.
    pub(crate) fn hang_up(&self) {
        // The program may have closed its end in the meantime.
        let _ = shutdown(self.fd.as_raw_fd(), Shutdown::Both);
    }

    /// Returns whether the last copy of the program's end is closed.
    pub(crate) fn is_closed(&self) -> bool {
        let mut ends = [PollFd::new(self.fd.as_fd(), PollFlags::empty())];
        let polled = nix::poll::poll(&mut ends, PollTimeout::ZERO);
        let found = ends[0].revents().unwrap_or(PollFlags::empty());
        polled.is_ok() && found.contains(PollFlags::POLLHUP)
    }
}

fn flags() -> MsgFlags {
    MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL
}
