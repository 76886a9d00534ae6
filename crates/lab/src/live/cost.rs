//! A load over TCP, over SCTP, or with a race of both.

mod client;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use eyas_emulator::{MiddleboxConfig, Topology};
use eyas_netem::middlebox::firewall::FirewallPolicy as Firewall;
use eyas_netem::packet::protocol;

use super::host::{self, ServedIdentity, ServerParameters};
use super::{LiveError, RunLive, testbed};
use crate::run::RunResult;
use crate::situation::live::{CostSetup, SctpCarrier};

/// The port that the server listens on; it has its own host, so all ports are free.
const PORT: u16 = 8443;

impl RunLive for CostSetup {
    fn run(&self, seed: u64, stop: &AtomicBool) -> Result<RunResult, LiveError> {
        let topology = topology(self, seed)?;
        let ipv4 = topology.paths.first().and_then(|path| path.ipv4);
        let [_, server] = ipv4.ok_or_else(|| LiveError::Testbed("no addresses".to_owned()))?;
        let server = SocketAddr::new(server.into(), PORT);
        let identity = if self.tls { ServedIdentity::Rsa } else { ServedIdentity::None };
        let serve = ServerParameters { listen: server, identity, http3: false };
        let observed = host::run(topology, &serve, self.times(), stop, |testbed| {
            let addresses = client::addresses(testbed.emulator(), testbed::PATH)?;
            client::load(self, server, addresses, seed)
        })?;
        Ok(observed.result())
    }
}

fn topology(setup: &CostSetup, seed: u64) -> Result<Topology, LiveError> {
    let topology = testbed::topology(testbed::PATH, &setup.link, seed)?;
    if !setup.swallowed {
        return Ok(topology);
    }
    let carrier = match setup.sctp {
        SctpCarrier::Udp => protocol::UDP,
        SctpCarrier::Ip => protocol::SCTP,
    };
    Ok(topology.with_middlebox(MiddleboxConfig::Firewall(Firewall::AllBut(vec![carrier]))))
}
