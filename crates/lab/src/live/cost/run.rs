//! A run: a load over TCP, SCTP or the race of both.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use eyas_netem::link::LinkConfig;
use eyas_netem::middlebox::firewall::Policy as Firewall;
use eyas_netem::packet::protocol;

use super::{CostSetup, SctpIn, client};
use crate::emulator::{MiddleboxConfig, Topology};
use crate::live::LiveError;
use crate::live::host::{self, Identity, Serve, Times};
use crate::results::RunResult;

/// Where the server listens; the host is its own, so all ports are free.
const PORT: u16 = 8443;

/// One run.
pub(in crate::live) fn run(
    setup: &CostSetup,
    seed: u64,
    stop: &AtomicBool,
) -> Result<RunResult, LiveError> {
    let device = host::device();
    let topology = topology(setup, &device, seed);
    let four = topology.paths.first().and_then(|path| path.ipv4);
    let [_, server] = four.ok_or_else(|| LiveError::Bed("no addresses".to_owned()))?;
    let server = SocketAddr::new(server.into(), PORT);
    let identity = if setup.tls { Identity::Rsa } else { Identity::None };
    let serve = Serve { listen: server, identity, http3: false };
    let times =
        Times { warm_up: setup.warm_up.0, duration: setup.duration.0, sample: setup.sample.0 };
    let seen = host::run(topology, &serve, times, stop, |bed| {
        let addresses = client::addresses(bed.emulator(), &device)?;
        client::load(setup, server, addresses, seed)
    })?;
    Ok(seen.result())
}

fn topology(setup: &CostSetup, device: &str, seed: u64) -> Topology {
    let link = LinkConfig { delay: setup.link.delay.0 / 2, ..LinkConfig::default() };
    let topology = Topology::default().with_path(device, link.clone(), link).with_seed(seed);
    if !setup.swallowed {
        return topology;
    }
    let carrier = match setup.sctp {
        SctpIn::Udp => protocol::UDP,
        SctpIn::Ip => protocol::SCTP,
    };
    topology.with_middlebox(MiddleboxConfig::Firewall(Firewall::AllBut(vec![carrier])))
}
