//! The interface to the implementation of the sockets.

use std::time::Duration;

use bytes::Bytes;

use crate::local::Request;

/// The events of `poll`, with Linux's bits.
pub mod poll {
    /// Something can be read, or accepted.
    pub const IN: u16 = 0x1;
    /// Something can be sent.
    pub const OUT: u16 = 0x4;
    /// There is a pending error.
    pub const ERR: u16 = 0x8;
    /// Both directions have ended.
    pub const HUP: u16 = 0x10;
    /// The peer will not send anything further.
    pub const RDHUP: u16 = 0x2000;
}

/// A call of a program.
#[derive(Clone, Debug)]
pub struct SocketCall {
    /// The operation, and its numeric arguments.
    pub request: Request,
    /// The number of the socket.
    pub socket: u64,
    /// The number of the socket that [`Op::GiveBack`](crate::local::Op::GiveBack) gives back.
    pub given_back: Option<u64>,
    /// The user who runs the program.
    pub user: u32,
    /// One or several addresses.
    pub name: Bytes,
    /// Control messages, as in the program's memory.
    pub control: Bytes,
    /// A message, or the value of an option.
    pub data: Bytes,
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallAnswer {
    /// The return value.
    pub result: i32,
    /// `msg_flags`; for an option that opens an association, the errno that accompanies its value.
    pub flags: i32,
    /// The name of the peer.
    pub peer: Vec<u8>,
    /// Control messages.
    pub control: Vec<u8>,
    /// A message, or the value of an option, truncated to the program's buffer.
    pub data: Bytes,
    /// A socket for which the program gets a descriptor.
    pub socket: Option<u64>,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It is done.
    Done(CallAnswer),
    /// It failed with this errno.
    Failed(i32),
    /// It is done, and has opened an association: a blocking call returns once
    /// [`SocketService::is_opening`] returns false.
    Opens(CallAnswer, i32),
    /// It would block: a non-blocking call fails with this errno. [`SocketNotice::Retry`] reports when to
    /// try again.
    Wait(i32),
}

/// The state of a socket whose last descriptor was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketClosing {
    /// `close` returns at once.
    Done,
    /// A blocking one waits for [`SocketNotice::Closed`], at most this long (`SO_LINGER`).
    Lingers(Duration),
}

/// A change to report to programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketNotice {
    /// The new readiness of this socket, in the bits of [`poll`]. A new socket has none.
    Ready(u64, u16),
    /// Something more has arrived at this socket, which was readable already.
    Arrived(u64),
    /// A call on this socket that would have blocked may succeed now.
    Retry(u64),
    /// A closed socket has been removed.
    Closed(u64),
    /// The association of this socket may end next: what its program has written before must be
    /// passed in now.
    Ending(u64),
}

/// An implementation of sockets. No call blocks.
pub trait SocketService: Send + 'static {
    /// Makes a call for the first time.
    fn call(&mut self, call: &SocketCall) -> CallOutcome;

    /// Repeats a call that would have blocked. By default it is simply made again, which is wrong
    /// for calls that open an association.
    fn retry(&mut self, call: &SocketCall) -> CallOutcome {
        self.call(call)
    }

    /// Returns whether an association that a call on this socket opened is neither established nor
    /// failed.
    fn is_opening(&mut self, _socket: u64, _association: i32) -> bool {
        false
    }

    /// Returns how many bytes of messages a program may write to the descriptor of this socket, in
    /// addition to those that the service accepts; `None` if it has to request each. Until
    /// [`Self::end_writing`], or [`Self::accepts_written`] returns false, nothing but lack of room
    /// can prevent such a message from being sent.
    fn begin_writing(&mut self, _socket: u64) -> Option<usize> {
        None
    }

    /// Records that a program requests each message again.
    fn end_writing(&mut self, _socket: u64) {}

    /// Returns whether messages that a program writes can still be sent.
    fn accepts_written(&mut self, _socket: u64) -> bool {
        false
    }

    /// Sends a message that a program has written, if necessary beyond the service's own room, if
    /// `uses_reserve`.
    fn send_written(&mut self, call: &SocketCall, _uses_reserve: bool) -> CallOutcome {
        self.call(call)
    }

    /// Handles the cancellation of a blocked call.
    fn call_cancelled(&mut self, _call: &SocketCall) {}

    /// Closes a socket whose last descriptor was closed.
    fn close(&mut self, socket: u64) -> SocketClosing;

    /// Returns the next change; called after each call until there are no more.
    fn notice(&mut self) -> Option<SocketNotice>;
}
