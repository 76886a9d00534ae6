//! A run of a load that races all available candidates.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use eyas::race::candidate::{AddressFamily, Transport};
use eyas::race::policy::{Policy, SctpSecurity};
use eyas::{Endpoint, MemoryStore, Resolver, SecurityParameters};
use eyas_emulator::{HostRole, MiddleboxConfig, Topology};
use eyas_load::{ArrivalProcess, Load, LoadExtent};
use eyas_netem::middlebox::firewall::FirewallPolicy as Firewall;
use eyas_netem::packet::protocol;

use super::host::{self, ServedIdentity, ServerParameters};
use super::{LiveError, RunLive, testbed};
use crate::run::RunResult;
use crate::situation::live::{AllTransportsSetup, MiddleboxKind, RacePolicyName, SctpSecurityName};

/// The HTTPS port; the server has its own host, so all ports are free.
const PORT: u16 = 443;
/// The name that resolves to both addresses.
const NAME: &str = "six.test";
/// In the order in which they are added to the race, each preferred to those before it; except
/// MPTCP, which gets through as often as TCP and is preferred to TCP alone.
const TRANSPORTS: [Transport; 5] =
    [Transport::Tcp, Transport::SctpUdp, Transport::Sctp, Transport::Quic, Transport::Mptcp];
/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

impl RunLive for AllTransportsSetup {
    fn run(&self, seed: u64, stop: &AtomicBool) -> Result<RunResult, LiveError> {
        let topology = topology(self, seed)?;
        let server = topology.paths.first().map(|path| path.addresses(HostRole::Server));
        let listen = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), PORT);
        let serve = ServerParameters { listen, identity: ServedIdentity::Ecdsa, http3: true };
        let observed = host::run(topology, &serve, self.times(), stop, |_| {
            load(self, server.unwrap_or_default(), seed)
        })?;
        Ok(observed.result())
    }
}

fn topology(setup: &AllTransportsSetup, seed: u64) -> Result<Topology, LiveError> {
    let topology = testbed::topology(testbed::PATH, &setup.link, seed)?;
    let firewall = |policy| MiddleboxConfig::Firewall(policy);
    Ok(match setup.middlebox {
        MiddleboxKind::Nothing => topology,
        MiddleboxKind::Nat => topology.with_middlebox(MiddleboxConfig::nat()),
        MiddleboxKind::NoSctp => {
            topology.with_middlebox(firewall(Firewall::AllBut(vec![protocol::SCTP])))
        }
        MiddleboxKind::NoUdp => {
            topology.with_middlebox(firewall(Firewall::AllBut(vec![protocol::UDP])))
        }
        MiddleboxKind::OnlyWeb => {
            topology.with_middlebox(firewall(Firewall::OnlyTcpPorts(vec![PORT])))
        }
    })
}

fn load(setup: &AllTransportsSetup, server: Vec<IpAddr>, seed: u64) -> Result<Load, LiveError> {
    let url = format!("https://{NAME}:{PORT}/bytes/100");
    let url = url.parse().map_err(|cause| LiveError::Inside(format!("{url}: {cause}")))?;
    let mut load = Load::new(url);
    load.arrivals = ArrivalProcess::poisson(setup.rate);
    load.warm_up = setup.warm_up.0;
    load.extent = LoadExtent::lasting(setup.warm_up.0 + setup.duration.0);
    let memory = match setup.race {
        RacePolicyName::EyasRemembers => {
            MemoryStore::in_memory(eyas::race::memory::MemoryConfig::default())
        }
        RacePolicyName::Naive | RacePolicyName::Eyas => MemoryStore::none(),
    };
    let security = SecurityParameters::platform().accept_any_certificate().without_resumption();
    load.endpoint = Endpoint::builder()
        .security(security)
        .memory(memory)
        .resolver(Resolver::system().overriding(NAME, PORT, server));
    load.race = setup.policy();
    load.timeout = TIMEOUT;
    load.seed = seed;
    Ok(load)
}

impl AllTransportsSetup {
    /// Returns the candidates and how they are tried.
    fn policy(&self) -> Policy {
        let count = self.candidates.div_ceil(2);
        let mut transports: Vec<Transport> = TRANSPORTS[..count].iter().rev().copied().collect();
        if transports[0] == Transport::Mptcp {
            transports.remove(0);
            transports.insert(transports.len() - 1, Transport::Mptcp);
        }
        let policy = Policy {
            transports,
            only_family: (self.candidates == 1).then_some(AddressFamily::V4),
            max_in_flight: self.candidates.max(Policy::default().max_in_flight),
            sctp_security: match self.sctp_security {
                SctpSecurityName::Tls => SctpSecurity::Tls,
                SctpSecurityName::Dtls => SctpSecurity::Dtls,
            },
            ignore_memory: self.race != RacePolicyName::EyasRemembers,
            ..Policy::default()
        };
        match self.race {
            RacePolicyName::Naive => policy.naive(),
            RacePolicyName::Eyas | RacePolicyName::EyasRemembers => policy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(candidates: usize) -> Policy {
        let second = eyas_emulator::units::TimeSpan(Duration::from_secs(1));
        let setup = AllTransportsSetup {
            link: Default::default(),
            candidates,
            race: RacePolicyName::Naive,
            sctp_security: SctpSecurityName::Dtls,
            middlebox: MiddleboxKind::Nothing,
            rate: 1.0,
            warm_up: second,
            duration: second,
            sample: second,
        };
        setup.policy().validated().expect("a valid policy")
    }

    #[test]
    fn the_requested_number_of_candidates_is_made() {
        assert_eq!(policy(1).only_family, Some(AddressFamily::V4));
        assert_eq!((policy(2).transports.len(), policy(2).only_family), (1, None));
        // The six of the paper.
        assert_eq!(policy(6).transports, [Transport::Sctp, Transport::SctpUdp, Transport::Tcp]);
        assert_eq!(policy(8).transports[0], Transport::Quic);
        assert_eq!(policy(10).transports[0], Transport::Quic);
        assert_eq!(policy(10).transports[3..], [Transport::Mptcp, Transport::Tcp]);
        assert!(policy(10).max_in_flight >= 10);
    }
}
