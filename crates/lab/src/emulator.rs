//! Bad networks in real time: two hosts in network namespaces, with the links and middleboxes of
//! `eyas-netem` between them.
//!
//! ```text
//!   namespace of the client                this process               namespace of the server
//!  ┌───────────────────────┐   ┌─────────────────────────────────┐   ┌───────────────────────┐
//!  │ command ── interface ─┼───┼─ middleboxes ═ link ▶ ══════════┼───┼─ interface ── command │
//!  │              path1    │TUN│                ═ ◀ link         │TUN│    path1              │
//!  │         ── interface ─┼───┼─ …                              ┼───┼─ interface ──         │
//!  │              path2    │   │                                 │   │    path2              │
//!  └───────────────────────┘   └─────────────────────────────────┘   └───────────────────────┘
//! ```
//!
//! A [`Topology`] describes the paths. [`Emulator::start`] creates the namespaces and their
//! interfaces, and a thread that moves the packets. [`Namespace::command`] starts programs in a
//! namespace, [`Namespace::run_in`] and [`Namespace::enter`] bring threads into it. The namespaces
//! are unnamed and the devices not persistent, so nothing remains of them however the program ends;
//! processes that are still running inside are killed.
//!
//! An [`Enclosure`] is such a namespace without an emulated network: its packets are read by this
//! process. An [`InterfaceSetup`] does the same for an interface of this host.
//!
//! This requires root, or a user namespace in which the user is root ([`become_root`] creates one),
//! and the programs `ip` and `sh`.
//!
//! # In real time
//!
//! One thread (`engine`) reads packets from the TUN devices, offers them to the links, and waits
//! with `ppoll` for the next packet or the next arrival; requests reach it through a channel and an
//! `eventfd`. It runs at a higher priority than ordinary programs where that is permitted, and
//! stays awake for the last 60 µs before a deadline. A link carries the real hosts' packets byte
//! for byte (`frame`); only middleboxes get to see a `Packet`. The guard, a shell that holds both
//! namespaces and the reading end of a pipe, kills the processes inside when the emulator ends,
//! however it ends.
//!
//! # Example
//!
//! ```no_run
//! use std::net::{SocketAddr, UdpSocket};
//! use std::time::Duration;
//!
//! use eyas_lab::emulator::{Direction, Emulator, Host, LinkConfig, LossConfig, Topology};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let link = LinkConfig::new(10_000_000, Duration::from_millis(10));
//! let topology = Topology::default()
//!     .with_path("wifi", link.clone(), link.clone())
//!     .with_path("lte", link.clone(), link.clone());
//! let emulator = Emulator::start(&topology)?;
//!
//! // A program as the server; it is killed with the emulator, if not before.
//! let address = emulator.address("wifi", Host::Server).ok_or("no such path")?;
//! let mut server = emulator
//!     .namespace(Host::Server)
//!     .command("eyas")
//!     .args(["serve", "--listen", &SocketAddr::new(address, 443).to_string()])
//!     .spawn()?;
//!
//! // Code of this program as the client: its sockets, and a runtime that it makes, are inside.
//! let client = emulator.namespace(Host::Client).clone();
//! let work = std::thread::spawn(move || {
//!     let _inside = client.enter()?;
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(UdpSocket::bind(("::", 0))?)
//! });
//! let socket = work.join().map_err(|_| "it panicked")?;
//!
//! // Meanwhile the network gets worse.
//! let worse = LinkConfig { loss: LossConfig::Probability(0.05), ..link };
//! emulator.change("wifi", Direction::Forward, worse)?;
//! let lost = emulator.counters()?.paths[0].forward.link.total_dropped();
//! server.kill()?;
//! # Ok(())
//! # }
//! ```

mod capture;
mod counters;
mod device;
mod enclosure;
mod engine;
mod error;
mod frame;
mod guard;
mod host;
mod interface;
mod kernel;
mod namespace;
mod path;
mod receiver;
mod scenario;
mod topology;
mod user_namespace;

use std::ffi::OsString;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

pub use counters::{Counters, DirectionCounters, MiddleboxCounters, PathCounters};
pub use enclosure::{Enclosure, EnclosureConfig};
pub use error::EmulatorError;
pub use eyas_netem::link::{
    BitErrorConfig, CoDelConfig, Count, DropCause, GilbertElliott, LinkChange, LinkConfig,
    LinkCounters, LossConfig, QueueConfig, RedConfig, Reordering,
};
pub use eyas_netem::middlebox::ByProtocol;
pub use eyas_netem::world::Direction;
pub use host::Host;
pub use interface::{InterfaceSetup, MAX_NAME};
pub use namespace::{Namespace, NamespaceGuard};
pub use scenario::{Scenario, ScenarioEvent, direction};
pub use topology::{DEFAULT_MTU, MAX_PATHS, PathTopology, Topology};
pub use user_namespace::{OriginalUser, become_root};

pub use crate::middlebox::MiddleboxConfig;
pub use crate::units::{LinkSpec, LinkSpecError, MiddleboxSpec};

use device::Device;
use engine::{Engine, Mailbox, Request};
use guard::Guard;
use path::PathRun;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

/// A running emulated network. It is removed on drop.
#[derive(Debug)]
pub struct Emulator {
    topology: Topology,
    /// Indexed by [`Host`].
    namespaces: [Namespace; 2],
    mailbox: Mailbox,
    thread: Option<JoinHandle<Result<(), EmulatorError>>>,
    guard: Option<Guard>,
    receivers: Vec<Pid>,
}

impl Emulator {
    /// Creates the namespaces, their interfaces, and the thread that moves the packets.
    ///
    /// # Errors
    /// If the topology is invalid or the kernel does not allow it; nothing is left behind then.
    pub fn start(topology: &Topology) -> Result<Self, EmulatorError> {
        topology.check()?;
        if let Some(core) = topology.core.filter(|core| !is_allowed(*core)) {
            let text = format!("there is no core {core} that this program may use");
            return Err(EmulatorError::Topology(text));
        }
        let client = namespace::build(Host::Client, topology)?;
        let server = namespace::build(Host::Server, topology)?;
        let guard =
            Guard::start([client.namespace.file(), server.namespace.file()]).map_err(|cause| {
                EmulatorError::Program { program: "sh", cause, package: "any shell" }
            })?;
        let receivers = server.receivers;
        let tuns = client.tuns.into_iter().zip(server.tuns);
        let paths = topology.paths.iter().zip(tuns).enumerate().map(|(number, (path, tuns))| {
            let devices = [Device::new(tuns.0), Device::new(tuns.1)];
            PathRun::new(number, path, devices, topology.seed)
        });
        let paths = paths.collect::<Result<_, _>>()?;
        let (engine, mailbox) = Engine::new(paths, topology.busy_wait)?;
        let (core, real_time) = (topology.core, topology.real_time);
        let thread = thread::Builder::new()
            .name("eyas-netem".to_owned())
            .spawn(move || {
                configure_scheduling(core, real_time)?;
                engine.run()
            })
            .map_err(EmulatorError::system("start a thread"))?;
        Ok(Self {
            topology: topology.clone(),
            namespaces: [client.namespace, server.namespace],
            mailbox,
            thread: Some(thread),
            guard: Some(guard),
            receivers,
        })
    }

    /// Returns the topology.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the namespace of a host.
    #[must_use]
    pub const fn namespace(&self, host: Host) -> &Namespace {
        &self.namespaces[host as usize]
    }

    /// Returns the kernel threads that process received packets at the server, if the topology asks
    /// for them ([`Topology::server_core`]); the kernel ends them with the interfaces.
    #[must_use]
    pub fn receivers(&self) -> &[Pid] {
        &self.receivers
    }

    /// Returns the first address of a host on this path: its IPv4 address if it has one.
    #[must_use]
    pub fn address(&self, path: &str, host: Host) -> Option<IpAddr> {
        self.topology.path(path)?.addresses(host).first().copied()
    }

    /// Replaces the configuration of one direction of a path. Packets in flight arrive as they
    /// would have; queued packets stay queued.
    ///
    /// # Errors
    /// If there is no such path.
    pub fn change(
        &self,
        path: &str,
        direction: Direction,
        config: LinkConfig,
    ) -> Result<(), EmulatorError> {
        self.mailbox.call(Request::Reconfigure(self.number(path)?, direction, Box::new(config)))
    }

    /// Makes one change to one direction of a path: cut, restore, another rate.
    ///
    /// # Errors
    /// If there is no such path.
    pub fn change_link(
        &self,
        path: &str,
        direction: Direction,
        change: LinkChange,
    ) -> Result<(), EmulatorError> {
        self.mailbox.call(Request::Change(self.number(path)?, direction, change))
    }

    /// Changes some properties of one direction of a path.
    ///
    /// # Errors
    /// If there is no such path.
    pub fn apply(
        &self,
        path: &str,
        direction: Direction,
        spec: &LinkSpec,
    ) -> Result<(), EmulatorError> {
        let number = self.number(path)?;
        let counters = self.mailbox.count()?;
        let mut config = counters.paths[number].direction(direction).config.clone();
        spec.apply(&mut config);
        self.change(path, direction, config)?;
        match spec.up {
            Some(true) => self.change_link(path, direction, LinkChange::Up),
            Some(false) => self.change_link(path, direction, LinkChange::Down),
            None => Ok(()),
        }
    }

    /// Returns the packet counters so far.
    ///
    /// # Errors
    /// If the emulator's thread has ended.
    pub fn counters(&self) -> Result<Counters, EmulatorError> {
        let mut counters = self.mailbox.count()?;
        for namespace in &self.namespaces {
            counters.missed += namespace.run_in(|| namespace::missed(&self.topology))?;
        }
        Ok(counters)
    }

    /// Starts writing the packets of a path, or of all paths, to a pcapng file, as sent and
    /// received by the hosts. A running capture is ended. A regular file gets its name when the
    /// capture has ended, and none is left if the program is killed; a named pipe is written
    /// immediately once it has a reader.
    ///
    /// # Errors
    /// If there is no such path, or the file cannot be written.
    pub fn capture(&self, path: Option<&str>, file: &Path) -> Result<(), EmulatorError> {
        let only = path.map(|name| self.number(name)).transpose()?;
        let paths = self.topology.paths.iter().enumerate();
        let paths = paths.filter(|(number, _)| only.is_none_or(|only| only == *number));
        let paths = paths.map(|(number, path)| (number, path.name.clone())).collect();
        self.mailbox.call(Request::Capture(file.to_owned(), paths))
    }

    /// Ends the capture and closes its file.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn end_capture(&self) -> Result<(), EmulatorError> {
        self.mailbox.call(Request::EndCapture)
    }

    fn number(&self, name: &str) -> Result<usize, EmulatorError> {
        let paths = &self.topology.paths;
        let number = paths.iter().position(|path| path.name == name);
        number.ok_or_else(|| self.topology.no_such_path(name))
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // The processes inside end first, so that they do not send into a void.
        drop(self.guard.take());
        let _ = self.mailbox.call(Request::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sets the scheduling of the calling thread: prompt wake-ups, and a fixed core.
fn configure_scheduling(core: Option<usize>, real_time: bool) -> Result<(), EmulatorError> {
    if real_time {
        // Without permission, times are less exact.
        let _ = kernel::use_real_time_priority();
    }
    set_current_timer_slack(NonZeroU64::new(1))
        .map_err(EmulatorError::system("set the timer slack"))?;
    core.map_or(Ok(()), |core| pin_thread(None, core))
}

/// Returns whether a thread of this program may run on this core.
fn is_allowed(core: usize) -> bool {
    core < CpuSet::MAX_CPU && sched_getaffinity(None).is_ok_and(|allowed| allowed.is_set(core))
}

/// Pins a thread, or the calling one, to this core.
pub(crate) fn pin_thread(thread: Option<Pid>, core: usize) -> Result<(), EmulatorError> {
    let mut set = CpuSet::new();
    if core >= CpuSet::MAX_CPU {
        return Err(EmulatorError::Topology(format!("there is no core {core}")));
    }
    set.set(core);
    sched_setaffinity(thread, &set).map_err(EmulatorError::system("pin a thread to the core"))
}

/// Returns the search path for system programs, including directories that are not in a user's
/// path.
fn search_path() -> OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(PathBuf::from);
    let directories =
        std::env::split_paths(&inherited).filter(|path| path.is_absolute()).chain(system);
    // Only a path that contains a colon cannot be joined, and those were split above.
    std::env::join_paths(directories).unwrap_or(inherited)
}
