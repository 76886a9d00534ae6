//! The interface of a stack: inputs, outputs, and time as an argument.
//!
//! Pass in an input or make a call, then call [`crate::Stack::poll_output`] until it returns
//! [`StackOutput::Timeout`], then wait for the next input or call, or for that time.

use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

pub use eyas_sctp::io::{Ecn, Fragmentation, Received, Transmit, Unreachable};

use crate::abi::SocketName;
use crate::abi::number::poll;

/// Identifies a socket. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u64);

/// Identifies an association for programs: above 2, ascending over the whole stack, and never
/// reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct AssocId(pub i32);

/// The address family of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum SocketDomain {
    /// `AF_INET`.
    Inet,
    /// `AF_INET6`; includes IPv4 addresses unless `IPV6_V6ONLY` is set.
    Inet6,
}

/// The style of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum SocketStyle {
    /// `SOCK_STREAM`: one association, or a listener (RFC 6458 §4).
    OneToOne,
    /// `SOCK_SEQPACKET`: any number of associations (RFC 6458 §3).
    OneToMany,
}

/// What the driver passes to the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackInput {
    /// Time has passed; nothing else happened.
    Tick,
    /// One or more SCTP packets from one address: over UDP if the port of `remote` is not 0. Set
    /// [`Received::local`] if it is known; otherwise sockets bound to single addresses receive
    /// nothing.
    Packets(Received),
    /// The network reported that packets cannot be delivered.
    Unreachable {
        /// The destination of the packets; the port is that of the UDP encapsulation, 0 without.
        remote: SocketAddr,
        /// The report.
        reason: Unreachable,
        /// The beginning of the SCTP packet in question; `None` if the report is from the local
        /// host.
        quoted: Option<Bytes>,
    },
    /// The packets of an [`StackOutput::OutOfTheBlue`], if no other program of this host owns the port: they
    /// are answered with an ABORT where required (RFC 9260 §8.4).
    Refused(Received),
    /// All local addresses, including loopback, most preferred first.
    LocalAddresses(Vec<IpAddr>),
}

/// What the stack asks the driver to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackOutput {
    /// Send these packets: over UDP to the port of `remote`, or directly over IP if that is 0.
    Transmit(Transmit),
    /// Packets directly over IP for an SCTP port that is not bound here. Another program on this
    /// host may own it through a raw socket; if not, pass in [`StackInput::Refused`]. Packets over UDP
    /// always belong to this stack and are answered here.
    OutOfTheBlue(Received),
    /// The `poll` result of this socket has changed. New sockets, including those from `accept` and
    /// `peeloff`, begin with [`PollReadiness::NOTHING`].
    Readiness(SocketId, PollReadiness),
    /// Something more has arrived at a socket whose readiness already has
    /// [`POLLIN`](poll::POLLIN): an edge for `EPOLLET`.
    Arrived(SocketId),
    /// A call on this socket that failed with `EAGAIN` or `EINPROGRESS` should be repeated.
    Retry(SocketId),
    /// The last association of a closed socket has ended: a lingering `close` may return
    /// ([`crate::Stack::close`]).
    Closed(SocketId),
    /// Nothing more for now; call again at this time at the latest, if one is given.
    Timeout(Option<Duration>),
}

/// The result of `poll` for a socket, with Linux's bits ([`crate::abi::number::poll`]).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PollReadiness(pub u16);

impl PollReadiness {
    /// Not ready.
    pub const NOTHING: Self = Self(0);

    /// Returns whether all of `bits` are set.
    #[must_use]
    pub const fn has(self, bits: u16) -> bool {
        self.0 & bits == bits
    }
}

impl core::fmt::Debug for PollReadiness {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let names = [
            (poll::POLLIN, "IN"),
            (poll::POLLOUT, "OUT"),
            (poll::POLLRDHUP, "RDHUP"),
            (poll::POLLERR, "ERR"),
            (poll::POLLHUP, "HUP"),
        ];
        let mut separator = "";
        for (_, name) in names.iter().filter(|(bit, _)| self.has(*bit)) {
            write!(f, "{separator}{name}")?;
            separator = "|";
        }
        if separator.is_empty() { f.write_str("nothing") } else { Ok(()) }
    }
}

/// The arguments of a send call.
#[derive(Clone, Debug, Default)]
pub struct SendRequest<'a> {
    /// The message.
    pub data: Bytes,
    /// `msg_name`: empty if not given.
    pub name: &'a [u8],
    /// `msg_control` as in the program's memory, including `cmsghdr`s.
    pub control: &'a [u8],
    /// The flags of the call. Calls never block here, whatever the flags.
    pub flags: i32,
    /// Whether a full send buffer accepts it because the program already sent it: see
    /// [`crate::Stack::reserve_room`].
    pub uses_reserve: bool,
}

/// The result of a send call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendResult {
    /// The return value of the call.
    pub length: usize,
    /// The association.
    pub association: AssocId,
    /// Whether the message opened the association: a blocking call then waits while
    /// [`crate::Stack::is_opening`] returns true, and returns `length` whatever the outcome.
    /// Otherwise a program that closes the socket at once would close it before anything has been
    /// sent.
    pub connecting: bool,
}

/// The result of a receive call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiveResult {
    /// A message or a notification, or a part of one; empty at the end of the association.
    pub data: Bytes,
    /// `msg_name`: the peer.
    pub name: Option<SocketName>,
    /// `msg_control`: control messages including `cmsghdr`s, each padded to 8 bytes. If the
    /// program's buffer is smaller, the caller must truncate them and set `MSG_CTRUNC`.
    pub control: Vec<u8>,
    /// `msg_flags`: `MSG_EOR`, `MSG_NOTIFICATION`.
    pub flags: i32,
}

/// The result of `close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseResult {
    /// It returns at once.
    Done,
    /// A blocking call waits for [`StackOutput::Closed`], at most this long (`SO_LINGER`).
    Lingers(Duration),
}
