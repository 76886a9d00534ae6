//! A running emulated network.

use std::net::IpAddr;
use std::path::Path;
use std::thread::{self, JoinHandle};

use eyas_netem::link::{LinkChange, LinkConfig};
use eyas_netem::world::LinkDirection;
use rustix::process::Pid;

use super::counters::EmulatorCounters;
use super::device::TunDevice;
use super::engine::{EmulatorEngine, EngineMailbox, EngineRequest};
use super::error::EmulatorError;
use super::guard::EmulatorGuard;
use super::host::HostRole;
use super::machine::{configure_scheduling, is_allowed};
use super::namespace::{self, NetworkNamespace};
use super::path::PathRun;
use super::topology::Topology;
use crate::units::LinkSpec;

/// A running emulated network. It is removed on drop.
#[derive(Debug)]
pub struct Emulator {
    topology: Topology,
    /// Indexed by [`HostRole`].
    namespaces: [NetworkNamespace; 2],
    mailbox: EngineMailbox,
    thread: Option<JoinHandle<Result<(), EmulatorError>>>,
    guard: Option<EmulatorGuard>,
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
        let client = namespace::build(HostRole::Client, topology)?;
        let server = namespace::build(HostRole::Server, topology)?;
        let guard =
            EmulatorGuard::start([client.namespace.file(), server.namespace.file()]).map_err(
                |cause| EmulatorError::Program { program: "sh", cause, package: "any shell" },
            )?;
        let receivers = server.receivers;
        let tuns = client.tuns.into_iter().zip(server.tuns);
        let paths = topology.paths.iter().zip(tuns).enumerate().map(|(number, (path, tuns))| {
            let devices = [TunDevice::new(tuns.0), TunDevice::new(tuns.1)];
            PathRun::new(number, path, devices, topology.seed)
        });
        let paths = paths.collect::<Result<_, _>>()?;
        let (engine, mailbox) = EmulatorEngine::new(paths, topology.busy_wait)?;
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
    pub const fn namespace(&self, host: HostRole) -> &NetworkNamespace {
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
    pub fn address(&self, path: &str, host: HostRole) -> Option<IpAddr> {
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
        direction: LinkDirection,
        config: LinkConfig,
    ) -> Result<(), EmulatorError> {
        self.mailbox.call(EngineRequest::Reconfigure(
            self.number(path)?,
            direction,
            Box::new(config),
        ))
    }

    /// Makes one change to one direction of a path: cut, restore, another rate.
    ///
    /// # Errors
    /// If there is no such path.
    pub fn change_link(
        &self,
        path: &str,
        direction: LinkDirection,
        change: LinkChange,
    ) -> Result<(), EmulatorError> {
        self.mailbox.call(EngineRequest::Change(self.number(path)?, direction, change))
    }

    /// Changes some properties of one direction of a path.
    ///
    /// # Errors
    /// If there is no such path.
    pub fn apply(
        &self,
        path: &str,
        direction: LinkDirection,
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
    pub fn counters(&self) -> Result<EmulatorCounters, EmulatorError> {
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
        self.mailbox.call(EngineRequest::Capture(file.to_owned(), paths))
    }

    /// Ends the capture and closes its file.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn end_capture(&self) -> Result<(), EmulatorError> {
        self.mailbox.call(EngineRequest::EndCapture)
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
        let _ = self.mailbox.call(EngineRequest::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
