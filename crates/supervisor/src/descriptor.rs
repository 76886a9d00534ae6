//! Pairs of local sockets, one end of which belongs to a program.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{
    AddressFamily, MsgFlags, Shutdown, SockFlag, SockType, getsockopt, send, setsockopt, shutdown,
    socketpair, sockopt,
};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use tokio::sync::Notify;

use crate::local::{Capability, filler, mark};
use crate::random::number;
use crate::service::poll;
use crate::written::{Inbox, WrittenMessage};

/// The token that represents `POLLIN`.
const TOKEN: [u8; 1] = [1];
/// The maximum number of tokens: a program that has seen as many edges without a call sees no more.
const MAX_TOKENS: u32 = 32;

sockopt_impl!(
    /// The option that contains a [`Capability`].
    MaxPacingRate,
    Both,
    nix::libc::SOL_SOCKET,
    Capability::OPTION,
    u64
);

/// Returns the capability that a descriptor has, if it is an SCTP socket.
pub(crate) fn capability_of(fd: &OwnedFd) -> Option<Capability> {
    Capability::from_rate(getsockopt(fd, MaxPacingRate).ok()?)
}

/// Our ends of all sockets, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    ends: BTreeMap<u64, End>,
    sockets: HashMap<u64, u64>,
}

impl Ends {
    pub(crate) fn insert(&mut self, socket: u64, end: End) {
        self.sockets.insert(end.capability.number(), socket);
        self.ends.insert(socket, end);
    }

    pub(crate) fn remove(&mut self, socket: u64) -> Option<End> {
        let end = self.ends.remove(&socket)?;
        self.sockets.remove(&end.capability.number());
        Some(end)
    }

    pub(crate) fn get(&self, socket: u64) -> Option<&End> {
        self.ends.get(&socket)
    }

    pub(crate) fn get_mut(&mut self, socket: u64) -> Option<&mut End> {
        self.ends.get_mut(&socket)
    }

    /// Returns the socket of which this is the capability.
    pub(crate) fn socket(&self, capability: u64) -> Option<u64> {
        self.sockets.get(&capability).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &End)> {
        self.ends.iter().map(|(socket, end)| (*socket, end))
    }
}

/// Our end of a pair, and the readiness shown at the program's end.
#[derive(Debug)]
pub(crate) struct End {
    capability: Capability,
    pub(crate) fd: Arc<OwnedFd>,
    /// Wakes calls that wait for this socket.
    pub(crate) retry: Arc<Notify>,
    /// Wakes what reads the program's messages.
    pub(crate) has_more: Arc<Notify>,
    /// The number of tokens at the program's end that are to stay there.
    tokens: u32,
    /// The number of tokens that only the holder of the program's end can remove.
    used_tokens: u32,
    hides_out: bool,
    /// Whether the socket has room for a message.
    has_room: bool,
    /// The number of blocking calls that wait: the socket stays open until they return, as the
    /// kernel's would.
    pub(crate) waiting: usize,
    /// What the program writes to the descriptor.
    pub(crate) inbox: Inbox,
    /// Whether writing without a call fails.
    pub(crate) refuses_writes: bool,
    has_ended: bool,
    /// Whether the holder of the program's end has to add a filler.
    needs_filler: bool,
}

impl End {
    /// Creates a pair for a socket without readiness, and returns the program's end as well.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        let capability = Capability::new(number()?);
        setsockopt(&theirs, MaxPacingRate, &capability.rate())?;
        // Before Linux 4.20 the option has 32 bits.
        if capability_of(&theirs) != Some(capability) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // The kernel raises this to the smallest possible size.
        setsockopt(&theirs, sockopt::SndBuf, &1)?;
        send(theirs.as_raw_fd(), &filler(), MsgFlags::MSG_DONTWAIT)?;
        let end = Self {
            capability,
            fd: Arc::new(ours),
            retry: Arc::new(Notify::new()),
            has_more: Arc::new(Notify::new()),
            tokens: 0,
            used_tokens: 0,
            hides_out: true,
            has_room: false,
            waiting: 0,
            inbox: Inbox::default(),
            refuses_writes: false,
            has_ended: false,
            needs_filler: false,
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
        match (shown, self.tokens) {
            (true, 0) => self.add_token(),
            (false, _) => self.keep_tokens(0),
            _ => {}
        }
    }

    /// Shows that more has arrived: each token that arrives is an edge for `EPOLLET`.
    pub(crate) fn show_arrival(&mut self) {
        if (1..MAX_TOKENS).contains(&self.tokens) {
            self.add_token();
        }
    }

    fn add_token(&mut self) {
        // The program may have closed its end in the meantime.
        if send(self.fd.as_raw_fd(), &TOKEN, flags()).is_ok() {
            self.tokens += 1;
        }
    }

    /// Leaves at most this number of tokens.
    fn keep_tokens(&mut self, count: u32) {
        let kept = self.tokens.min(count);
        self.used_tokens += self.tokens - kept;
        self.tokens = kept;
    }

    fn show_out(&mut self, shown: bool) {
        self.has_room = shown;
        if self.inbox.is_open() {
            // Its own buffer, which is read as long as there is room, shows it.
            return;
        }
        match (shown, self.hides_out) {
            (true, true) if self.needs_filler => self.needs_filler = false,
            (false, false) => self.needs_filler = true,
            _ => {}
        }
        self.hides_out = !shown;
        self.remove_fillers();
    }

    /// Returns the actions for the library in the next response.
    pub(crate) fn take_marks(&mut self) -> u32 {
        self.keep_tokens(1);
        let filler = if std::mem::take(&mut self.needs_filler) { mark::ADD_FILLER } else { 0 };
        filler | self.inbox.take_mark() | mark::of_tokens(std::mem::take(&mut self.used_tokens))
    }

    /// Removes fillers that hide `POLLOUT`, if it is to be shown: a filler may arrive late.
    fn remove_fillers(&mut self) {
        if !self.hides_out {
            self.inbox.read_some(&self.fd, self.capability);
        }
    }

    /// Returns the next message that the program has written; not while `POLLOUT` is hidden, unless
    /// `ignores_fillers`, because that removes the filler, which has to be added again.
    pub(crate) fn next_written(&mut self, ignores_fillers: bool) -> Option<WrittenMessage> {
        let reads = !self.hides_out || ignores_fillers;
        self.needs_filler |= self.hides_out && reads;
        self.inbox.next(&self.fd, self.capability, reads)
    }

    /// Makes the program request each message again.
    pub(crate) fn close_inbox(&mut self) {
        self.inbox.close();
        self.show_out(self.has_room);
    }

    /// Returns whether nothing hides `POLLOUT`, now or after the next response.
    pub(crate) fn shows_out(&self) -> bool {
        !self.hides_out && !self.needs_filler
    }

    /// Makes further writes without a call fail.
    pub(crate) fn refuse_writes(&mut self) {
        self.refuses_writes = true;
        // The program may have closed its end in the meantime.
        let _ = shutdown(self.fd.as_raw_fd(), Shutdown::Read);
    }

    /// Returns whether no program has the socket any longer and no call waits for it.
    pub(crate) fn is_unused(&self) -> bool {
        self.waiting == 0 && self.is_closed()
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
