//! What a program writes to the descriptor of a socket: messages without a request for each, and
//! what stdio and other code write without any call of the library.
//!
//! A program that has sent a few messages gets a larger buffer for its end of the pair, and the
//! library writes further messages there; the kernel keeps them in order, waits for room, shows
//! `POLLOUT`, and keeps them if the program ends. Whatever processes share the descriptor write to
//! the same buffer. Its size counts against the send buffer of the socket.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use nix::libc;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::local::{Capability, MAX_WRITTEN, Op, REQUEST, Request, filler, mark};
use crate::service::SocketCall;
use crate::user_quotas::NOBODY;

/// The number of requests to send after which a program may write, and the most that it can grow
/// to: it doubles whenever a request has to wait meanwhile, because then nothing hides `POLLOUT`.
const MIN_REQUESTS: u32 = 16;
const MAX_REQUESTS: u32 = 1 << 16;
/// The maximum number of messages that are read to reach a filler: a program can write as fast as
/// they are read.
const MAX_KEPT: usize = 16;
/// The bytes that are read at once: a message with its header, and one more to recognize those
/// that are too long.
const READ_BYTES: usize = MAX_WRITTEN + REQUEST + 1;

/// A message that a program has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WrittenMessage {
    /// By the library, instead of a request.
    Request(Bytes),
    /// Without a call of the library.
    Plain(Bytes),
    /// Neither: no message.
    Invalid,
}

impl WrittenMessage {
    /// Returns the call that sends it.
    pub(crate) fn call(&self, socket: u64) -> SocketCall {
        let data = match self {
            Self::Request(data) | Self::Plain(data) => data.clone(),
            Self::Invalid => Bytes::new(),
        };
        let request = Request {
            a: libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            data: u32::try_from(data.len()).unwrap_or_default(),
            ..Request::new(Op::Send)
        };
        let (name, control) = (Bytes::new(), Bytes::new());
        SocketCall { request, socket, given_back: None, user: NOBODY, name, control, data }
    }

    fn parse(bytes: &[u8], capability: Capability) -> Self {
        let header = bytes.get(..REQUEST).and_then(Request::parse);
        // Nothing else that a program writes starts with the number of its socket.
        let is_ours = |header: &Request| header.capability == capability.number();
        let Some(header) = header.filter(is_ours) else {
            let fits = bytes.len() < READ_BYTES;
            return if fits { Self::Plain(Bytes::copy_from_slice(bytes)) } else { Self::Invalid };
        };
        let data = &bytes[REQUEST..];
        let is_valid = header.op == Op::Send
            && (1..=MAX_WRITTEN).contains(&data.len())
            && (header.name, header.control, header.data as usize) == (0, 0, data.len());
        if is_valid { Self::Request(Bytes::copy_from_slice(data)) } else { Self::Invalid }
    }
}

/// The messages that a program writes to one descriptor.
#[derive(Debug)]
pub(crate) struct Inbox {
    is_open: bool,
    /// Whether it was ever open: a thread may write late, because it saw that it might earlier.
    was_open: bool,
    /// Requests to send since it was closed.
    requests: u32,
    /// The number of them after which it may be opened.
    wanted: u32,
    /// Messages that have been read and not sent.
    kept: VecDeque<WrittenMessage>,
    /// What the library has to do.
    mark: u32,
}

impl Default for Inbox {
    fn default() -> Self {
        let kept = VecDeque::new();
        Self { is_open: false, was_open: false, requests: 0, wanted: MIN_REQUESTS, kept, mark: 0 }
    }
}

impl Inbox {
    /// Counts a request to send that could have been written, and returns whether it is time to
    /// open the inbox.
    pub(crate) fn counts_request(&mut self) -> bool {
        self.requests = self.requests.saturating_add(1);
        !self.is_open && self.requests >= self.wanted
    }

    /// Lets the program write its messages to the descriptor, which has room for this many bytes.
    pub(crate) fn open(&mut self, room: usize) {
        (self.is_open, self.was_open) = (true, true);
        self.mark = mark::of_buffer(room);
    }

    /// Makes the program request each message again.
    pub(crate) fn close(&mut self) {
        (self.is_open, self.requests) = (false, 0);
        self.mark = mark::STOP_WRITING;
    }

    /// Makes it harder to open the inbox.
    pub(crate) fn demand_more(&mut self) {
        self.wanted = MAX_REQUESTS.min(2 * self.wanted);
    }

    /// Returns whether the program may write its messages.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns whether messages may have been written that have not been sent.
    pub(crate) fn may_have_messages(&self) -> bool {
        self.was_open || !self.kept.is_empty()
    }

    /// Returns whether messages have been read that have not been sent.
    pub(crate) fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Returns what the library has to do, once.
    pub(crate) fn take_mark(&mut self) -> u32 {
        std::mem::take(&mut self.mark)
    }

    /// Puts a message back that could not be sent yet.
    pub(crate) fn keep(&mut self, message: WrittenMessage) {
        self.kept.push_front(message);
    }

    /// Returns the next message: one that is kept, else one that is read, if `reads`.
    pub(crate) fn next(
        &mut self,
        fd: &OwnedFd,
        capability: Capability,
        reads: bool,
    ) -> Option<WrittenMessage> {
        let kept = self.kept.pop_front();
        if kept.is_none() && reads { read(fd, capability) } else { kept }
    }

    /// Reads fillers and the messages between them, which it keeps.
    pub(crate) fn read_some(&mut self, fd: &OwnedFd, capability: Capability) {
        while self.kept.len() < MAX_KEPT
            && let Some(message) = read(fd, capability)
        {
            self.kept.push_back(message);
        }
    }
}

/// Reads the next message that is not a filler.
fn read(fd: &OwnedFd, capability: Capability) -> Option<WrittenMessage> {
    let mut memory = [MaybeUninit::uninit(); READ_BYTES];
    let mut was_reset = false;
    loop {
        match recv(fd, &mut memory, RecvFlags::DONTWAIT) {
            Ok(((bytes, _), _)) if *bytes == filler() => {}
            Ok((([], _), _)) => return None,
            Ok(((bytes, _), _)) => return Some(WrittenMessage::parse(bytes, capability)),
            // The program has closed its end with unread tokens: what it had written comes next.
            Err(Errno::CONNRESET) if !was_reset => was_reset = true,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}
