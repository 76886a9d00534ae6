//! The load that the client's host generates.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::{Endpoint, MemoryStore, SecurityParameters};
use eyas_emulator::{Emulator, HostRole};
use eyas_http::Versions;
use eyas_load::{ArrivalProcess, Load, LoadExtent};
use eyas_sctp_tokio::protocol::config::{AssociationConfig, OfferedExtensions};

use crate::live::LiveError;
use crate::situation::live::{ConnectMethod, CostOutcome, CostSetup, SctpCarrier};

/// The number of addresses that connections are opened from in turn: at 1,000 per second,
/// connections in TIME-WAIT, 60 s each, exceed the ports of a single address.
const ADDRESSES: u8 = 8;
/// The last byte of the first of them; `.1`, `.2` and `.254` of the network are in use.
const FIRST: u8 = 11;
/// The maximum number of requests in flight: some seconds' worth at 1,000 per second.
const MAX_IN_FLIGHT: usize = 8_192;
/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Assigns the addresses to the client's host, and sets the port range of the paper's Table 1.
pub(super) fn addresses(emulator: &Emulator, path: &str) -> Result<Vec<IpAddr>, LiveError> {
    let refused = |cause: &dyn std::fmt::Display| LiveError::Testbed(format!("addresses: {cause}"));
    let address = emulator.address(path, HostRole::Client);
    let (Some(IpAddr::V4(own)), Some(device)) = (address, emulator.topology().interface(path))
    else {
        return Err(refused(&"the client has none"));
    };
    let [a, b, c, _] = own.octets();
    let all: Vec<Ipv4Addr> =
        (FIRST..FIRST + ADDRESSES).map(|last| Ipv4Addr::new(a, b, c, last)).collect();
    let lines: String =
        all.iter().map(|address| format!("addr add {address}/24 dev {device}\n")).collect();
    let client = emulator.namespace(HostRole::Client);
    let mut ip = client
        .command("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|cause| refused(&cause))?;
    if let Some(mut input) = ip.stdin.take() {
        input.write_all(lines.as_bytes()).map_err(|cause| refused(&cause))?;
    }
    if !ip.wait().map_err(|cause| refused(&cause))?.success() {
        return Err(refused(&"ip refuses them"));
    }
    // If it cannot be written, the system's range applies.
    let range = || std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "10000 61000");
    client.run_in(range).map_err(|cause| refused(&cause))?.ok();
    Ok(all.into_iter().map(IpAddr::V4).collect())
}

/// Returns the load on this server.
pub(super) fn load(
    setup: &CostSetup,
    server: SocketAddr,
    addresses: Vec<IpAddr>,
    seed: u64,
) -> Result<Load, LiveError> {
    let scheme = if setup.tls { "https" } else { "http" };
    let url = format!("{scheme}://{server}/bytes/{}", setup.size.0);
    let url = url.parse().map_err(|cause| LiveError::Inside(format!("{url}: {cause}")))?;
    let mut load = Load::new(url).from_addresses(addresses.iter().copied());
    load.arrivals = ArrivalProcess::poisson(setup.rate);
    load.warm_up = setup.warm_up.0;
    load.extent = LoadExtent::lasting(setup.warm_up.0 + setup.duration.0);
    load.versions = Versions::HTTP_1;
    load.http1_0 = true;
    load.endpoint = Endpoint::builder()
        .security(security())
        .memory(MemoryStore::none())
        .sctp_association(association())
        .local_addresses(addresses);
    load.race = setup.race();
    load.outcomes = setup.outcomes();
    load.hit_rate = setup.hit_rate.0;
    load.races_below_tls = setup.tls && setup.method == ConnectMethod::Naive;
    load.timeout = TIMEOUT;
    load.max_in_flight = MAX_IN_FLIGHT;
    load.seed = seed;
    Ok(load)
}

/// Returns associations with what Table 1 of the paper leaves: one stream in each direction, and no
/// extension. What one side does not offer, neither uses.
fn association() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    (config.outbound_streams, config.max_inbound_streams) = (1, 1);
    let mut extensions = OfferedExtensions::default();
    extensions.interleaving = false;
    extensions.partial_reliability = false;
    extensions.reconfiguration = false;
    extensions.dynamic_addresses = false;
    extensions.authentication = false;
    extensions.nr_sack = false;
    extensions.ecn = false;
    config.extensions = extensions;
    config
}

/// As in the paper, trusting any server: verification by the client costs the server nothing.
fn security() -> SecurityParameters {
    use eyas::rustls::crypto::ring::cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
    SecurityParameters::platform()
        .accept_any_certificate()
        .without_resumption()
        .with_tls_versions([&eyas::rustls::version::TLS12])
        .with_cipher_suites([TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256])
}

impl CostSetup {
    /// Returns SCTP with its carrier.
    pub(super) fn sctp(&self) -> Transport {
        match self.sctp {
            SctpCarrier::Udp => Transport::SctpUdp,
            SctpCarrier::Ip => Transport::Sctp,
        }
    }

    /// Returns the winners, if connections race.
    fn outcomes(&self) -> Vec<Transport> {
        match (self.method, self.outcome) {
            (ConnectMethod::Tcp | ConnectMethod::Sctp | ConnectMethod::Serial, _)
            | (_, CostOutcome::Open) => Vec::new(),
            (_, CostOutcome::Tcp) => vec![Transport::Tcp],
            (_, CostOutcome::Sctp) => vec![self.sctp()],
            (_, CostOutcome::Half) => vec![Transport::Tcp, self.sctp()],
        }
    }

    fn race(&self) -> Policy {
        let both = vec![self.sctp(), Transport::Tcp];
        let policy = Policy { transports: both, ignore_memory: true, ..Policy::default() };
        match self.method {
            ConnectMethod::Tcp => {
                Policy { transports: vec![Transport::Tcp], second_tries: 0, ..policy }
            }
            ConnectMethod::Sctp => Policy { transports: vec![self.sctp()], ..policy },
            ConnectMethod::Naive => policy.naive(),
            ConnectMethod::Eyas => policy,
            ConnectMethod::EyasAtOnce => Policy { simultaneous: true, ..policy },
            ConnectMethod::Serial => Policy {
                head_start: self.patience.0,
                attempt_delay_max: self.patience.0.max(policy.attempt_delay_max),
                late_switch: false,
                grace: Duration::ZERO,
                second_tries: 0,
                ..policy
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eyas_emulator::units::{ByteSize, TimeSpan};

    fn setup(method: ConnectMethod, outcome: CostOutcome) -> CostSetup {
        let second = TimeSpan(Duration::from_secs(1));
        CostSetup {
            link: Default::default(),
            method,
            sctp: SctpCarrier::Udp,
            outcome,
            hit_rate: Default::default(),
            tls: false,
            size: ByteSize(1024),
            rate: 100.0,
            swallowed: false,
            patience: TimeSpan(Duration::from_secs(3)),
            warm_up: second,
            duration: second,
            sample: second,
        }
    }

    #[test]
    fn every_method_is_a_valid_race() {
        let methods = [
            ConnectMethod::Tcp,
            ConnectMethod::Sctp,
            ConnectMethod::Naive,
            ConnectMethod::Eyas,
            ConnectMethod::EyasAtOnce,
            ConnectMethod::Serial,
        ];
        for method in methods {
            let race = setup(method, CostOutcome::Tcp).race().validated().expect("a valid policy");
            let alone = matches!(method, ConnectMethod::Tcp | ConnectMethod::Sctp);
            assert_eq!(race.transports.len(), if alone { 1 } else { 2 }, "{method:?}");
        }
        let serial = setup(ConnectMethod::Serial, CostOutcome::Tcp).race();
        assert_eq!(serial.head_start, Duration::from_secs(3));
        for method in [ConnectMethod::Tcp, ConnectMethod::Naive, ConnectMethod::Serial] {
            assert_eq!(
                setup(method, CostOutcome::Tcp).race().second_tries,
                0,
                "{method:?} is none of eyas"
            );
        }
    }

    #[test]
    fn associations_have_what_table_1_leaves() {
        let config = association();
        assert_eq!((config.outbound_streams, config.max_inbound_streams), (1, 1));
        let offered = format!("{:?}", config.extensions);
        assert!(!offered.contains("true") && config.multipath.is_none(), "{offered}");
    }

    #[test]
    fn outcomes_are_those_of_the_paper() {
        let of = |outcome| setup(ConnectMethod::Naive, outcome).outcomes();
        assert_eq!(of(CostOutcome::Tcp), [Transport::Tcp]);
        assert_eq!(of(CostOutcome::Sctp), [Transport::SctpUdp]);
        assert_eq!(of(CostOutcome::Half), [Transport::Tcp, Transport::SctpUdp]);
        assert!(of(CostOutcome::Open).is_empty());
        assert!(setup(ConnectMethod::Tcp, CostOutcome::Tcp).outcomes().is_empty());
    }
}
