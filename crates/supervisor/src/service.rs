//! What the sockets are: whoever implements this speaks SCTP.

use std::time::Duration;

use bytes::Bytes;

use crate::local::Request;

/// What `poll` says, in Linux's bits.
pub mod poll {
    /// Something can be read, or accepted.
    pub const IN: u16 = 0x1;
    /// Something can be sent.
    pub const OUT: u16 = 0x4;
    /// There is an error to be read.
    pub const ERR: u16 = 0x8;
    /// Both directions have ended.
    pub const HUP: u16 = 0x10;
    /// The peer sends no more.
    pub const RDHUP: u16 = 0x2000;
}

/// A call of a program.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is called, on which socket, and the numbers of it.
    pub request: Request,
    /// An address, or several.
    pub name: Bytes,
    /// Control messages, as they are in the program's memory.
    pub control: Bytes,
    /// A message, or the value of an option.
    pub data: Bytes,
}

/// What a call comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What it returns.
    pub result: i32,
    /// `msg_flags`; of an option that opens an association the errno that goes with its value.
    pub flags: i32,
    /// The peer's name.
    pub peer: Vec<u8>,
    /// Control messages.
    pub control: Vec<u8>,
    /// A message, or the value of an option: no more than there was room for.
    pub data: Bytes,
    /// A socket that the program gets a descriptor of.
    pub socket: Option<u64>,
}

/// How a call went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done(Answer),
    /// It failed with this errno.
    Failed(i32),
    /// It is done, whatever comes of the association that it opened: one that blocks hears of it once
    /// [`Service::is_opening`] says that this has gone one way or the other.
    Opens(Answer, i32),
    /// It would wait: one that does not block fails with this errno. [`Notice::Retry`] says when it is
    /// worth while to ask again.
    Wait(i32),
}

/// What becomes of a socket whose last descriptor was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// `close` returns at once.
    Done,
    /// One that blocks waits for [`Notice::Closed`], so long at most (`SO_LINGER`).
    Lingers(Duration),
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// What `poll` says of this socket is this now, in the bits of [`poll`]. A socket begins with none.
    Ready(u64, u16),
    /// A call on this socket that would have waited may go otherwise now.
    Retry(u64),
    /// A closed socket is done with.
    Closed(u64),
}

/// Sockets. No call waits.
pub trait Service: Send + 'static {
    /// Makes a call for the first time.
    fn call(&mut self, call: &Call) -> Outcome;

    /// Asks again what became of a call that would wait: most are simply made again, one that opens an
    /// association must not be.
    fn again(&mut self, call: &Call) -> Outcome {
        self.call(call)
    }

    /// Whether an association that a call on this socket opened is neither up nor has failed.
    fn is_opening(&mut self, _socket: u64, _association: i32) -> bool {
        false
    }

    /// A call that would wait is not wanted any more.
    fn given_up(&mut self, _call: &Call) {}

    /// The last descriptor of a socket was closed.
    fn close(&mut self, socket: u64) -> Closing;

    /// What has changed since: asked for after each call until there is nothing more.
    fn notice(&mut self) -> Option<Notice>;
}
