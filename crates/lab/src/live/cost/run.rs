//! A run: a load over TCP, SCTP or the race of both.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use eyas_netem::middlebox::firewall::Policy as Firewall;
use eyas_netem::packet::protocol;

use super::{CostSetup, SctpIn, client};
use crate::emulator::{MiddleboxConfig, Topology};
use crate::live::LiveError;
use crate::live::bed;
use crate::live::host::{self, Identity, Serve};
use crate::results::RunResult;

/// Where the server listens; the host is its own, so all ports are free.
const PORT: u16 = 8443;

/// One run.
pub(in crate::live) fn run(
    setup: &CostSetup,
    seed: u64,
    stop: &AtomicBool,
) -> Result<RunResult, LiveError> {
    let topology = topology(setup, seed);
    let four = topology.paths.first().and_then(|path| path.ipv4);
    let [_, server] = four.ok_or_else(|| LiveError::Bed("no addresses".to_owned()))?;
    let server = SocketAddr::new(server.into(), PORT);
    let identity = if setup.tls { Identity::Rsa } else { Identity::None };
    let serve = Serve { listen: server, identity, http3: false };
    let seen = host::run(topology, &serve, setup.times(), stop, |bed| {
        let addresses = client::addresses(bed.emulator(), bed::PATH)?;
        client::load(setup, server, addresses, seed)
    })?;
    Ok(seen.result())
}

fn topology(setup: &CostSetup, seed: u64) -> Topology {
    let topology = bed::topology(bed::PATH, setup.link, seed);
    if !setup.swallowed {
        return topology;
    }
    let carrier = match setup.sctp {
        SctpIn::Udp => protocol::UDP,
        SctpIn::Ip => protocol::SCTP,
    };
    topology.with_middlebox(MiddleboxConfig::Firewall(Firewall::AllBut(vec![carrier])))
}
