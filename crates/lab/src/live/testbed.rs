//! Two hosts and the link between them.

use std::net::IpAddr;
use std::thread::JoinHandle;

use eyas_emulator::{
    Emulator, EmulatorError, HostRole, LinkConfig, LinkDirection, LossConfig, Topology, pin_thread,
};

use super::{LinkTraffic, LiveError};
use crate::situation::live::LinkSetup;

/// A client host, a server host, and the link between them.
#[derive(Debug)]
pub(crate) struct LiveTestbed {
    emulator: Emulator,
    /// The name of the first path.
    path: String,
}

/// The name of the only path.
pub(super) const PATH: &str = "path";
/// The core of the client.
pub(super) const CLIENT_CORE: usize = 0;
/// The core of the server.
pub(super) const SERVER_CORE: usize = 1;

impl LiveTestbed {
    /// Creates the hosts and the link.
    ///
    /// # Errors
    /// If this user may not create namespaces, or the machine does not support them.
    pub(crate) fn start(link: &LinkSetup, seed: u64) -> Result<Self, LiveError> {
        Self::with_topology(&topology(PATH, link, seed)?)
    }

    /// Creates hosts and links according to a topology; the first path is the one reported on.
    pub(super) fn with_topology(topology: &Topology) -> Result<Self, LiveError> {
        let path = topology.paths.first().map_or_else(String::new, |path| path.name.clone());
        let testbed = Self { emulator: Emulator::start(topology)?, path };
        for host in HostRole::ALL {
            testbed.emulator.namespace(host).run_in(forget_round_trips)?;
        }
        Ok(testbed)
    }

    /// Returns the emulator.
    pub(super) const fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// Returns the server's address.
    ///
    /// # Errors
    /// Never, as long as its path has one.
    pub(crate) fn server_address(&self) -> Result<IpAddr, LiveError> {
        let address = self.emulator.address(&self.path, HostRole::Server);
        address.ok_or_else(|| LiveError::Testbed("the server has no address".to_owned()))
    }

    /// Runs this on a thread of the client's host until it ends, on a separate core if there is
    /// one.
    ///
    /// # Errors
    /// If the thread cannot enter the host.
    pub(crate) fn in_client<T: Send>(
        &self,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, LiveError> {
        let pinned = || {
            pin_to_core(CLIENT_CORE);
            work()
        };
        Ok(self.emulator.namespace(HostRole::Client).run_in(pinned)?)
    }

    /// Starts a thread of the server's host, on a separate core if there is one.
    ///
    /// # Errors
    /// If the thread cannot be started. If it cannot enter the host, it ends at once.
    pub(crate) fn server_thread(
        &self,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<JoinHandle<()>, LiveError> {
        let namespace = self.emulator.namespace(HostRole::Server).clone();
        std::thread::Builder::new()
            .name("eyas-live-server".to_owned())
            .spawn(move || {
                pin_to_core(SERVER_CORE);
                if let Ok(_inside) = namespace.enter() {
                    work();
                }
            })
            .map_err(|cause| LiveError::Testbed(cause.to_string()))
    }

    /// Changes the running link.
    ///
    /// # Errors
    /// If the emulator has ended.
    pub(crate) fn change(&self, link: &LinkSetup) -> Result<(), LiveError> {
        self.emulator.change(&self.path, LinkDirection::Forward, forward(link))?;
        Ok(self.emulator.change(&self.path, LinkDirection::Backward, backward(link))?)
    }

    /// Returns what has crossed the link so far.
    ///
    /// # Errors
    /// If the emulator has ended.
    pub(crate) fn traffic(&self) -> Result<LinkTraffic, LiveError> {
        let counters = self.emulator.counters()?;
        let Some(path) = counters.path(&self.path) else { return Ok(LinkTraffic::default()) };
        let (forward, backward) = (path.forward.link.offered, path.backward.link.offered);
        Ok(LinkTraffic {
            packets_out: forward.packets,
            bytes_out: forward.bytes,
            packets_in: backward.packets,
            bytes_in: backward.bytes,
        })
    }
}

impl From<EmulatorError> for LiveError {
    fn from(cause: EmulatorError) -> Self {
        match cause {
            EmulatorError::Receivers(_) => Self::Missing(cause.to_string()),
            _ => Self::Testbed(cause.to_string()),
        }
    }
}

/// Pins the thread to a core. Two hosts do not wait for each other's core, but the kernel may put
/// both of them on the same one and leave them there. Does nothing if the core is not available.
fn pin_to_core(core: usize) {
    let _ = pin_thread(None, core);
}

/// Returns a topology of two hosts and one path with this name between them.
pub(super) fn topology(path: &str, link: &LinkSetup, seed: u64) -> Result<Topology, EmulatorError> {
    let topology = Topology::default().with_path(path, forward(link), backward(link));
    Ok(topology.with_middleboxes(&link.middlebox)?.with_seed(seed))
}

/// Returns an unlimited link without a queue, only the delay, unless the set-up says otherwise.
pub(super) fn forward(link: &LinkSetup) -> LinkConfig {
    let mut config = LinkConfig { delay: link.delay.0 / 2, ..LinkConfig::default() };
    link.forward.apply(&mut config);
    config
}

/// Returns the same for the way back, with its losses.
pub(super) fn backward(link: &LinkSetup) -> LinkConfig {
    let loss = LossConfig::Probability(link.loss.0);
    let mut config = LinkConfig { delay: link.delay.0 / 2, loss, ..LinkConfig::default() };
    link.backward.apply(&mut config);
    config
}

/// Disables the kernel's cache of round-trip times to hosts; a trial starts without memory.
fn forget_round_trips() {
    // If the file does not exist, nothing is remembered.
    let _ = std::fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_link_is_that_of_the_papers_with_what_is_given_besides() {
        let text = "delay = '50 ms'\nloss = '1 %'
            forward = { rate = '1 Mbit/s', delay = '5 ms' }
            backward = { rate = '20 Mbit/s' }
            middlebox = [{ kind = 'nat' }, { kind = 'quota', packets = 100 }]";
        let link: LinkSetup = toml::from_str(text).unwrap();
        let topology = topology(PATH, &link, 7).unwrap();
        let [path] = &topology.paths[..] else { panic!("one path") };
        assert_eq!((path.forward.rate, path.backward.rate), (Some(1_000_000), Some(20_000_000)));
        assert_eq!(path.forward.delay, Duration::from_millis(5));
        assert_eq!(path.backward.delay, Duration::from_millis(25));
        assert_eq!(path.backward.loss, LossConfig::Probability(0.01));
        let kinds: Vec<_> = path.middleboxes.iter().map(|own| own.kind()).collect();
        assert_eq!((kinds, topology.seed), (vec!["nat", "quota"], 7));
    }
}
