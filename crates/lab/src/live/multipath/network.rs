//! Two hosts and the paths of a set-up between them.

use std::net::IpAddr;
use std::thread::JoinHandle;

use eyas_emulator::{Emulator, HostRole, LinkChange, LinkDirection, NetworkNamespace, Topology};

use crate::live::LiveError;
use crate::simulation::bottleneck;
use crate::situation::live::MultipathSetup;

/// Two hosts and the paths between them, which are removed when this is dropped.
#[derive(Debug)]
pub(super) struct EmulatedNetwork {
    emulator: Emulator,
    names: Vec<String>,
    /// The path that has no addresses yet.
    added_path: Option<String>,
}

/// The packets that crossed one path, towards the receiver unless it says otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathTraffic {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) dropped: u64,
    /// The bytes that crossed it towards the sender.
    pub(super) back_bytes: u64,
}

impl EmulatedNetwork {
    pub(super) fn start(setup: &MultipathSetup, seed: u64) -> Result<Self, LiveError> {
        let mut topology = Topology::default().with_seed(seed);
        for (name, path) in setup.used() {
            topology = topology.with_path(name, bottleneck(path), bottleneck(&path.reversed()));
            topology = topology.with_middleboxes(&path.middlebox)?;
        }
        for path in &mut topology.paths {
            path.ipv6 = None;
        }
        let emulator = Emulator::start(&topology)?;
        let names = setup.used().map(|(name, _)| name.to_owned()).collect();
        let network = Self { emulator, names, added_path: setup.added_path.clone() };
        if let Some(name) = &setup.added_path {
            network.addresses(name, "del")?;
        }
        Ok(network)
    }

    /// Returns the names of the paths, in the order of their numbers.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns a host's addresses on the paths that exist from the start.
    pub(super) fn addresses_of(&self, host: HostRole) -> Vec<IpAddr> {
        let initial = self.names.iter().filter(|name| self.added_path.as_ref() != Some(name));
        initial.filter_map(|name| self.emulator.address(name, host)).collect()
    }

    /// Returns the server address that a client connects to.
    pub(super) fn server(&self) -> Result<IpAddr, LiveError> {
        let first = self.addresses_of(HostRole::Server).first().copied();
        first.ok_or_else(|| LiveError::Testbed("there is no path".to_owned()))
    }

    pub(super) fn namespace(&self, host: HostRole) -> &NetworkNamespace {
        self.emulator.namespace(host)
    }

    /// Starts a thread on a host.
    pub(super) fn thread(
        &self,
        host: HostRole,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<JoinHandle<()>, LiveError> {
        let namespace = self.namespace(host).clone();
        std::thread::Builder::new()
            .name(format!("eyas-live-{host}"))
            .spawn(move || {
                if let Ok(_inside) = namespace.enter() {
                    work();
                }
            })
            .map_err(|cause| LiveError::Testbed(cause.to_string()))
    }

    /// Stops all packets on this path from now on.
    pub(super) fn cut(&self, name: &str) -> Result<(), LiveError> {
        for direction in [LinkDirection::Forward, LinkDirection::Backward] {
            self.emulator.change_link(name, direction, LinkChange::Down)?;
        }
        Ok(())
    }

    /// Gives both hosts their addresses on the path that had none.
    pub(super) fn add_path(&self) -> Result<(), LiveError> {
        self.added_path.as_ref().map_or(Ok(()), |name| self.addresses(name, "add"))
    }

    fn addresses(&self, name: &str, verb: &str) -> Result<(), LiveError> {
        for host in HostRole::ALL {
            let Some(address) = self.emulator.address(name, host) else { continue };
            let Some(interface) = self.emulator.topology().interface(name) else { continue };
            let address = format!("{address}/24");
            self.program(host, "ip", &["addr", verb, &address, "dev", &interface])?;
        }
        Ok(())
    }

    /// Runs a program on a host until it ends.
    pub(super) fn program(
        &self,
        host: HostRole,
        program: &str,
        args: &[&str],
    ) -> Result<(), LiveError> {
        let command = || format!("{program} {}", args.join(" "));
        let output = self.namespace(host).command(program).args(args).output();
        let output =
            output.map_err(|cause| LiveError::Testbed(format!("{}: {cause}", command())))?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let stderr = String::from_utf8_lossy(&output.stderr);
                Err(LiveError::Testbed(format!("{}: {}", command(), stderr.trim())))
            }
        }
    }

    /// Returns what has crossed each path so far.
    pub(super) fn traffic(&self) -> Result<Vec<PathTraffic>, LiveError> {
        let counters = self.emulator.counters()?;
        let traffic = |name: &String| {
            let path = counters.path(name);
            let link = path.map(|path| path.forward.link).unwrap_or_default();
            let back = path.map(|path| path.backward.link).unwrap_or_default();
            PathTraffic {
                bytes: link.delivered.bytes,
                packets: link.delivered.packets,
                dropped: link.total_dropped().packets,
                back_bytes: back.delivered.bytes,
            }
        };
        Ok(self.names.iter().map(traffic).collect())
    }
}
