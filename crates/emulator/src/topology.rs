//! The description of two hosts and the paths between them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use eyas_netem::link::LinkConfig;
use eyas_netem::world::LinkDirection;

use super::error::EmulatorError;
use super::host::HostRole;
use crate::middlebox::MiddleboxConfig;
use crate::units::MiddleboxSpec;

/// The maximum number of paths: their number is one byte of their addresses.
pub const MAX_PATHS: usize = 32;
/// The maximum length of a path's name, in letters: the width of a table column.
const LONGEST_NAME: usize = 32;
/// The default MTU of interfaces, in bytes: that of Ethernet.
pub const DEFAULT_MTU: u32 = 1500;
/// The minimum MTU of IPv6 (RFC 8200 §5), and the maximum MTU of an interface.
const MTUS: std::ops::RangeInclusive<u32> = 1280..=65_535;

/// One path between the hosts: an interface on each host, and what is between them.
///
/// ```text
/// client ═ interface ═ middleboxes ═ links, forward and backward ═ interface ═ server
/// ```
#[derive(Clone, Debug)]
pub struct PathTopology {
    /// The name; the interfaces are named by number ([`Topology::interface`]).
    pub name: String,
    /// From the client to the server.
    pub forward: LinkConfig,
    /// From the server to the client.
    pub backward: LinkConfig,
    /// The middleboxes between the client and the links, the one nearest to the client first.
    pub middleboxes: Vec<MiddleboxConfig>,
    /// The MTU of both interfaces, in bytes.
    pub mtu: u32,
    /// The IPv4 addresses of client and server, in a /24; `None` for a path without IPv4.
    pub ipv4: Option<[Ipv4Addr; 2]>,
    /// The IPv6 addresses of client and server, in a /64; `None` for a path without IPv6.
    pub ipv6: Option<[Ipv6Addr; 2]>,
}

impl PathTopology {
    /// Creates path number `number`, starting at 1, with addresses reserved for benchmarking:
    /// 198.18.N.1 and 198.18.N.2 (RFC 2544 §C.2.2), 2001:2:0:N::1 and 2001:2:0:N::2 (RFC 5180 §8).
    #[must_use]
    pub fn numbered(number: u8, name: &str) -> Self {
        let ipv6 = |host| Ipv6Addr::new(0x2001, 2, 0, u16::from(number), 0, 0, 0, host);
        Self {
            name: name.to_owned(),
            forward: LinkConfig::default(),
            backward: LinkConfig::default(),
            middleboxes: Vec::new(),
            mtu: DEFAULT_MTU,
            ipv4: Some([1, 2].map(|host| Ipv4Addr::new(198, 18, number, host))),
            ipv6: Some([1, 2].map(ipv6)),
        }
    }

    /// Returns the link of one direction.
    pub const fn link_mut(&mut self, direction: LinkDirection) -> &mut LinkConfig {
        match direction {
            LinkDirection::Forward => &mut self.forward,
            LinkDirection::Backward => &mut self.backward,
        }
    }

    /// Returns the addresses of a host on this path, IPv4 first.
    #[must_use]
    pub fn addresses(&self, host: HostRole) -> Vec<IpAddr> {
        let ipv4 = self.ipv4.map(|both| IpAddr::V4(both[host as usize]));
        let ipv6 = self.ipv6.map(|both| IpAddr::V6(both[host as usize]));
        ipv4.into_iter().chain(ipv6).collect()
    }

    /// Returns the outside address of a NAT on this path: .254 of its network. IPv6 is not
    /// translated.
    #[must_use]
    pub fn nat_address(&self) -> Option<Ipv4Addr> {
        let [a, b, c, _] = self.ipv4?[0].octets();
        Some(Ipv4Addr::new(a, b, c, 254))
    }
}

/// Two hosts and the paths between them.
#[derive(Clone, Debug)]
pub struct Topology {
    /// The paths. All addresses that are on none of them are routed to the first.
    pub paths: Vec<PathTopology>,
    /// The seed of all randomness.
    pub seed: u64,
    /// The core that the emulator's thread is pinned to; any if `None`.
    pub core: Option<usize>,
    /// Whether the thread is scheduled before all ordinary ones, as the kernel's own queues are, if
    /// the user may do so: root may, root of a user namespace may not. Without it, other busy
    /// programs delay packets.
    pub real_time: bool,
    /// Whether the thread busy-waits for the last 60 µs before a packet is due. Without it, packets
    /// are late by the wake-up latency, but other programs on its core get the time.
    pub busy_wait: bool,
    /// The core on which a kernel thread processes packets received at the server, like an
    /// interrupt on a separate host, so that its CPU time can be measured
    /// ([`Emulator::receivers`](crate::Emulator::receivers)). If `None`, the emulator's thread does
    /// it.
    pub server_core: Option<usize>,
}

impl Default for Topology {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            seed: 1,
            core: None,
            real_time: true,
            busy_wait: true,
            server_core: None,
        }
    }
}

impl Topology {
    /// Creates a single path named `path`, with the same link in both directions.
    #[must_use]
    pub fn single(link: &LinkConfig) -> Self {
        Self::default().with_path("path", link.clone(), link.clone())
    }

    /// Adds a path, with addresses by its number.
    #[must_use]
    pub fn with_path(mut self, name: &str, forward: LinkConfig, backward: LinkConfig) -> Self {
        let number = self.paths.len().min(usize::from(u8::MAX) - 1) as u8 + 1;
        let path = PathTopology { forward, backward, ..PathTopology::numbered(number, name) };
        self.paths.push(path);
        self
    }

    /// Adds a middlebox to the path that was added last.
    #[must_use]
    pub fn with_middlebox(mut self, middlebox: MiddleboxConfig) -> Self {
        if let Some(path) = self.paths.last_mut() {
            path.middleboxes.push(middlebox);
        }
        self
    }

    /// Adds middleboxes to the path that was added last, the one nearest to the client first.
    ///
    /// # Errors
    /// The first that is invalid.
    pub fn with_middleboxes(mut self, specs: &[MiddleboxSpec]) -> Result<Self, EmulatorError> {
        let middleboxes = MiddleboxConfig::from_specs(specs)?;
        if let Some(path) = self.paths.last_mut() {
            path.middleboxes.extend(middleboxes);
        }
        Ok(self)
    }

    /// Sets the seed.
    #[must_use]
    pub const fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Pins the emulator's thread to this core.
    #[must_use]
    pub const fn with_core(mut self, core: usize) -> Self {
        self.core = Some(core);
        self
    }

    /// Returns the path with this name.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<&PathTopology> {
        self.paths.iter().find(|path| path.name == name)
    }

    /// Returns the interface of this path, the same on both sides: `path1`, `path2` and so on. The
    /// name of the path is not used, because it is chosen by the user and might be a keyword of
    /// `ip`, or too long. With [`server_core`](Self::server_core) the name is unique on this
    /// machine, because the kernel's thread is found by it.
    #[must_use]
    pub fn interface(&self, path: &str) -> Option<String> {
        self.interfaces().zip(&self.paths).find(|(_, own)| own.name == path).map(|(name, _)| name)
    }

    /// Returns the interfaces of all paths, in order.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = String> {
        let process = self.server_core.map(|_| std::process::id());
        (1..=self.paths.len()).map(move |number| match process {
            Some(process) => format!("eyas{process}-{number}"),
            None => format!("path{number}"),
        })
    }

    /// Returns the error for a path that does not exist.
    pub(super) fn no_such_path(&self, name: &str) -> EmulatorError {
        let known: Vec<&str> = self.paths.iter().map(|path| path.name.as_str()).collect();
        EmulatorError::NoSuchPath { name: name.to_owned(), known: known.join(", ") }
    }

    /// Checks that the topology can be built.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), EmulatorError> {
        let refused = |text: String| Err(EmulatorError::Topology(text));
        if self.paths.is_empty() || self.paths.len() > MAX_PATHS {
            return refused(format!("there must be 1 to {MAX_PATHS} paths"));
        }
        let mut names = BTreeSet::new();
        for path in &self.paths {
            let name = &path.name;
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
            if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_name) {
                return refused(format!(
                    "{name:?} cannot name a path: 1 to {LONGEST_NAME} letters, digits, '-', '_' or '.'"
                ));
            }
            if !names.insert(name) {
                return refused(format!("there are two paths with the name {name:?}"));
            }
            if !MTUS.contains(&path.mtu) {
                let (least, most) = (MTUS.start(), MTUS.end());
                return refused(format!(
                    "the MTU of path {name:?} must be {least} to {most} bytes"
                ));
            }
            if path.ipv4.is_none() && path.ipv6.is_none() {
                return refused(format!("path {name:?} has neither IPv4 nor IPv6"));
            }
        }
        Ok(())
    }
}
