//! The end that connects.

use std::path::PathBuf;
use std::time::Duration;

use eyas::race::evidence::FailureCause;
use eyas::race::io::RaceFailure;
use eyas::race::policy::Policy;
use eyas::race::target::{Target, TargetService};
use eyas::{
    ConnectError, Endpoint, KeyFingerprint, MemoryStore, SecurityParameters, ServerIdentity,
};
use eyas_relay::destination::Destination;
use eyas_tunnel::SessionLimits;
use eyas_tunnel::keys::{HostName, KnownHosts};
use eyas_tunnel::{
    ClientForwards, CurrentSessions, ProbingTimes, ServerProxy, ServerTunnel, TunnelClient,
    TunnelError, reach,
};
use tokio_util::sync::CancellationToken;

use super::{NoticePrinter, TunnelInfo, files, interface, proxied};
use crate::command::descriptors::raise_limit;
use crate::command::interruption::InterruptionSignals;
use crate::command::pipe::bytes;
use crate::command::{setting, target};
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, TunnelFlags};

/// How long the end of a session with `--stdio` may take: normally, with the time for the last data to arrive
/// (`SessionLimits::drain`), and after an interruption.
const END_TIME: (Duration, Duration) = (Duration::from_secs(7), Duration::from_secs(1));

/// The server, our identity, and what is known about the server.
struct ClientSetup<'a> {
    flags: &'a TunnelFlags,
    identity: ServerIdentity,
    target: Target,
    policy: Policy,
    memory: MemoryStore,
    /// The proxy between, if there is one.
    proxy: Option<ServerProxy>,
    host: HostName,
    known: KnownServerKey,
}

/// What is known about the server's key.
struct KnownServerKey {
    file: PathBuf,
    /// The keys that it may have, and the lines of the file that contain them.
    keys: Vec<(KeyFingerprint, usize)>,
}

pub(super) async fn run(flags: &TunnelFlags, common: &CommonFlags) -> Result<(), Failure> {
    let mut interruption = crate::command::listen()?;
    let printer = NoticePrinter::new(common);
    // Each program that connects needs one.
    raise_limit();
    let setup = ClientSetup::read(flags)?;
    let interface = interface::create(&flags.tun, printer)?;
    let connected = tokio::select! {
        connected = setup.connect(printer) => connected?,
        kind = interruption.next() => return Err(Failure::new(kind, "interrupted")),
    };
    let (tunnel, endpoint) = connected;
    if let Some(to) = &flags.stdio {
        let sessions = CurrentSessions::default();
        let _presence = tunnel.enter(&sessions, setup.host.to_string());
        let _shown = super::publish_status(setup.info(), sessions, printer).await;
        return stdio((tunnel, &endpoint), to.clone(), &mut interruption).await;
    }
    let forwards = ClientForwards {
        local: flags.local.clone(),
        remote: flags.remote.clone(),
        dynamic: flags.dynamic.clone(),
        interface: interface.clone(),
    };
    let race_target = (setup.target.clone(), setup.policy.clone());
    let print = move |notice| printer.print(&notice);
    let client = TunnelClient::new(endpoint, race_target, forwards, ProbingTimes::default(), print);
    let mut client = client.map_err(|error| setup.failure(error))?;
    if let Some(proxy) = &setup.proxy {
        client = client.proxy(proxy.clone());
    }
    let mut info = setup.info();
    info.forwards.extend(interface.iter().map(|device| interface::description(device.config())));
    let _shown = super::publish_status(info, client.sessions(), printer).await;
    let stop = CancellationToken::new();
    let running = client.run(tunnel, stop.clone());
    tokio::pin!(running);
    let done = tokio::select! {
        done = &mut running => done,
        failure = interface::until_removed(interface.as_ref()) => return Err(failure),
        _ = interruption.next() => {
            stop.cancel();
            tokio::select! {
                done = running => done,
                _ = interruption.next() => Ok(()),
            }
        }
    };
    done.map_err(|error| setup.failure(error))
}

/// Connects standard input and output to a destination until both sides are done or it is interrupted, and ends the
/// session in either case: the server would otherwise keep it until it has been silent for long. ssh ends its
/// ProxyCommand with SIGHUP.
async fn stdio(
    (tunnel, endpoint): (ServerTunnel, &Endpoint),
    to: Destination,
    interruption: &mut InterruptionSignals,
) -> Result<(), Failure> {
    let transfer = async {
        let channel = tunnel.open(to).await.map_err(|error| tunnel_failure(&error))?;
        bytes::both_ways(channel).await.map(drop)
    };
    let (done, time) = tokio::select! {
        done = transfer => (done, END_TIME.0),
        kind = interruption.next() => (Err(Failure::new(kind, "interrupted")), END_TIME.1),
    };
    let ending = async {
        tunnel.end().await;
        endpoint.connections_ended().await;
    };
    tokio::select! {
        // A server that does not get the end notices the silence.
        _ = tokio::time::timeout(time, ending) => {}
        _ = interruption.next() => {}
    }
    done
}

impl<'a> ClientSetup<'a> {
    fn read(flags: &'a TunnelFlags) -> Result<Self, Failure> {
        let Some(host) = &flags.host else {
            return Err(Failure::new(FailureKind::Usage, "the server is missing"));
        };
        if flags.stdio.is_none()
            && flags.local.is_empty()
            && flags.remote.is_empty()
            && flags.dynamic.is_empty()
            && flags.tun.tun.is_none()
        {
            return Err(Failure::new(FailureKind::Usage, "there is nothing to forward")
                .hint("use -L, -R, -D, --stdio or --tun"));
        }
        let target = target::for_tunnel(host)?;
        let name = HostName::new(target.host.clone(), target.port);
        let key = files::path_or_default(flags.key.key.as_deref(), "key.pem")?;
        let identity = files::read_key(&key)?.ok_or_else(|| {
            Failure::new(FailureKind::Identity, format!("there is no key in {}", key.display()))
                .hint("'eyas tunnel keygen' generates one")
        })?;
        let file = files::path_or_default(flags.known_hosts.as_deref(), "known_hosts")?;
        let hosts = KnownHosts::parse(&files::read_text(&file)?)
            .map_err(|cause| files::unusable(&file, &cause))?;
        let keys = match flags.host_key {
            Some(key) => vec![(key, 0)],
            None => hosts.keys(&name),
        };
        if keys.is_empty() && flags.strict {
            let text = format!("{name} is unknown: {} has no key of it", file.display());
            return Err(Failure::new(FailureKind::Certificate, text)
                .hint("give its key with --host-key, or omit --strict once"));
        }
        let mut policy = Policy { late_switch: false, ..Policy::default() };
        if let TargetService::Plain { transports, .. } = &target.service {
            policy.transports.clone_from(transports);
        }
        policy.only_family = setting::only_family(&flags.reach);
        let limits = [flags.reach.connect_timeout(), flags.reach.max_time()];
        policy.deadline = limits.into_iter().flatten().min().unwrap_or(policy.deadline);
        let policy = policy.validated().map_err(|cause| setting::refused_policy(&cause))?;
        let memory = setting::memory(flags.memory.as_ref(), None);
        let proxy = proxied::proxy(flags, &target, memory.clone())?;
        let known = KnownServerKey { file, keys };
        Ok(Self { flags, identity, target, policy, memory, proxy, host: name, known })
    }

    fn info(&self) -> TunnelInfo {
        let flags = self.flags;
        let local = flags
            .local
            .iter()
            .map(|forward| format!("{} leads to {} at the server", forward.at, forward.to));
        let remote = flags
            .remote
            .iter()
            .map(|forward| format!("{} at the server leads to {}", forward.at, forward.to));
        let dynamic = flags
            .dynamic
            .iter()
            .map(|at| format!("{at} leads to destinations that SOCKS clients choose"));
        let stdio =
            flags.stdio.iter().map(|to| format!("standard input leads to {to} at the server"));
        let forwards = local.chain(remote).chain(dynamic).chain(stdio).collect();
        TunnelInfo { role: "client", name: self.host.to_string(), forwards }
    }

    /// Returns an endpoint that connects to servers with one of these keys; if there are none, to
    /// any server, for a first contact.
    async fn endpoint(&self, keys: &[KeyFingerprint]) -> Result<Endpoint, Failure> {
        let security = SecurityParameters::platform()
            .with_client_certificate(self.identity.chain().to_vec(), self.identity.private_key())
            .require_post_quantum()
            .without_resumption();
        let security = match keys {
            [] => security.accept_any_certificate(),
            keys => security.with_pinned_keys(keys.iter().copied()),
        };
        let builder = Endpoint::builder()
            .security(security)
            .memory(self.memory.clone())
            .sctp_association(super::association(&self.flags.paths))
            .sctp_local_addresses(self.flags.paths.local_address.iter().copied());
        let builder = setting::with_reach(builder, &self.flags.reach, &self.target).await?;
        builder.build().map_err(|cause| Failure::new(FailureKind::Identity, cause.to_string()))
    }

    /// Opens a session with the server, and returns it with the endpoint for later sessions. The
    /// key of an unknown server is saved once it has accepted us.
    async fn connect(&self, printer: NoticePrinter) -> Result<(ServerTunnel, Endpoint), Failure> {
        let keys: Vec<_> = self.known.keys.iter().map(|(key, _)| *key).collect();
        for warning in self.memory.warnings() {
            printer.warn("memory", warning);
        }
        let endpoint = self.endpoint(&keys).await?;
        let reached = reach(&endpoint, &self.target, &self.policy, self.proxy.as_ref()).await;
        let (carrier, key) = reached.map_err(|error| self.failure(error))?;
        let carrier_name = carrier.to_string();
        let session = ServerTunnel::begin(carrier, SessionLimits::default()).await;
        let tunnel = session.map_err(|error| self.failure(error))?;
        if keys.is_empty() {
            files::append(&self.known.file, &self.host.line(&key))?;
            let file = self.known.file.display();
            let text = format!("{} is a new server: its key {key} was saved in {file}", self.host);
            printer.warn("first-meeting", text);
        }
        if self.flags.stdio.is_none() {
            printer.info("connected", format!("connected over {carrier_name}"));
        }
        let endpoint = match keys.is_empty() {
            true => self.endpoint(&[key]).await?,
            false => endpoint,
        };
        Ok((tunnel, endpoint))
    }

    fn failure(&self, error: TunnelError) -> Failure {
        if let Some(rejected) = error.rejected_key() {
            return self.key_mismatch(&rejected.detail);
        }
        match &error {
            TunnelError::Proxy { fault, .. } => {
                let step = proxied::next_step(*fault, self.target.port);
                tunnel_failure(&error).hint(step)
            }
            TunnelError::NotAccepted(_) => {
                let identity = files::fingerprint(&self.identity).map(|key| key.to_string());
                let hint = format!(
                    "the server's authorized_keys must contain this line: {}",
                    identity.unwrap_or_default()
                );
                tunnel_failure(&error).hint(hint)
            }
            error => tunnel_failure(error),
        }
    }

    /// Returns the failure if the server has another key than the known one.
    fn key_mismatch(&self, what: &str) -> Failure {
        let (host, file) = (&self.host, self.known.file.display());
        let text = format!("the key of {host} differs from the known one: {what}");
        let known = self.known.keys.first().map(|(_, line)| *line).unwrap_or_default();
        let hint = match known {
            0 => "someone may be intercepting the connection, or --host-key is wrong".to_owned(),
            line => format!(
                "someone may be intercepting the connection; if you know that the key has changed, remove \
                 line {line} of {file}"
            ),
        };
        Failure::new(FailureKind::Certificate, text).hint(hint)
    }
}

fn tunnel_failure(error: &TunnelError) -> Failure {
    let kind = match error {
        TunnelError::Connect(cause) => race_failure_kind(cause),
        TunnelError::Proxy { fault, .. } => proxied::kind(*fault),
        TunnelError::Handshake(_) => FailureKind::Tls,
        TunnelError::NoKey | TunnelError::NotAccepted(_) => FailureKind::Identity,
        TunnelError::Listen(..) => FailureKind::Listen,
        TunnelError::Refused { .. } => FailureKind::Connect,
        _ => FailureKind::Protocol,
    };
    Failure::new(kind, error.to_string())
}

fn race_failure_kind(error: &ConnectError) -> FailureKind {
    match error.failure() {
        RaceFailure::NoAddress(_) => FailureKind::Dns,
        RaceFailure::Deadline(_) => FailureKind::Timeout,
        _ => match error.cause() {
            Some(FailureCause::Certificate) => FailureKind::Certificate,
            Some(FailureCause::Tls) => FailureKind::Tls,
            Some(FailureCause::Silent) => FailureKind::Timeout,
            _ => FailureKind::Connect,
        },
    }
}
