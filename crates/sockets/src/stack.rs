//! Sockets over SCTP endpoints.
//! | file | purpose |
//! | --- | --- |
//! | `mod` | the state of a stack; `socket` |
//! | `socket`, `association`, `port` | the state of each |
//! | `listeners` | the listening sockets that share a port |
//! | `naming` | `bind`, `bindx`, names |
//! | `connecting` | `connect`, `connectx`, `listen`, `accept`, `peeloff` |
//! | `sending`, `receiving` | messages |
//! | `plain_sends` | messages that a driver accepts before it passes them in |
//! | `closing` | `shutdown`, `close`, autoclose |
//! | `driving` | inputs in, outputs out |
//! | `events` | handling the events of endpoints |
//! | `readiness` | the result of `poll` |
//! | `get_options`, `set_options`, `commands`, `rare_options`, `option_target` | options |
//! | `ip_options` | options of IP, and general ones |
//! | `status` | status |

mod association;
mod closing;
mod commands;
mod connecting;
mod driving;
mod events;
mod get_options;
mod ip_options;
mod listeners;
mod naming;
mod option_target;
mod plain_sends;
mod port;
mod rare_options;
mod readiness;
mod receiving;
mod sending;
mod set_options;
mod socket;
mod status;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use eyas_sctp::config::AssociationConfig;
use eyas_sctp::endpoint::{AssociationQueueInfo, Endpoint, PacketMemory, Status};

use crate::abi::Errno;
use crate::abi::number::socket::{AF_INET, AF_INET6, IPPROTO_SCTP, SOCK_SEQPACKET, SOCK_STREAM};
use crate::config::StackConfig;
use crate::io::{AssocId, SocketDomain, SocketId, SocketStyle, StackOutput};
use crate::settings::{self, AssocSettings, SocketSettings};
use crate::status::CounterStatus;

use association::SocketAssociation;
pub use ip_options::needs_privileges;
use port::{PortKey, SharedPort};
use socket::SctpSocket;

/// The first number that is not a socket type.
const SOCK_MAX: i32 = 11;
/// The maximum number of unsupported options that are counted separately.
const MAX_UNKNOWN: usize = 256;

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
    seed: [u8; 32],
    seed_counter: u64,
    addresses: Vec<IpAddr>,
    sockets: BTreeMap<SocketId, SctpSocket>,
    associations: BTreeMap<AssocId, SocketAssociation>,
    ports: BTreeMap<PortKey, SharedPort>,
    /// Ports by number.
    numbers: BTreeMap<u16, Vec<PortKey>>,
    /// Answers packets for unused ports.
    out_of_the_blue: Endpoint,
    /// The buffer into which the packets of all ports are written.
    packet_memory: PacketMemory,
    timers: BTreeSet<(Duration, PortKey)>,
    /// Ports that may have outputs.
    dirty: VecDeque<PortKey>,
    /// Sockets whose `poll` result may have changed.
    touched: BTreeSet<SocketId>,
    outputs: VecDeque<StackOutput>,
    /// Associations whose end a `close` waits for.
    lingering: BTreeMap<AssocId, SocketId>,
    /// When to check whether associations have been idle for too long (`SCTP_AUTOCLOSE`).
    idle: BTreeSet<(Duration, AssocId)>,
    unknown: BTreeMap<(i32, i32), u64>,
    next_socket: u64,
    next_port: u64,
    last_association: AssocId,
    associations_opened: u64,
    packets_for_others: u64,
    /// The counters of removed endpoints.
    retired: CounterStatus,
}

impl Stack {
    /// Creates a stack without sockets. `seed` must be secret and, on a real network, different for
    /// each run.
    #[must_use]
    pub fn new(config: StackConfig, seed: [u8; 32], now: Duration) -> Self {
        let out_of_the_blue = Endpoint::new(Default::default(), seed, now);
        Self {
            now,
            seed,
            seed_counter: 0,
            addresses: config.addresses.iter().map(|ip| ip.to_canonical()).collect(),
            sockets: BTreeMap::new(),
            associations: BTreeMap::new(),
            ports: BTreeMap::new(),
            numbers: BTreeMap::new(),
            out_of_the_blue,
            packet_memory: PacketMemory::default(),
            timers: BTreeSet::new(),
            dirty: VecDeque::new(),
            touched: BTreeSet::new(),
            outputs: VecDeque::new(),
            lingering: BTreeMap::new(),
            idle: BTreeSet::new(),
            unknown: BTreeMap::new(),
            next_socket: 1,
            next_port: 1,
            last_association: AssocId(2),
            associations_opened: 0,
            packets_for_others: 0,
            retired: CounterStatus::default(),
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
        let id = SocketId(self.next_socket);
        self.next_socket += 1;
        self.sockets.insert(id, SctpSocket::new(domain, style));
        self.touch_socket(id);
        Ok(id)
    }

    /// Sets the user whose program created a socket: `SO_REUSEPORT` shares a port only among
    /// sockets of one user. By default it is user 0.
    pub fn set_user(&mut self, socket: SocketId, user: u32) {
        if let Some(found) = self.sockets.get_mut(&socket) {
            found.user = user;
        }
    }

    /// Advances the time, which never goes back.
    fn advance_to(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    fn socket_of(&self, socket: SocketId) -> Result<&SctpSocket, Errno> {
        self.sockets.get(&socket).ok_or(Errno::EBADF)
    }

    fn socket_mut(&mut self, socket: SocketId) -> Result<&mut SctpSocket, Errno> {
        self.sockets.get_mut(&socket).ok_or(Errno::EBADF)
    }

    fn touch_socket(&mut self, socket: SocketId) {
        self.touched.insert(socket);
    }

    fn association_config(
        &self,
        socket: &SocketSettings,
        own: &AssocSettings,
    ) -> AssociationConfig {
        settings::association_config(&self.config.association, socket, own)
    }

    fn endpoint_status(&self, id: AssocId) -> Option<Status> {
        let assoc = self.associations.get(&id)?;
        self.ports.get(&assoc.port)?.endpoint.status(assoc.inner)
    }

    fn endpoint_queue_info(&self, id: AssocId) -> Option<AssociationQueueInfo> {
        let assoc = self.associations.get(&id)?;
        self.ports.get(&assoc.port)?.endpoint.queue_info(assoc.inner)
    }

    /// Returns a number for purposes that need no secrecy.
    fn random(&mut self) -> u64 {
        self.seed_counter += 1;
        let key = self.seed.iter().fold(0u64, |key, byte| key.rotate_left(7) ^ u64::from(*byte));
        // splitmix64.
        let mixed = key.wrapping_add(self.seed_counter.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a unique seed for an endpoint: the stack's own, combined with a counter. Endpoints
    /// derive from it by a one-way function.
    fn draw_seed(&mut self) -> [u8; 32] {
        self.seed_counter += 1;
        let mut seed = self.seed;
        for (byte, count) in seed.iter_mut().zip(self.seed_counter.to_le_bytes()) {
            *byte ^= count;
        }
        seed
    }
}
