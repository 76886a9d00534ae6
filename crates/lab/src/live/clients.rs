//! A run: fetches of one client, observed through the packets at its end of the links.
//!
//! | file | purpose |
//! | --- | --- |
//! | `clients` | the hosts, and the trials one after another |
//! | `addresses` | the addresses of the name, and what is behind them |
//! | `zone` | the name server |
//! | `servers` | the listeners at the addresses |
//! | `program` | the client's process |
//! | `capture`, `packet` | reading a capture, and parsing its packets |
//! | `measures` | deriving measures from packets |
//! | `lateness` | deriving whether the machine kept up |
//! | `lines` | packets as lines for readers |

mod addresses;
mod capture;
mod lateness;
mod lines;
mod measures;
mod packet;
mod program;
mod servers;
mod zone;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eyas_emulator::{HostRole, MiddleboxConfig, PathTopology, Topology};

use super::testbed::LiveTestbed;
use super::{LiveError, RunLive, awake};
use crate::run::{ProgramObservation, RunResult};
use crate::situation::live::{ClientsSetup, DelayedTraffic, UrlScheme};
use measures::FetchMeasures;
use packet::PacketInfo;
use program::ReadyClient;
use servers::{ServerSetup, TrialServers};
use zone::ZoneConfig;

/// The paths of the address families; the name server is on the IPv4 path.
const IPV4_PATH: &str = "four";
const IPV6_PATH: &str = "six";
/// The path that is fetched: a page, because browsers save anything else as a file.
const PAGE: &str = "/";
/// How long to wait for packets of a fetch that has ended.
const AFTER: Duration = Duration::from_millis(20);

impl RunLive for ClientsSetup {
    fn run(&self, seed: u64, stop: &AtomicBool) -> Result<RunResult, LiveError> {
        let _awake = awake::keep();
        let testbed = LiveTestbed::with_topology(&topology(self, seed)?)?;
        let name_server = testbed.server_address()?;
        let mut all = addresses::of_family(true, &self.ipv6);
        all.extend(addresses::of_family(false, &self.ipv4));
        addresses::configure(testbed.emulator().namespace(HostRole::Server), &all)?;
        let zone =
            ZoneConfig { setup: self.clone(), addresses: all.iter().map(|(ip, _)| *ip).collect() };
        let setup = ServerSetup { name_server, zone, all, udp: self.udp };
        let (_servers, root) = TrialServers::start(&testbed, setup)?;
        let directory =
            tempfile::tempdir().map_err(|cause| LiveError::Inside(cause.to_string()))?;
        let name_server = name_server.to_string();
        let program = ReadyClient::prepare(&self.client, directory.path(), &name_server, &root)?;
        let mut run = RunResult::default();
        let mut observed =
            ProgramObservation { version: program.version.clone(), courses: Vec::new() };
        let mut no_traffic = None;
        for trial in 0..self.trials {
            let trial = ClientTrial {
                setup: self,
                testbed: &testbed,
                program: &program,
                seed,
                number: trial,
            };
            no_traffic = trial.run(directory.path(), stop, &mut run, &mut observed)?.or(no_traffic);
        }
        if let (Some(why), true) = (no_traffic, run.columns.is_empty()) {
            return Err(LiveError::Missing(why));
        }
        run.observed = Some(observed);
        Ok(run)
    }
}

fn topology(setup: &ClientsSetup, seed: u64) -> Result<Topology, LiveError> {
    let by = setup.late.by.0;
    let (late_ipv4, late_ipv6) = match setup.late.what {
        DelayedTraffic::Ipv6 => (Duration::ZERO, by),
        DelayedTraffic::Everything => (by, by),
        DelayedTraffic::Nothing
        | DelayedTraffic::A
        | DelayedTraffic::Aaaa
        | DelayedTraffic::Https => (Duration::ZERO, Duration::ZERO),
    };
    let mut ipv4 = PathTopology { ipv6: None, ..PathTopology::numbered(1, IPV4_PATH) };
    let mut ipv6 = PathTopology { ipv4: None, ..PathTopology::numbered(2, IPV6_PATH) };
    for (path, delay) in [(&mut ipv4, late_ipv4), (&mut ipv6, late_ipv6)] {
        path.forward = super::testbed::forward(&setup.link);
        path.backward = super::testbed::backward(&setup.link);
        path.backward.delay += delay;
        path.middleboxes = MiddleboxConfig::from_specs(&setup.link.middlebox)
            .map_err(|cause| LiveError::Testbed(cause.to_string()))?;
    }
    Ok(Topology { paths: vec![ipv4, ipv6], ..Topology::default() }.with_seed(seed))
}

/// One trial: a name and a home directory that have not been used before.
struct ClientTrial<'a> {
    setup: &'a ClientsSetup,
    testbed: &'a LiveTestbed,
    program: &'a ReadyClient<'a>,
    seed: u64,
    number: u32,
}

impl ClientTrial<'_> {
    /// Returns the reason if there was nothing to measure: a client that sends nothing has not
    /// failed because of the network.
    fn run(
        &self,
        directory: &Path,
        stop: &AtomicBool,
        run: &mut RunResult,
        observed: &mut ProgramObservation,
    ) -> Result<Option<String>, LiveError> {
        let name = format!("t{}-{}.{}", self.seed, self.number, zone::DOMAIN);
        let scheme = match self.setup.scheme {
            UrlScheme::Http => "http",
            UrlScheme::Https => "https",
        };
        let url = format!("{scheme}://{name}{PAGE}");
        let home = directory.join(format!("home-{}", self.number));
        let mut no_traffic = None;
        for fetch in 1..=self.setup.fetches {
            if stop.load(Ordering::Relaxed) {
                return Err(LiveError::Stopped);
            }
            let (packets, ended) = self.fetch(directory, (&name, &url), &home, stop)?;
            let Some(begin) = measures::start_time(&packets, &name) else {
                no_traffic = (fetch == 1).then(|| self.program.describe_silence(&home));
                break;
            };
            let mut measures = measures::measure(&packets, &name, ended);
            let late = |record_type| self.setup.late.of_answer_at_client(record_type);
            if let Some(lateness) = lateness::max_lateness(&packets, late) {
                measures.insert("behind", lateness);
            }
            store_measures(run, fetch, &measures);
            if self.number == 0 {
                let title = match self.setup.fetches {
                    1 => url.clone(),
                    _ => format!("{url}, fetch {fetch}"),
                };
                observed.courses.push(lines::course(&title, &packets, begin));
            }
        }
        // Browsers leave many files behind, which are not needed any more.
        let _ = std::fs::remove_dir_all(&home);
        Ok(no_traffic)
    }

    /// Executes one fetch, and returns its packets and the time at which its process ended.
    fn fetch(
        &self,
        directory: &Path,
        (name, url): (&str, &str),
        home: &Path,
        stop: &AtomicBool,
    ) -> Result<(Vec<PacketInfo>, Option<Duration>), LiveError> {
        let file = directory.join("packets.pcapng");
        let emulator = self.testbed.emulator();
        emulator.capture(None, &file)?;
        let host = emulator.namespace(HostRole::Client);
        let ended = self.program.fetch(host, url, home, self.setup.give_up.0, stop);
        std::thread::sleep(AFTER);
        emulator.end_capture()?;
        let bytes = std::fs::read(&file).map_err(|cause| LiveError::Inside(cause.to_string()))?;
        let captured = capture::packets(&bytes);
        let mut packets = at_the_client(&captured);
        // Requests that browsers make on their own account do not belong to the fetch.
        packets.retain(|packet| measures::belongs(packet, name));
        Ok((packets, ended?.at))
    }
}

/// Returns the packets at the client's end of the links.
fn at_the_client(packets: &[capture::CapturedPacket]) -> Vec<PacketInfo> {
    let end = format!("at the {}", HostRole::Client);
    let own = |packet: &&capture::CapturedPacket| packet.interface.ends_with(&end);
    let parse = |packet: &capture::CapturedPacket| {
        let source = eyas_netem::packet::Packet::parse(&packet.ip)?.source;
        packet::parse(packet.at, is_client(source), &packet.ip)
    };
    let mut packets: Vec<PacketInfo> = packets.iter().filter(own).filter_map(parse).collect();
    // Each link records its own packets in order.
    packets.sort_by_key(|packet| packet.at);
    packets
}

/// Returns whether an address belongs to the client, on either path.
fn is_client(address: std::net::IpAddr) -> bool {
    let paths = [PathTopology::numbered(1, IPV4_PATH), PathTopology::numbered(2, IPV6_PATH)];
    paths.iter().any(|path| path.addresses(HostRole::Client).contains(&address))
}

/// Stores the measures of a fetch in the columns. Some measures of later fetches have separate
/// columns.
fn store_measures(run: &mut RunResult, fetch: u32, measures: &FetchMeasures) {
    for (measure, number) in measures {
        let column = match fetch {
            1 => (*measure).to_owned(),
            _ => format!("{measure}-{fetch}"),
        };
        let is_known = fetch == 1
            || crate::situation::live::columns().any(|(name, _)| name == column.as_str());
        if is_known {
            run.columns.entry(column).or_default().push(*number);
        }
    }
}
