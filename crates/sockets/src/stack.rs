//! Sockets over SCTP endpoints: the parts of a stack, and the calls that reach several of them.
//!
//! | part | what it owns |
//! | --- | --- |
//! | `association_table` | the associations, who waits for their end, when idle ones are closed |
//! | `socket_table` | the sockets, and those whose `poll` result may have changed |
//! | `association`, `socket` | one of them |
//! | `ports` | the endpoints, one for each bound port: who has a number, where packets go, when they are polled |
//! | `delivery` | what an association still has to deliver, in order |
//! | `turns` | from which of its associations a socket receives |
//! | `seed` | the secret, and what is drawn from it |
//! | `unsupported` | counts of options that are not supported |
//!
//! None of them knows [`Stack`]: they are passed the others that they need, and each depends only
//! on those below it (`cargo xtask tidy`).
//!
//! | file | calls and inputs |
//! | --- | --- |
//! | `naming`, `names` | `bind`, `bindx`, names; addresses parsed |
//! | `connecting` | `connect`, `connectx`, `listen`, `accept`, `peeloff` |
//! | `sending`, `receiving` | messages |
//! | `send_room` | whether send buffers are full |
//! | `plain_sends` | messages that a driver accepts before it passes them in |
//! | `closing` | `shutdown`, `close` |
//! | `driving` | inputs in, outputs out |
//! | `events` | handling the events of endpoints |
//! | `readiness` | the result of `poll` |
//! | `options` | `getsockopt`, `setsockopt` |
//! | `report` | the status |

mod association;
mod association_table;
mod closing;
mod connecting;
mod delivery;
mod driving;
mod events;
mod names;
mod naming;
mod options;
mod plain_sends;
mod ports;
mod readiness;
mod receiving;
mod report;
mod seed;
mod send_room;
mod sending;
mod socket;
mod socket_table;
mod turns;
mod unsupported;

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::abi::Errno;
use crate::abi::number::socket::{AF_INET, AF_INET6, IPPROTO_SCTP, SOCK_SEQPACKET, SOCK_STREAM};
use crate::config::StackConfig;
use crate::io::{SocketDomain, SocketId, SocketStyle, StackOutput};

use association_table::AssociationTable;
pub use options::needs_privileges;
use ports::PortTable;
use socket::SctpSocket;
use socket_table::SocketTable;
use unsupported::UnsupportedOptions;

/// The first number that is not a socket type.
const SOCK_MAX: i32 = 11;

/// All sockets of the programs that share one stack. [`crate::io`] describes how to drive it.
///
/// Each call has the name of the system call or that of RFC 6458, and fails with Linux's errno.
/// None of them blocks: a call that would block fails with `EAGAIN` (or `EINPROGRESS`), and should
/// be repeated after [`StackOutput::Retry`] for the socket. A call on a closed socket fails with
/// `EBADF`.
#[derive(Debug)]
pub struct Stack {
    config: StackConfig,
    now: Duration,
    sockets: SocketTable,
    associations: AssociationTable,
    ports: PortTable,
    outputs: VecDeque<StackOutput>,
    unsupported: UnsupportedOptions,
}

impl Stack {
    /// Creates a stack without sockets. `seed` must be secret and, on a real network, different for
    /// each run.
    #[must_use]
    pub fn new(config: StackConfig, seed: [u8; 32], now: Duration) -> Self {
        Self {
            now,
            sockets: SocketTable::new(),
            associations: AssociationTable::new(),
            ports: PortTable::new(&config, seed, now),
            outputs: VecDeque::new(),
            unsupported: UnsupportedOptions::default(),
            config,
        }
    }

    /// `socket(domain, type, protocol)`, by the numbers of the system call; flags in `kind`
    /// (`SOCK_NONBLOCK`, `SOCK_CLOEXEC`) are left to the caller.
    ///
    /// # Errors
    /// `EPROTONOSUPPORT`, `EAFNOSUPPORT`, `EINVAL`; `ENOBUFS` if there are too many.
    pub fn socket(&mut self, domain: i32, kind: i32, protocol: i32) -> Result<SocketId, Errno> {
        let domain = match domain {
            AF_INET => SocketDomain::Inet,
            AF_INET6 => SocketDomain::Inet6,
            _ => return Err(Errno::EAFNOSUPPORT),
        };
        if !(0..SOCK_MAX).contains(&kind) {
            return Err(Errno::EINVAL);
        }
        let style = match (kind, protocol) {
            (SOCK_STREAM, IPPROTO_SCTP) => SocketStyle::OneToOne,
            // No other protocol has sockets of this type.
            (SOCK_SEQPACKET, 0 | IPPROTO_SCTP) => SocketStyle::OneToMany,
            _ => return Err(Errno::EPROTONOSUPPORT),
        };
        if self.sockets.len() >= self.config.max_sockets {
            return Err(Errno::ENOBUFS);
        }
        Ok(self.sockets.insert(SctpSocket::new(domain, style)))
    }

    /// Sets the user whose program created a socket: `SO_REUSEPORT` shares a port only among
    /// sockets of one user. By default it is user 0.
    pub fn set_user(&mut self, socket: SocketId, user: u32) {
        if let Some(found) = self.sockets.get_mut(socket) {
            found.user = user;
        }
    }

    /// Advances the time, which never goes back.
    fn advance_to(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }
}
