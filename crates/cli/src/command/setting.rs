//! Converts flags to the parameters of a race: policy, security parameters, resolver, memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice;
use std::time::Duration;

use eyas::race::candidate::{AddressFamily, Transport};
use eyas::race::memory;
use eyas::race::policy::{Policy, PolicyError, SctpSecurity};
use eyas::race::target::{Target, TargetService};
use eyas::{
    Endpoint, EndpointBuilder, MemoryStore, Resolver, SecurityParameters, certificates_from_pem,
};
use eyas_http::{Proxy, Versions};
use eyas_sctp_tokio::protocol::config::AssociationConfig;
use rustls_pki_types::CertificateDer;

use super::identity;
use crate::failure::{Failure, FailureKind};
use crate::flags::{
    ChoiceFlags, CommonFlags, DnsServer, MemoryChoice, NameServerFlags, PathFlags, RacePolicy,
    ReachFlags, ResolveFlag, TrustFlags, VersionFlags,
};
use crate::output;
use crate::terminal::{OutputStyle, Paint, PaintedLine, time};

mod connect_to;

pub(crate) use connect_to::rule_for;

/// The name of the memory file below the state directory.
const MEMORY_FILE: [&str; 2] = ["eyas", "memory.sqlite"];

/// The size of the send and receive buffers if several paths are used concurrently.
const MULTIPATH_BUFFER: usize = 4 << 20;
/// A path that has recovered is used again within this time and a round trip.
const MAX_PROBE_INTERVAL: Duration = Duration::from_millis(500);

/// The endpoint of a run and its memory.
pub(crate) struct RaceContext {
    /// The endpoint, which makes the connections.
    pub(crate) endpoint: Endpoint,
    /// Its memory.
    pub(crate) memory: MemoryStore,
}

impl RaceContext {
    /// Creates them from the flags, for this target.
    pub(crate) async fn new(
        choice: &ChoiceFlags,
        reach: &ReachFlags,
        trust: &TrustFlags,
        target: &Target,
    ) -> Result<Self, Failure> {
        Self::for_targets(Endpoint::builder(), (choice, reach, trust), slice::from_ref(target))
            .await
    }

    /// Like [`Self::new`], with these paths if SCTP wins.
    pub(crate) async fn with_paths(
        paths: &PathFlags,
        (choice, reach, trust): (&ChoiceFlags, &ReachFlags, &TrustFlags),
        target: &Target,
    ) -> Result<Self, Failure> {
        let builder = Endpoint::builder()
            .sctp_association(association(AssociationConfig::default(), paths))
            .sctp_local_addresses(paths.local_address.iter().copied());
        Self::for_targets(builder, (choice, reach, trust), slice::from_ref(target)).await
    }

    /// Creates them from the flags, for all these targets.
    pub(crate) async fn for_targets(
        builder: EndpointBuilder,
        (choice, reach, trust): (&ChoiceFlags, &ReachFlags, &TrustFlags),
        targets: &[Target],
    ) -> Result<Self, Failure> {
        let memory = memory(choice.memory.as_ref(), choice.retest_after);
        let builder = builder
            .security(security(trust)?)
            .memory(memory.clone())
            .mptcp(choice.prefer == Some(Transport::Mptcp));
        let endpoint = with_reach_of_all(builder, reach, targets)
            .await?
            .build()
            .map_err(|cause| Failure::new(FailureKind::Identity, cause.to_string()))?;
        Ok(Self { endpoint, memory })
    }

    /// Prints problems with the memory on standard error; they never stop a run.
    pub(crate) fn warn(&self, common: &CommonFlags) {
        let warning = |text: String| {
            PaintedLine::new()
                .with_span(Paint::Warn, "eyas: memory: ")
                .with_span(Paint::Plain, text)
        };
        let lines: Vec<PaintedLine> = self.memory.warnings().into_iter().map(warning).collect();
        output::print_to_stderr(&lines, OutputStyle::of_stderr(common.color));
    }
}

/// Applies the names, addresses and ports of the flags.
pub(crate) async fn with_reach(
    builder: EndpointBuilder,
    reach: &ReachFlags,
    target: &Target,
) -> Result<EndpointBuilder, Failure> {
    with_reach_of_all(builder, reach, slice::from_ref(target)).await
}

async fn with_reach_of_all(
    builder: EndpointBuilder,
    reach: &ReachFlags,
    targets: &[Target],
) -> Result<EndpointBuilder, Failure> {
    let mut resolver = resolver(&reach.name_server, &reach.resolve)?;
    let mut builder = builder.sctp_encapsulation_port(reach.sctp_udp_port);
    for target in targets {
        let Some(rule) = rule_for(reach, target) else { continue };
        let port = rule.to_port.unwrap_or(target.port);
        builder = builder.forwarding(target.host.clone(), target.port, port);
        if let Some(host) = &rule.to_host {
            let addresses = connect_to::addresses(&resolver, host, port).await?;
            let name = target.host.to_string();
            resolver = resolver.overriding_on_interfaces(&name, port, addresses);
        }
    }
    Ok(builder.resolver(resolver))
}

/// Returns the configuration of associations with the user's paths; the rest is as in `config`.
pub(crate) fn association(mut config: AssociationConfig, paths: &PathFlags) -> AssociationConfig {
    config.extensions.dynamic_addresses = true;
    config.auto_asconf = true;
    config.max_probe_interval = Some(MAX_PROBE_INTERVAL);
    if let Some(options) = &paths.multipath {
        (config.send_buffer, config.receive_buffer) = (MULTIPATH_BUFFER, MULTIPATH_BUFFER);
        options.apply(&mut config);
    }
    if let Some(bytes) = paths.buffer {
        (config.send_buffer, config.receive_buffer) = (bytes as usize, bytes as usize);
    }
    if let Some(congestion) = paths.congestion {
        config.congestion_control = congestion.into();
    }
    config
}

/// Applies a race policy from the command line.
pub(crate) fn with_race_policy(race_policy: RacePolicy, mut policy: Policy) -> Policy {
    match race_policy {
        RacePolicy::Race => {}
        RacePolicy::Naive => policy = policy.naive(),
        RacePolicy::Serial => {
            policy.max_in_flight = 1;
            policy.late_switch = false;
            policy.second_tries = 0;
        }
    }
    policy
}

/// Returns the policy of a race.
pub(crate) fn policy(
    race_policy: RacePolicy,
    choice: &ChoiceFlags,
    reach: &ReachFlags,
    target: &Target,
) -> Result<Policy, Failure> {
    let mut policy = Policy::default();
    if let TargetService::Plain { transports, .. } = &target.service {
        policy.transports.clone_from(transports);
    }
    if let Some(preferred) = choice.prefer {
        let preferred: Vec<_> = preferred.with_encapsulated().collect();
        policy.transports.retain(|transport| !preferred.contains(transport));
        policy.transports.splice(0..0, preferred);
    }
    policy = with_race_policy(race_policy, policy);
    policy.only_family = only_family(reach);
    if let Some(head_start) = choice.head_start {
        policy = policy.with_head_start(head_start);
    }
    policy.second_tries = choice.second_tries.unwrap_or(policy.second_tries);
    if let Some(delay) = choice.attempt_delay {
        set_attempt_delay(&mut policy, delay);
    }
    if let Some(factor) = choice.attempt_delay_factor {
        policy.attempt_delay_factor = factor;
    }
    let limits = [reach.connect_timeout(), reach.max_time()];
    if let Some(limit) = limits.into_iter().flatten().min() {
        policy.deadline = limit;
    }
    let is_of_max_time = reach.max_time() == Some(policy.deadline);
    policy.validated().map_err(|cause| {
        let deadline_flag = if is_of_max_time { "--max-time" } else { CONNECT_TIMEOUT };
        policy_failure(&cause, deadline_flag)
    })
}

const CONNECT_TIMEOUT: &str = "--connect-timeout";

/// Returns the failure of a policy that does not make sense, with the flag that made it so.
pub(crate) fn refused_policy(cause: &PolicyError) -> Failure {
    policy_failure(cause, CONNECT_TIMEOUT)
}

/// Does the same where this flag has set the deadline.
fn policy_failure(cause: &PolicyError, deadline_flag: &str) -> Failure {
    let (field, bound) = match cause {
        PolicyError::TooShort { field, least, .. } => {
            (*field, format!("at least {}", time(*least)))
        }
        PolicyError::TooLong { field, most, .. } => (*field, format!("at most {}", time(*most))),
        other => return Failure::new(FailureKind::Usage, other.to_string()),
    };
    let flags = match field {
        "deadline" => deadline_flag,
        "head_start" | "lossy_head_start" => "--head-start",
        "attempt_delay" | "attempt_delay_min" | "attempt_delay_max" => "--attempt-delay",
        other => other,
    };
    Failure::new(FailureKind::Usage, format!("{flags} must be {bound}"))
}

/// Lets every candidate of a race finish, over all transports that the service can use, whatever is remembered.
pub(crate) fn let_all_finish(policy: &mut Policy, target: &Target) {
    policy.exhaustive = true;
    policy.ignore_memory = true;
    policy.sctp_security = SctpSecurity::Both;
    // The transports of a target that names them are used as given.
    if matches!(target.service, TargetService::Http { .. }) {
        let rest = Transport::ALL.into_iter();
        let rest: Vec<_> =
            rest.filter(|transport| !policy.transports.contains(transport)).collect();
        policy.transports.extend(rest);
    }
}

/// Returns the transports of a listener, with or without security.
pub(crate) fn served_transports(secured: bool) -> impl Iterator<Item = Transport> {
    let over_ip = eyas_sctp_tokio::direct_access().is_ok();
    Transport::ALL
        .into_iter()
        .filter(move |transport| secured || !transport.has_own_security())
        .filter(move |transport| over_ip || *transport != Transport::Sctp)
}

/// Returns the versions of HTTP that may be used.
pub(crate) fn versions(flags: VersionFlags) -> Versions {
    match flags {
        VersionFlags { http1_1: true, .. } => Versions::HTTP_1,
        VersionFlags { http2: true, .. } => Versions { http3: false, ..Versions::ALL },
        VersionFlags { http3_only: true, .. } => Versions::HTTP_3,
        _ => Versions::ALL,
    }
}

/// Returns the address family of `-4` or `-6`.
pub(crate) fn only_family(reach: &ReachFlags) -> Option<AddressFamily> {
    match (reach.ipv4, reach.ipv6) {
        (true, _) => Some(AddressFamily::V4),
        (false, true) => Some(AddressFamily::V6),
        (false, false) => None,
    }
}

/// Sets the delay between two attempts, and bounds that allow it.
pub(crate) fn set_attempt_delay(policy: &mut Policy, delay: Duration) {
    policy.attempt_delay = delay;
    policy.attempt_delay_min = policy.attempt_delay_min.min(delay);
    policy.attempt_delay_max = policy.attempt_delay_max.max(delay);
}

/// Returns the user's proxy, or those of the environment. An unusable one must not be ignored
/// silently.
pub(crate) fn proxy(url: Option<&str>, exceptions: Option<&str>) -> Result<Proxy, Failure> {
    let Some(url) = url else {
        let from_env = Proxy::from_env();
        return Ok(match exceptions {
            Some(hosts) => from_env.with_exceptions(hosts),
            None => from_env,
        });
    };
    let exceptions = exceptions.map_or_else(Proxy::no_proxy_from_env, str::to_owned);
    let proxy = Proxy::all(url, exceptions);
    proxy.check().map_err(|error| {
        Failure::new(FailureKind::Usage, error.detail().to_owned())
            .hint("-x takes http://, https:// or socks5://HOST:PORT")
    })?;
    Ok(proxy)
}

/// Returns the trust and credentials.
pub(crate) fn security(trust: &TrustFlags) -> Result<SecurityParameters, Failure> {
    let mut security = SecurityParameters::platform();
    if let Some(path) = &trust.cacert {
        security = security.with_roots(roots(path)?);
    }
    if let (Some(cert), Some(key)) = (&trust.cert, &trust.key) {
        let chain = certificates_from_pem(&read(cert)?).map_err(|cause| unusable(cert, &cause))?;
        let key = identity::private_key(key, &trust.passphrase)?;
        security = security.with_client_certificate(chain, key);
    }
    if let Some(ech) = &trust.ech {
        security = security.with_ech(ech.clone());
    }
    let mut curves = trust.curves.iter().enumerate();
    if let Some((_, group)) = curves.find(|(before, group)| trust.curves[..*before].contains(group))
    {
        return Err(Failure::new(FailureKind::Usage, format!("--curves names {group:?} twice"))
            .hint("each group once, most preferred first"));
    }
    security = security.with_key_exchange_groups(trust.curves.iter().copied());
    Ok(if trust.insecure { security.accept_any_certificate() } else { security })
}

/// Reads the trusted certificates of a file.
pub(crate) fn roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    certificates_from_pem(&read(path)?).map_err(|cause| unusable(path, &cause))
}

/// Reads a file that security depends on.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|cause| {
        Failure::new(FailureKind::Identity, format!("cannot read {}: {cause}", path.display()))
    })
}

pub(crate) fn unusable(path: &Path, cause: &eyas::Error) -> Failure {
    let cause = description_of(cause);
    Failure::new(FailureKind::Identity, format!("cannot use {}: {cause}", path.display()))
        .hint("the file must be PEM: text with -----BEGIN in it")
}

/// Describes what is wrong with a certificate or a key, for a sentence that already says that it
/// cannot be used.
pub(crate) fn description_of(cause: &eyas::Error) -> String {
    cause.identity_fault().map_or_else(|| cause.to_string(), str::to_owned)
}

/// Returns the resolver, with its overrides.
pub(crate) fn resolver(
    flags: &NameServerFlags,
    overrides: &[ResolveFlag],
) -> Result<Resolver, Failure> {
    let mut resolver = match (&flags.dns_server, &flags.doh_url) {
        (Some(DnsServer::Plain(address)), _) => Resolver::server(*address),
        (Some(DnsServer::Tls(address, name)), _) => Resolver::tls(*address, name),
        (Some(DnsServer::Quic(address, name)), _) => Resolver::quic(*address, name),
        (None, Some(url)) => Resolver::https(url)
            .map_err(|cause| Failure::new(FailureKind::Usage, cause.to_string()))?,
        (None, None) => Resolver::system(),
    };
    if let Some(policy) = flags.encrypted_dns {
        resolver = resolver.with_encrypted_dns(policy);
    }
    if let Some(is_optimistic) = flags.optimistic_dns {
        resolver = resolver.with_optimistic_dns(is_optimistic);
    }
    for known in overrides {
        let addresses = known.addresses.clone();
        resolver = resolver.overriding_on_interfaces(&known.host, known.port, addresses);
    }
    Ok(resolver)
}

/// Opens the memory that the flags choose. Without a place for a file there is a warning, and what
/// is learnt is lost when the program ends, as if the file could not be written.
pub(crate) fn memory(choice: Option<&MemoryChoice>, retest_after: Option<Duration>) -> MemoryStore {
    let config = memory::MemoryConfig { retest_after, ..Default::default() };
    match memory_location(choice) {
        MemoryLocation::Nowhere => MemoryStore::none(),
        MemoryLocation::File(path) => MemoryStore::open_with(&path, config),
        MemoryLocation::Unknown => MemoryStore::in_memory(config).with_warning(format!(
            "{NO_MEMORY_DIRECTORY}; what is learnt is lost when the program ends"
        )),
    }
}

/// Why there is no place for the memory file.
pub(crate) const NO_MEMORY_DIRECTORY: &str =
    "neither XDG_STATE_HOME nor HOME is set to an absolute path, so there is no memory file";

/// Where the memory is.
pub(crate) enum MemoryLocation {
    /// There is none, as the user wanted.
    Nowhere,
    /// In this file.
    File(PathBuf),
    /// The environment has no directory for it.
    Unknown,
}

/// Returns where the memory is.
pub(crate) fn memory_location(choice: Option<&MemoryChoice>) -> MemoryLocation {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    match choice.cloned().or_else(MemoryChoice::from_env) {
        Some(MemoryChoice::None) => MemoryLocation::Nowhere,
        Some(MemoryChoice::File(path)) => MemoryLocation::File(path),
        None => match default_memory(
            variable("XDG_STATE_HOME")
                .or_else(|| variable("LOCALAPPDATA").filter(|_| cfg!(windows))),
            variable("HOME"),
        ) {
            Some(path) => MemoryLocation::File(path),
            None => MemoryLocation::Unknown,
        },
    }
}

/// Follows the XDG base directory specification: a relative path in the environment is ignored.
fn default_memory(state: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let state = state.filter(|path| path.is_absolute());
    let home = home.filter(|path| path.is_absolute());
    let state = state.or_else(|| home.map(|home| home.join(".local/state")))?;
    Some(state.join(MEMORY_FILE.iter().collect::<PathBuf>()))
}

#[cfg(test)]
mod tests {
    use eyas::race::candidate::Security;
    use eyas::race::target::TargetHost;
    use eyas_sctp_tokio::protocol::config::{CongestionControlKind, SchedulerKind};

    use super::*;

    #[test]
    fn the_memory_follows_the_xdg_specification() {
        let path = |state: Option<&str>, home: Option<&str>| {
            default_memory(state.map(PathBuf::from), home.map(PathBuf::from))
        };
        let home = Some("/users/ada");
        let expected = Some(PathBuf::from("/users/ada/.local/state/eyas/memory.sqlite"));
        assert_eq!(path(None, home), expected);
        assert_eq!(path(Some("relative"), home), expected);
        assert_eq!(path(Some("/state"), home), Some("/state/eyas/memory.sqlite".into()));
        assert_eq!(path(None, None), None);
        assert_eq!(path(Some(""), Some("")), None, "an empty variable counts as unset");
        assert_eq!(path(Some("state"), Some("home")), None);
    }

    #[test]
    fn a_group_is_named_once() {
        use eyas::rustls::NamedGroup::{X25519, secp256r1};
        let of =
            |curves: &[_]| security(&TrustFlags { curves: curves.into(), ..TrustFlags::default() });
        assert!(of(&[X25519, secp256r1]).is_ok());
        let refused = of(&[X25519, secp256r1, X25519]).expect_err("repeated");
        assert_eq!(refused.kind, FailureKind::Usage);
        assert!(refused.to_string().contains("--curves names X25519 twice"), "{refused}");
    }

    #[test]
    fn paths_override_a_profile_and_this_the_defaults_of_the_program() {
        let mut defaults = AssociationConfig::default();
        defaults.scheduler = SchedulerKind::RoundRobinPacket.into();
        let config = |options: &str| {
            let multipath = Some(options.parse().expect(options));
            let congestion = Some(CongestionControlKind::Olia);
            let paths = PathFlags { multipath, congestion, ..PathFlags::default() };
            association(defaults.clone(), &paths)
        };
        for (options, scheduler) in [
            ("", SchedulerKind::RoundRobinPacket),
            ("mapping=modulo", SchedulerKind::RoundRobinPacket),
            ("scheduler=fcfs", SchedulerKind::Fcfs),
            ("profile=pfldnet2010", SchedulerKind::RoundRobin),
        ] {
            let config = config(options);
            assert_eq!(config.scheduler, scheduler.into(), "{options}");
            assert_eq!(config.congestion_control, CongestionControlKind::Olia.into(), "{options}");
            assert_eq!(config.send_buffer, MULTIPATH_BUFFER, "{options}");
        }
        assert_eq!(config("buffer=1 MiB").receive_buffer, 1 << 20);
    }

    #[derive(clap::Parser)]
    struct Line {
        #[arg(long, default_value = "race")]
        policy: RacePolicy,
        #[command(flatten)]
        choice: ChoiceFlags,
        #[command(flatten)]
        reach: ReachFlags,
    }

    fn policy_of(line: &str) -> Result<Policy, Failure> {
        use clap::Parser as _;
        let line = Line::try_parse_from(line.split_whitespace())
            .map_err(|error| Failure::new(FailureKind::Usage, error.to_string()))?;
        let host = TargetHost::parse("a.test").expect("a name");
        let target = Target::plain(host, 443, vec![Transport::Tcp], Security::Tls);
        policy(line.policy, &line.choice, &line.reach, &target)
    }

    #[test]
    fn attempts_are_serial_if_requested() {
        let policy = policy_of("eyas --policy serial").expect("a policy");
        assert_eq!((policy.max_in_flight, policy.late_switch), (1, false));
        assert_ne!(policy_of("eyas").expect("a policy").max_in_flight, 1);
    }

    #[test]
    fn a_policy_that_makes_no_sense_names_the_flag() {
        for (line, expected) in [
            ("--connect-timeout 3000d", "--connect-timeout must be at most"),
            ("--max-time 3000d", "--max-time must be at most"),
            ("--attempt-delay 0", "--attempt-delay must be at least 10 ms"),
            ("--attempt-delay 1h", "--attempt-delay must be at most"),
            ("--head-start 1h", "--head-start must be at most"),
        ] {
            let failure = policy_of(&format!("eyas {line}")).expect_err(line);
            assert!(failure.message.starts_with(expected), "{line}: {failure}");
            assert_eq!(failure.kind, FailureKind::Usage);
        }
    }

    #[test]
    fn second_tries_are_made_unless_disabled() {
        let tries = |line: &str| policy_of(line).map(|policy| policy.second_tries).ok();
        assert_eq!(tries("eyas"), Some(3));
        assert_eq!(tries("eyas --second-tries 0"), Some(0));
        assert_eq!(tries("eyas --policy naive"), Some(0));
        assert_eq!(tries("eyas --policy serial"), Some(0));
        assert_eq!(tries("eyas --policy naive --second-tries 1"), Some(1));
        assert_eq!(tries("eyas --second-tries 9"), None, "more than a race allows");
    }
}
