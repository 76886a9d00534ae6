//! From the flags to connections and requests.

use std::time::Duration;

use eyas::race::candidate::{Security, Transport};
use eyas::race::policy::{Policy, SctpSecurity};
use eyas::race::target::{Target, TargetService};
use eyas::{Connection, Endpoint, MemoryStore};
use eyas_perf::ALPN;
use eyas_perf::client::TestConnector;
use eyas_perf::protocol::request::{RequestError, TestDirection, TestRequest};
use eyas_sctp_tokio::protocol::config::AssociationConfig;

use crate::command::{setting, target};
use crate::failure::{Failure, FailureKind};
use crate::flags::PerfFlags;
use crate::race_report::ReplayedRace;

/// How long a transport is tried: enough for two retransmissions.
const DEADLINE: Duration = Duration::from_secs(8);
/// How long the last packets may take to be sent.
const END_TIME: Duration = Duration::from_millis(300);

/// A transport, with the security layer that it has if it is SCTP over UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SecuredTransport {
    pub(super) transport: Transport,
    sctp_security: SctpSecurity,
}

/// What all tests of a run have in common.
pub(super) struct PerfSetup {
    endpoint: Endpoint,
    target: Target,
    policy: Policy,
    /// The target as it was given.
    pub(super) name: String,
    pub(super) transports: Vec<SecuredTransport>,
    pub(super) directions: Vec<TestDirection>,
    /// The request, of any direction.
    pub(super) request: TestRequest,
    pub(super) idle: Duration,
}

impl PerfSetup {
    pub(super) async fn new(flags: &PerfFlags) -> Result<Self, Failure> {
        let name = flags.target.clone().unwrap_or_default();
        let mut target = target::for_perf(&name, flags.plain)?;
        let request = request(flags)?;
        let transports = transports(flags, &target)?;
        // Nothing is remembered: each transport is tried, whatever is known.
        let builder = Endpoint::builder()
            .security(setting::security(&flags.trust)?)
            .memory(MemoryStore::none())
            .sctp_association(setting::association(AssociationConfig::default(), &flags.paths))
            .sctp_local_addresses(flags.paths.local_address.iter().copied());
        let endpoint = setting::with_reach(builder, &flags.reach, &target)
            .await?
            .build()
            .map_err(|cause| Failure::new(FailureKind::Identity, cause.to_string()))?;
        if target.security != Security::None {
            target = target.with_alpn([ALPN]);
        }
        let mut policy = Policy {
            only_family: setting::only_family(&flags.reach),
            deadline: flags.reach.connect_timeout().unwrap_or(DEADLINE),
            ..Policy::default()
        };
        policy = policy.validated().map_err(|cause| setting::refused_policy(&cause))?;
        let directions = match (flags.test.reverse, flags.test.both, flags.test.bidir) {
            (true, ..) => vec![TestDirection::Down],
            (_, true, _) => vec![TestDirection::Up, TestDirection::Down],
            (.., true) => vec![TestDirection::AtOnce],
            _ => vec![TestDirection::Up],
        };
        let idle = flags.test.idle;
        Ok(Self { endpoint, target, policy, name, transports, directions, request, idle })
    }

    /// Connects over one transport.
    pub(super) async fn connect(&self, over: SecuredTransport) -> Result<Connection, Failure> {
        let SecuredTransport { transport, sctp_security } = over;
        let mut target = self.target.clone();
        if let TargetService::Plain { transports, .. } = &mut target.service {
            *transports = vec![transport];
        }
        let mut policy = self.policy.clone();
        policy.transports = vec![transport];
        policy.sctp_security = sctp_security;
        let mut initiation = self.endpoint.preconnection(target).policy(policy).initiate();
        match initiation.usable().await {
            Ok(connection) if connection.info().fell_back => {
                let text = "the server or the path does not support MPTCP: it fell back to TCP";
                Err(Failure::new(FailureKind::Connect, text))
            }
            Ok(connection) => Ok(connection),
            Err(error) => {
                let report = ReplayedRace::from_trace(initiation.trace())?;
                // The attempts are those of one transport, which its row shows.
                let failure = report.failure().map(|mut failure| {
                    failure.details.clear();
                    failure
                });
                Err(failure
                    .unwrap_or_else(|| Failure::new(FailureKind::Connect, error.to_string())))
            }
        }
    }

    /// Lets the server know that all tests are over.
    pub(super) async fn end(&self) {
        let _ = tokio::time::timeout(END_TIME, self.endpoint.connections_ended()).await;
    }

    /// Returns what opens further connections.
    pub(super) fn connector(&self) -> TestConnector {
        TestConnector { endpoint: self.endpoint.clone(), host: self.target.host.clone() }
    }
}

fn request(flags: &PerfFlags) -> Result<TestRequest, Failure> {
    let test = &flags.test;
    let whole = |time: Duration| Duration::from_micros(time.as_micros() as u64);
    let request = TestRequest {
        direction: TestDirection::Up,
        streams: test.streams,
        time: whole(test.time),
        omit: whole(test.omit),
        interval: whole(test.interval),
        count: test.count.unwrap_or(0),
        size: test.size,
        rate: test.rate.unwrap_or(0),
    };
    request.validated().map_err(|cause| {
        let flags = match cause {
            RequestError::Streams => "-P",
            RequestError::Size => "--size",
            RequestError::Time => "-t and -O",
            RequestError::Interval => "-i",
        };
        Failure::new(FailureKind::Usage, format!("{flags}: {cause}"))
    })
}

/// Returns the transports to measure: those of the flag, of the target, or all.
fn transports(flags: &PerfFlags, target: &Target) -> Result<Vec<SecuredTransport>, Failure> {
    let named = match &target.service {
        TargetService::Plain { transports, .. } => transports.as_slice(),
        _ => &[],
    };
    let wanted = match (flags.transport.is_empty(), named.is_empty()) {
        (false, _) => &flags.transport,
        (true, false) => named,
        (true, true) => &Transport::ALL[..],
    };
    let sctp_security = flags.sctp_security.into();
    let mut transports = Vec::new();
    for &transport in wanted {
        let is_possible = !(flags.plain && transport.has_own_security());
        if !is_possible && !flags.transport.is_empty() {
            let text = format!("{transport} has TLS built in, and --plain disables it");
            return Err(Failure::new(FailureKind::Usage, text));
        }
        let layers = match (transport, sctp_security) {
            (Transport::SctpUdp, SctpSecurity::Both) if !flags.plain => {
                vec![SctpSecurity::Tls, SctpSecurity::Dtls]
            }
            (_, SctpSecurity::Both) => vec![SctpSecurity::Tls],
            (_, one) => vec![one],
        };
        for sctp_security in layers.into_iter().filter(|_| is_possible) {
            let secured = SecuredTransport { transport, sctp_security };
            if !transports.contains(&secured) {
                transports.push(secured);
            }
        }
    }
    match transports.is_empty() {
        true => Err(Failure::new(FailureKind::Usage, "--plain leaves no transport")),
        false => Ok(transports),
    }
}
