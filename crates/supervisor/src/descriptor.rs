//! One pair of local sockets, whose far end a program has.

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

/// What stands for `POLLIN`.
const TOKEN: [u8; 1] = [1];

/// Our end of a pair, and what the other one shows.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) fd: Arc<OwnedFd>,
    /// Wakes calls that wait for this socket.
    pub(crate) retry: Arc<Notify>,
    shows_in: bool,
    hides_out: bool,
    has_ended: bool,
    /// What only who has the other end can do about it.
    marks: u32,
}

impl End {
    /// A pair for a socket, which shows nothing, and the program's end of it.
    pub(crate) fn pair(name: Descriptor) -> io::Result<(Self, OwnedFd)> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        let name = name.name();
        // It begins with the zero byte that makes it abstract.
        bind(ours.as_raw_fd(), &UnixAddr::new_abstract(&name[1..])?)?;
        // The kernel makes it as small as it can.
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

    /// Shows this to `poll`. An error shows as what wakes those who wait for anything: a local socket
    /// has no errors that could be taken back.
    pub(crate) fn show(&mut self, bits: u16) {
        self.show_in(bits & (poll::IN | poll::ERR) != 0);
        self.show_out(bits & (poll::OUT | poll::ERR) != 0);
        if bits & (poll::RDHUP | poll::HUP) != 0 && !self.has_ended {
            self.has_ended = true;
            // The program may have closed its end meanwhile.
            let _ = shutdown(self.fd.as_raw_fd(), Shutdown::Write);
        }
    }

    fn show_in(&mut self, wanted: bool) {
        match (wanted, self.shows_in) {
            (true, false) if self.marks & mark::TAKE_IN != 0 => self.marks &= !mark::TAKE_IN,
            (true, false) => {
                let _ = send(self.fd.as_raw_fd(), &TOKEN, flags());
            }
            (false, true) => self.marks |= mark::TAKE_IN,
            _ => {}
        }
        self.shows_in = wanted;
    }

    fn show_out(&mut self, wanted: bool) {
        match (wanted, self.hides_out) {
            (true, true) if self.marks & mark::FILL_OUT != 0 => self.marks &= !mark::FILL_OUT,
            (false, false) => self.marks |= mark::FILL_OUT,
            _ => {}
        }
        self.hides_out = !wanted;
        self.empty();
    }

    /// What the next response has the library do.
    pub(crate) fn take_marks(&mut self) -> u32 {
        std::mem::take(&mut self.marks)
    }

    /// Takes out what hides `POLLOUT`, if it is to be seen: a filler may come late.
    pub(crate) fn empty(&self) {
        let mut filler = [0; FILLER];
        while !self.hides_out
            && recv(self.fd.as_raw_fd(), &mut filler, flags()).is_ok_and(|length| length > 0)
        {
        }
    }

    /// Shows that there is nobody at this end any more.
    pub(crate) fn hang_up(&self) {
        // The program may have closed its end meanwhile.
        let _ = shutdown(self.fd.as_raw_fd(), Shutdown::Both);
    }

    /// Whether the last copy of the program's end is closed.
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
