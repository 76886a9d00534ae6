//! A call of a program, as sent by the library.

use super::{MAX_DATA, MAX_SIDE, VERSION, i32_at, u32_at, u64_at, write_at};

/// The size of a request's header; name, control and data follow.
pub const REQUEST: usize = 56;

/// Whether the program waits until the call is done.
pub mod blocks {
    /// It does not wait: `O_NONBLOCK` or `MSG_DONTWAIT`.
    pub const NO: u32 = 0;
    /// It waits.
    pub const YES: u32 = 1;
}

/// The kind of a request, with its arguments `a`, `b`, `c`, and the content of name, control and
/// data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Op {
    /// A new socket (domain, type, protocol). The response carries its descriptor.
    Socket = 1,
    /// `bind` (name).
    Bind = 2,
    /// `listen` (backlog).
    Listen = 3,
    /// `accept`. The response carries a descriptor and the peer's name.
    Accept = 4,
    /// `connect` (name).
    Connect = 5,
    /// `sendmsg` and simpler calls (flags, 1 if it could be written to the descriptor; name,
    /// control, data).
    Send = 6,
    /// `recvmsg` and simpler calls (flags, room for data).
    Receive = 7,
    /// `shutdown` (how).
    Shutdown = 8,
    /// `getsockopt` (level, name, room; name: the addresses that the option points to; data: the
    /// content of the program's buffer). For `SCTP_SOCKOPT_PEELOFF` the response carries a
    /// descriptor.
    GetOption = 9,
    /// `setsockopt` (level, name; data).
    SetOption = 10,
    /// `getsockname`.
    LocalName = 11,
    /// `getpeername`.
    PeerName = 12,
    /// `ioctl` (request, which returns one number).
    Ioctl = 13,
    /// A descriptor was closed; if it was the last one, the response is sent when `close` may
    /// return.
    Closed = 14,
    /// The program no longer waits. The previous call gets its response now: its result, or
    /// `EINTR`.
    Cancel = 15,
    /// The state of the supervisor, as JSON.
    Status = 16,
    /// An accepted socket could not be passed on to the program: the listener gets its connection
    /// back (data: the capability of the accepted socket).
    GiveBack = 17,
}

impl Op {
    const ALL: [Self; 17] = [
        Self::Socket,
        Self::Bind,
        Self::Listen,
        Self::Accept,
        Self::Connect,
        Self::Send,
        Self::Receive,
        Self::Shutdown,
        Self::GetOption,
        Self::SetOption,
        Self::LocalName,
        Self::PeerName,
        Self::Ioctl,
        Self::Closed,
        Self::Cancel,
        Self::Status,
        Self::GiveBack,
    ];
}

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// One of [`blocks`].
    pub blocks: u32,
    /// Proves that the program was given the supervisor's address; 0 if the socket is a file.
    pub key: u64,
    /// The [`Capability`](super::Capability) of the socket.
    pub capability: u64,
    /// See [`Op`].
    pub a: i32,
    /// See [`Op`].
    pub b: i32,
    /// See [`Op`].
    pub c: i32,
    /// The number of bytes of the name that follows.
    pub name: u32,
    /// The number of bytes of control messages that follow the name.
    pub control: u32,
    /// The number of bytes of data that follow the control messages.
    pub data: u32,
}

impl Request {
    /// Creates a request without arguments.
    #[must_use]
    pub const fn new(op: Op) -> Self {
        Self {
            op,
            blocks: blocks::NO,
            key: 0,
            capability: 0,
            a: 0,
            b: 0,
            c: 0,
            name: 0,
            control: 0,
            data: 0,
        }
    }

    /// Returns the encoded header.
    #[must_use]
    pub fn encode(&self) -> [u8; REQUEST] {
        let mut bytes = [0; REQUEST];
        write_at(&mut bytes, 0, &VERSION.to_ne_bytes());
        write_at(&mut bytes, 4, &(self.op as u32).to_ne_bytes());
        write_at(&mut bytes, 8, &self.blocks.to_ne_bytes());
        write_at(&mut bytes, 16, &self.key.to_ne_bytes());
        write_at(&mut bytes, 24, &self.capability.to_ne_bytes());
        write_at(&mut bytes, 32, &self.a.to_ne_bytes());
        write_at(&mut bytes, 36, &self.b.to_ne_bytes());
        write_at(&mut bytes, 40, &self.c.to_ne_bytes());
        write_at(&mut bytes, 44, &self.name.to_ne_bytes());
        write_at(&mut bytes, 48, &self.control.to_ne_bytes());
        write_at(&mut bytes, 52, &self.data.to_ne_bytes());
        bytes
    }

    /// Parses a header; `None` if it is of another version or not a request.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != REQUEST || u32_at(bytes, 0)? != VERSION {
            return None;
        }
        let op = u32_at(bytes, 4)?;
        let request = Self {
            op: Op::ALL.into_iter().find(|one| *one as u32 == op)?,
            blocks: u32_at(bytes, 8)?,
            key: u64_at(bytes, 16)?,
            capability: u64_at(bytes, 24)?,
            a: i32_at(bytes, 32)?,
            b: i32_at(bytes, 36)?,
            c: i32_at(bytes, 40)?,
            name: u32_at(bytes, 44)?,
            control: u32_at(bytes, 48)?,
            data: u32_at(bytes, 52)?,
        };
        let fits = |length: u32, max: usize| length as usize <= max;
        let is_small = fits(request.name, MAX_SIDE) && fits(request.control, MAX_SIDE);
        (is_small && fits(request.data, MAX_DATA)).then_some(request)
    }
}
