//! Gathers the facts. Everything runs at the same time, and each part ends before the limit by itself.
//!
//! | file | what it asks |
//! | --- | --- |
//! | `names` | the name servers, each by itself |
//! | `host` | every transport to the host, by a race that lets all candidates finish |
//! | `requests` | the host, and a URL, for what an HTTP response tells |

mod host;
mod names;
mod requests;

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyas::race::candidate::{Security, Transport};
use eyas::race::io::NetworkView;
use eyas::race::memory::{MemoryConfig, MemoryRecord};
use eyas::race::report::MemoryRowJson;
use eyas::race::target::Target;
use eyas::sockets::{StreamProtocol, WantedSockets, bind};
use tokio::time::timeout;

use super::findings::{
    DoctorFindings, HostFindings, MachineFindings, MemoryFinding, MemoryRows, OwnAddressFinding,
    RememberedFinding,
};
use crate::command::setting::{self, MemoryLocation, RaceContext};
use crate::failure::{Failure, FailureKind};
use crate::flags::{DoctorFlags, RacePolicy};

/// The share of the limit after which each part ends by itself.
const SHARE_OF_PARTS: f64 = 0.8;
/// How long a name server may take. Users have given up before.
const NAME_SERVER_LIMIT: Duration = Duration::from_secs(3);
/// The shortest limit: in less time, silence means nothing.
pub(super) const MIN_LIMIT: Duration = Duration::from_secs(2);

/// Examines this machine, its name servers, and the way to the target if there is one.
pub(super) async fn examine(
    flags: &DoctorFlags,
    target: Option<&Target>,
    context: &RaceContext,
) -> Result<DoctorFindings, Failure> {
    let limit = flags.timeout.mul_f64(SHARE_OF_PARTS);
    let endpoint = &context.endpoint;
    // Read before anything is learnt.
    let remembered = context.memory.entries();
    let portal =
        requests::PortalProbe::new(flags.portal_url.as_deref(), target, flags.trust.ech.as_ref())?;
    let race = async {
        match target {
            Some(target) => host::race(context, target, policy(flags, target)?, limit).await,
            None => Ok(None),
        }
    };
    let request = async {
        match target {
            Some(target) => timeout(limit, requests::ask_host(endpoint, target, limit)).await.ok(),
            None => None,
        }
    };
    let portal = async {
        match portal {
            Some(probe) => timeout(limit, probe.run(endpoint, limit)).await.ok(),
            None => None,
        }
    };
    let servers = names::examine(endpoint.resolver(), target, NAME_SERVER_LIMIT.min(limit));
    let (race, request, portal, name_servers, view) =
        tokio::join!(race, request, portal, servers, endpoint.network_view());
    let race = race?;
    let host = target.map(|target| {
        let answer = request.flatten().unwrap_or_default();
        HostFindings {
            host: target.host.to_string(),
            port: target.port,
            name: host::name(endpoint.resolver(), target, race.as_ref()),
            named_transports: named_transports(flags),
            announces_http3: answer.announces_http3,
            attempts: race.as_ref().map(|race| host::attempts(&race.report)),
            packets: race.and_then(|race| race.packets),
            clock_ahead: answer.clock_ahead,
        }
    });
    // The gateway's hardware address, which is a part of the network's identity, may be known only now.
    let network = endpoint.network_name().await;
    let ids = [view.id.0.to_string(), endpoint.network_view().await.id.0.to_string()];
    let memory = memory(flags, context, &remembered, &ids, target);
    let machine = machine(&view, network);
    Ok(DoctorFindings { machine, name_servers, host, portal, memory })
}

/// Returns the policy of the race: as `eyas race --all`.
fn policy(flags: &DoctorFlags, target: &Target) -> Result<eyas::race::policy::Policy, Failure> {
    let mut policy = setting::policy(RacePolicy::Race, &flags.choice(), &flags.reach(), target)?;
    setting::let_all_finish(&mut policy, target);
    policy.deadline = flags.timeout.mul_f64(SHARE_OF_PARTS);
    policy.validated().map_err(|cause| setting::refused_policy(&cause))
}

/// Returns the transports that the user has named in the target's scheme.
fn named_transports(flags: &DoctorFlags) -> Vec<Transport> {
    let scheme = flags.target.as_deref().and_then(|target| target.split_once("://"));
    scheme.and_then(|(scheme, _)| Transport::from_scheme(scheme)).unwrap_or_default()
}

fn machine(view: &NetworkView, network: String) -> MachineFindings {
    let addresses = view.sources.iter();
    let own = |source: &eyas::race::io::SourceAddress| OwnAddressFinding {
        address: source.address,
        routed: source.routed,
    };
    let lacking = view.lacking.iter();
    let no_sctp = lacking.clone().find(|lacking| lacking.transport == Transport::Sctp);
    MachineFindings {
        network,
        addresses: addresses.map(own).collect(),
        nat64: view.pref64.clone(),
        no_mptcp: missing_mptcp(),
        no_sctp: no_sctp.map(|lacking| lacking.why.clone()),
    }
}

/// Returns why the kernel has no MPTCP, if so: it is asked for a socket on loopback.
fn missing_mptcp() -> Option<String> {
    let wanted = WantedSockets { stream: Some(StreamProtocol::Mptcp), udp: false };
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    bind(&[address], wanted).err().map(|cause| cause.source.to_string())
}

/// Returns what was remembered about the network under one of these identities, and about the target.
fn memory(
    flags: &DoctorFlags,
    context: &RaceContext,
    remembered: &[MemoryRecord],
    ids: &[String],
    target: Option<&Target>,
) -> MemoryFinding {
    match setting::memory_location(flags.memory.as_ref()) {
        MemoryLocation::Nowhere => return MemoryFinding::Disabled,
        MemoryLocation::Unknown => {
            return MemoryFinding::Unusable(setting::NO_MEMORY_DIRECTORY.to_owned());
        }
        MemoryLocation::File(_) if !context.memory.is_persistent() => {
            let why = context.memory.warnings().into_iter().next();
            return MemoryFinding::Unusable(why.unwrap_or_else(|| "it cannot be used".to_owned()));
        }
        MemoryLocation::File(_) => {}
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let rows = MemoryRowJson::rows(remembered, None, now, &MemoryConfig::default());
    let rows: Vec<_> = rows.into_iter().filter(|row| ids.contains(&row.network)).collect();
    let host = target.map(|target| target.host.to_string());
    let of_host = rows.iter().filter(|row| row.host.is_some() && row.host == host);
    let swallowed = rows.iter().filter(|row| row.verdict == "network-bad");
    MemoryFinding::Known(MemoryRows {
        on_network: rows.len(),
        of_host: of_host.filter_map(remembered_row).collect(),
        swallowed: swallowed.map(|row| format!("{} {}", row.transport, row.address)).collect(),
    })
}

fn remembered_row(row: &MemoryRowJson) -> Option<RememberedFinding> {
    Some(RememberedFinding {
        transport: Transport::from_name(row.transport)?,
        security: Security::from_name(row.security?)?,
        address: row.address.parse().ok()?,
        worked: match row.verdict {
            "good" => true,
            "bad" | "retest-due" => false,
            _ => return None,
        },
    })
}

/// Returns the failure of a limit that is too short.
pub(super) fn check_limit(limit: Duration) -> Result<(), Failure> {
    if limit < MIN_LIMIT {
        let text = "--timeout must be at least 2 s: in less time, silence means nothing";
        return Err(Failure::new(FailureKind::Usage, text));
    }
    Ok(())
}
