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
//! interfaces, and a thread that moves the packets. [`NetworkNamespace::command`] starts programs in a
//! namespace, [`NetworkNamespace::run_in`] and [`NetworkNamespace::enter`] bring threads into it. The namespaces
//! are unnamed and the devices not persistent, so nothing remains of them however the program ends;
//! processes that are still running inside are killed.
//!
//! An [`Enclosure`] is such a namespace without an emulated network: its packets are read by this
//! process. An [`InterfaceSetup`] does the same for an interface of this host.
//!
//! This requires root, or a user namespace in which the user is root ([`become_root`] creates one),
//! and the programs `ip` and `sh`.
//!
//! On other systems only the descriptions exist: [`units`] and [`middlebox`], from which simulations
//! of `eyas-netem` are built as well.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`units`] | amounts with units, and the properties of links and middleboxes, as text and tables |
//! | [`middlebox`] | middleboxes as they are described, and built |
//! | `topology`, `host` | the description of the hosts and paths |
//! | `scenario` | the same as a file, with changes over time |
//! | `emulator` | a running network |
//! | `namespace`, `user_namespace`, `guard` | network namespaces, and what ends the processes inside |
//! | `receiver`, `machine` | kernel threads and cores of this machine |
//! | `engine`, `path`, `device`, `frame` | the thread that moves packets |
//! | `counters`, `capture` | what happened to the packets |
//! | `enclosure`, `interface` | namespaces and interfaces without an emulated network |
//! | `kernel` | system calls |
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
//! use eyas_emulator::{Emulator, HostRole, LinkConfig, LinkDirection, LossConfig, Topology};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let link = LinkConfig::new(10_000_000, Duration::from_millis(10));
//! let topology = Topology::default()
//!     .with_path("wifi", link.clone(), link.clone())
//!     .with_path("lte", link.clone(), link.clone());
//! let emulator = Emulator::start(&topology)?;
//!
//! // A program as the server; it is killed with the emulator, if not before.
//! let address = emulator.address("wifi", HostRole::Server).ok_or("no such path")?;
//! let mut server = emulator
//!     .namespace(HostRole::Server)
//!     .command("eyas")
//!     .args(["serve", "--listen", &SocketAddr::new(address, 443).to_string()])
//!     .spawn()?;
//!
//! // Code of this program as the client: its sockets, and a runtime that it makes, are inside.
//! let client = emulator.namespace(HostRole::Client).clone();
//! let work = std::thread::spawn(move || {
//!     let _inside = client.enter()?;
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(UdpSocket::bind(("::", 0))?)
//! });
//! let socket = work.join().map_err(|_| "it panicked")?;
//!
//! // Meanwhile the network gets worse.
//! let worse = LinkConfig { loss: LossConfig::Probability(0.05), ..link };
//! emulator.change("wifi", LinkDirection::Forward, worse)?;
//! let lost = emulator.counters()?.paths[0].forward.link.total_dropped();
//! server.kill()?;
//! # Ok(())
//! # }
//! ```

#[cfg(target_os = "linux")]
mod capture;
#[cfg(target_os = "linux")]
mod counters;
#[cfg(target_os = "linux")]
mod device;
#[cfg(target_os = "linux")]
mod emulator;
#[cfg(target_os = "linux")]
mod enclosure;
#[cfg(target_os = "linux")]
mod engine;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod frame;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod interface;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod machine;
pub mod middlebox;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod path;
#[cfg(target_os = "linux")]
mod receiver;
#[cfg(target_os = "linux")]
mod scenario;
#[cfg(target_os = "linux")]
mod topology;
pub mod units;
#[cfg(target_os = "linux")]
mod user_namespace;

#[cfg(target_os = "linux")]
pub use counters::{DirectionCounters, EmulatorCounters, MiddleboxCounters, PathCounters};
#[cfg(target_os = "linux")]
pub use emulator::Emulator;
#[cfg(target_os = "linux")]
pub use enclosure::{Enclosure, EnclosureConfig};
#[cfg(target_os = "linux")]
pub use error::EmulatorError;
#[cfg(target_os = "linux")]
pub use host::HostRole;
#[cfg(target_os = "linux")]
pub use interface::{InterfaceSetup, MAX_NAME};
#[cfg(target_os = "linux")]
pub use machine::pin_thread;
#[cfg(target_os = "linux")]
pub use namespace::{NamespaceGuard, NetworkNamespace};
#[cfg(target_os = "linux")]
pub use scenario::{Scenario, ScenarioEvent};
#[cfg(target_os = "linux")]
pub use topology::{DEFAULT_MTU, MAX_PATHS, PathTopology, Topology};
#[cfg(target_os = "linux")]
pub use user_namespace::{OriginalUser, become_root};

pub use eyas_netem::link::{
    BitErrorConfig, CoDelConfig, DropCause, GilbertElliott, LinkChange, LinkConfig, LinkCounters,
    LossConfig, PacketCount, QueueConfig, RedConfig, ReorderingMode,
};
pub use eyas_netem::middlebox::ByProtocol;
pub use eyas_netem::world::LinkDirection;
pub use middlebox::MiddleboxConfig;
pub use units::{LinkSpec, LinkSpecError, MiddleboxSpec, MiddleboxSpecError};

/// Compiles the examples of the README.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../README.md")]
struct Readme;
