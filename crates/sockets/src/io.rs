//! The contract of a stack: inputs in, outputs out, time as an argument.
//!
//! Hand in an input or make a call, then drain [`crate::Stack::poll_output`] until it gives
//! [`Output::Timeout`], then wait for the next input or call, or for that time.

use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

pub use eyas_sctp::io::{Ecn, Fragmentation, Received, Transmit, Unreachable};

use crate::abi::Name;
use crate::abi::number::poll;

/// A socket. Never used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u64);

/// An association as programs know it: above 2, counting up for the whole stack, and never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct AssocId(pub i32);

/// Which addresses a socket takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Domain {
    /// `AF_INET`.
    Inet,
    /// `AF_INET6`; IPv4 addresses, too, unless `IPV6_V6ONLY` is set.
    Inet6,
}

/// What a socket is to its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Style {
    /// `SOCK_STREAM`: one association, or a listener (RFC 6458 §4).
    OneToOne,
    /// `SOCK_SEQPACKET`: any number of associations (RFC 6458 §3).
    OneToMany,
}

/// What the driver tells the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time has passed; nothing else happened.
    Tick,
    /// One or more SCTP packets came from one address: over UDP if the port of `remote` is not 0. Set
    /// [`Received::local`] if it is known, or sockets that are bound to single addresses hear nothing.
    Packets(Received),
    /// The network reported that packets do not arrive.
    Unreachable {
        /// Where the packets were sent; the port is that of the UDP encapsulation, 0 without.
        remote: SocketAddr,
        /// What was reported.
        reason: Unreachable,
        /// The beginning of the SCTP packet in question; `None`: this host itself says so.
        quoted: Option<Bytes>,
    },
    /// The packets of an [`Output::Stranger`], which are for nobody else of this host either: they are
    /// answered with an ABORT where that is due (RFC 9260 §8.4).
    Refused(Received),
    /// The addresses of this host, all of them, loopback included, most wanted first.
    LocalAddresses(Vec<IpAddr>),
}

/// What the stack tells the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these packets: over UDP to the port of `remote`, or directly over IP if that is 0.
    Transmit(Transmit),
    /// These came directly over IP for an SCTP port that nobody has here. Another program of this host may
    /// have it, over a raw socket of its own; if not, hand in [`Input::Refused`]. What comes inside UDP is
    /// ours alone, and answered.
    Stranger(Received),
    /// What `poll` says of this socket has changed to this. A socket begins with
    /// [`Readiness::NOTHING`], and so do those that `accept` and `peeloff` give.
    Readiness(SocketId, Readiness),
    /// A call on this socket that said `EAGAIN` or `EINPROGRESS` may say something else now.
    Retry(SocketId),
    /// A closed socket's last association has ended: a `close` that lingers may return
    /// ([`crate::Stack::close`]).
    Closed(SocketId),
    /// Nothing more for now; call again at this time at the latest, if one is given.
    Timeout(Option<Duration>),
}

/// What `poll` says of a socket, in Linux's bits ([`crate::abi::number::poll`]).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Readiness(pub u16);

impl Readiness {
    /// Nothing can be done.
    pub const NOTHING: Self = Self(0);

    /// Whether all of `bits` are set.
    #[must_use]
    pub const fn has(self, bits: u16) -> bool {
        self.0 & bits == bits
    }
}

impl core::fmt::Debug for Readiness {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let names = [
            (poll::POLLIN, "IN"),
            (poll::POLLOUT, "OUT"),
            (poll::POLLRDHUP, "RDHUP"),
            (poll::POLLERR, "ERR"),
            (poll::POLLHUP, "HUP"),
        ];
        let mut before = "";
        for (_, name) in names.iter().filter(|(bit, _)| self.has(*bit)) {
            write!(f, "{before}{name}")?;
            before = "|";
        }
        if before.is_empty() { f.write_str("nothing") } else { Ok(()) }
    }
}

/// What a program hands in with one call.
#[derive(Clone, Debug, Default)]
pub struct Outgoing<'a> {
    /// The message.
    pub data: Bytes,
    /// `msg_name`: empty if none is given.
    pub name: &'a [u8],
    /// `msg_control` as it is in the program's memory, with its `cmsghdr`s.
    pub control: &'a [u8],
    /// The flags of the call. They do not say whether it waits: nothing does.
    pub flags: i32,
}

/// What a message that was handed in came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// What the call returns.
    pub length: usize,
    /// Its association.
    pub association: AssocId,
    /// Whether the message opened the association: a call that blocks waits for as long as
    /// [`crate::Stack::is_opening`] says so, and returns `length` however that went. Who does not wait, and closes
    /// the socket, closes it before anything was sent.
    pub connecting: bool,
}

/// What a program receives with one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Incoming {
    /// A message or a notification, or a part of one; empty at the end of the association.
    pub data: Bytes,
    /// `msg_name`: the peer.
    pub name: Option<Name>,
    /// `msg_control`: control messages with their `cmsghdr`s, one after another, each padded to 8 bytes.
    /// Where the program has less room, it is for who copies it to cut it and say `MSG_CTRUNC`.
    pub control: Vec<u8>,
    /// `msg_flags`: `MSG_EOR`, `MSG_NOTIFICATION`.
    pub flags: i32,
}

/// What became of a call to `close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// It returns at once.
    Done,
    /// A blocking one waits for [`Output::Closed`], so long at most (`SO_LINGER`).
    Lingers(Duration),
}
