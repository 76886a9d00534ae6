//! `eyas proxy`: a SOCKS and HTTP proxy that races to each destination.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | the proxy, and the report of its address |
//! | `run` | a command with its own proxy |
//! | `bypass` | programs that connect past it |
//! | `enclosed` | a command in its own network namespace |
//! | `lines` | a line for each connection |

mod bypass;
#[cfg(target_os = "linux")]
mod enclosed;
mod lines;
mod run;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use eyas::race::candidate::{AddressFamily, Transport};
use eyas::race::policy::Policy;
use eyas::{Endpoint, SecurityParameters};
use eyas_http::serve::{ClientCertificates, SctpService, ServeError};
use eyas_proxy::users::ProxyUsers;
use eyas_proxy::{Proxy, ProxyBuilder, ProxyError, ProxyLimits, RunningProxy};
use eyas_relay::rules::DestinationRules;
use serde_json::json;
use tokio::runtime::Handle;

use self::lines::{OutputStream, ReportLines};
use super::core_runtimes::on_every_core;
use super::descriptors::DescriptorShares;
use super::service::{self, PassedSockets, RunningService, ServiceEvent};
use super::{identity, ownership, setting};
use crate::failure::{Failure, FailureKind};
use crate::flags::{
    CommonFlags, ListenAddresses, ProxyAction, ProxyDestinationFlags, ProxyFlags, ProxyRunFlags,
};
use crate::output;
use crate::private_file;
use crate::terminal::{OutputStyle, Paint, PaintedLine};

/// The port at loopback that is served without `--listen`.
const DEFAULT_PORT: u16 = 1080;

/// Serves until Ctrl-C, or until a command has ended.
pub(super) fn run(flags: &ProxyFlags, common: &CommonFlags) -> Result<ExitCode, Failure> {
    match &flags.action {
        Some(ProxyAction::Run(flags)) => {
            let preparation = NamespacePreparation::runtime(flags)?;
            super::on_runtime(run::run(flags, common, preparation))
        }
        // Several threads share the cryptography of one client's streams.
        None if flags.tls_cert.is_some() || !cfg!(unix) => {
            super::on_runtime(serve(flags, common, Vec::new())).map(|()| ExitCode::SUCCESS)
        }
        None => on_every_core(|others| serve(flags, common, others)).map(|()| ExitCode::SUCCESS),
    }
}

/// What has to be prepared before a second thread is started, for a command in its own namespace.
struct NamespacePreparation {
    #[cfg(target_os = "linux")]
    former: Option<eyas_emulator::OriginalUser>,
}

#[cfg(target_os = "linux")]
impl NamespacePreparation {
    fn runtime(flags: &ProxyRunFlags) -> Result<Self, Failure> {
        let former = if flags.all_traffic { enclosed::become_root()? } else { None };
        Ok(Self { former })
    }

    /// Starts the command, which ends when the returned value is dropped.
    fn spawn(
        &self,
        running: &RunningProxy,
        command: std::process::Command,
        host_ports: &[u16],
    ) -> Result<(eyas_emulator::Enclosure, tokio::process::Child), Failure> {
        enclosed::spawn(running, command, self.former, host_ports)
    }
}

#[cfg(not(target_os = "linux"))]
use super::absent;

/// A network of the command's own, of which there is none here.
#[cfg(not(target_os = "linux"))]
enum Enclosure {}

#[cfg(not(target_os = "linux"))]
impl NamespacePreparation {
    fn runtime(flags: &ProxyRunFlags) -> Result<Self, Failure> {
        match flags.all_traffic {
            false => Ok(Self {}),
            true => Err(absent::failure("eyas proxy run --all-traffic", absent::NAMESPACES)
                .hint("without --all-traffic the command finds the proxy by its environment")),
        }
    }

    fn spawn(
        &self,
        _: &RunningProxy,
        _: std::process::Command,
        _: &[u16],
    ) -> Result<(Enclosure, tokio::process::Child), Failure> {
        Err(absent::failure("eyas proxy run --all-traffic", absent::NAMESPACES))
    }
}

/// Serves until it is told to stop, and clients also on these runtimes.
async fn serve(
    flags: &ProxyFlags,
    common: &CommonFlags,
    runtimes: Vec<Handle>,
) -> Result<(), Failure> {
    // Set up before the proxy announces itself, so that no early signal is missed.
    let mut service = RunningService::begin(common.color)?;
    let tls = [&flags.tls_cert, &flags.tls_key, &flags.passphrase.pass_file, &flags.client_ca];
    service.watch(flags.users.iter().chain(tls.into_iter().flatten()).cloned());
    let limits = ProxyLimits {
        connections: flags.max_connections as usize,
        connections_per_client: flags.max_per_client as usize,
        connections_per_user: (flags.max_connections as usize).div_ceil(2),
        ..limits(&flags.destinations)
    };
    let descriptors = DescriptorShares::raised();
    let wanted = limits.connections;
    let limits = limits.within(descriptors.of_clients);
    if let Some(text) = DescriptorShares::lowered(wanted, limits.connections, "clients") {
        print_to_stderr(common, Paint::Warn, &format!("eyas: {text}"));
    }
    let lines = ReportLines::start(&flags.destinations, common, OutputStream::Stdout)?;
    let mut builder =
        lines.attach_to(builder(&flags.destinations, common, descriptors)?.limits(limits));
    builder = builder.also_on(runtimes);
    for address in ListenAddresses::or_loopback(&flags.listen, DEFAULT_PORT) {
        builder = builder.listen(address);
    }
    if let Some(path) = &flags.users {
        builder = builder.users(users(path, common)?);
    }
    if let (Some(cert), Some(key)) = (&flags.tls_cert, &flags.tls_key) {
        builder = builder.security(identity::from_files(cert, key, &flags.passphrase)?);
    }
    if let Some(path) = &flags.client_ca {
        builder = builder.client_certificates(clients(path)?);
    }
    if flags.sctp {
        let mut sctp = SctpService::default();
        sctp.optional = true;
        builder = builder.sctp(sctp);
    }
    if let Some(address) = flags.metrics {
        builder = builder.metrics(address);
    }
    let started = match service::sockets()? {
        Some(_) if !flags.listen.is_empty() => return Err(service::listens_twice()),
        Some(PassedSockets(sockets)) => builder.start_on(sockets),
        None => builder.start(),
    };
    let running = started.map_err(|cause| failure(&cause))?;
    announce(flags, common, &running)?;
    until_stopped(&mut service, flags, common, &running).await;
    if !common.json {
        print_to_stderr(common, Paint::Dim, "stopping once the connections have ended");
    }
    tokio::select! {
        _ = running.shutdown() => {}
        () = service.stopped_again() => {}
    }
    lines.finish();
    Ok(())
}

/// Loads files again whenever it is told to or they have changed, until the proxy is to stop.
async fn until_stopped(
    service: &mut RunningService,
    flags: &ProxyFlags,
    common: &CommonFlags,
    running: &RunningProxy,
) {
    let addresses: Vec<String> = running.local_addrs().iter().map(SocketAddr::to_string).collect();
    let status = format!("proxy on {}", addresses.join(", "));
    loop {
        service.ready(&status);
        if service.next().await == ServiceEvent::Stop {
            return;
        }
        if let Some(path) = &flags.users {
            let loaded = users(path, common).map(|users| running.replace_users(users));
            service.report(loaded.map(|()| format!("loaded {}", path.display())));
        }
        if let (Some(cert), Some(key)) = (&flags.tls_cert, &flags.tls_key) {
            let loaded = identity::from_files(cert, key, &flags.passphrase);
            let replaced = loaded.and_then(|identity| {
                running.replace_identity(&identity).map_err(|cause| failure(&cause))
            });
            service.report(replaced.map(|()| format!("loaded {}", cert.display())));
        }
        if let Some(path) = &flags.client_ca {
            let replaced = clients(path).and_then(|clients| {
                running.replace_client_certificates(&clients).map_err(|cause| failure(&cause))
            });
            service.report(replaced.map(|()| format!("loaded {}", path.display())));
        }
    }
}

/// Returns a proxy configured by these flags.
fn builder(
    options: &ProxyDestinationFlags,
    common: &CommonFlags,
    descriptors: DescriptorShares,
) -> Result<ProxyBuilder, Failure> {
    let memory = setting::memory(options.memory.as_ref(), None);
    let resolver = setting::resolver(&options.name_server, &options.resolve)?;
    let mut security = SecurityParameters::platform();
    if let Some(path) = &options.via_cacert {
        security = security.with_roots(setting::roots(path)?);
    }
    let endpoint = Endpoint::builder()
        .security(security)
        .memory(memory)
        .resolver(resolver)
        .max_attempts_in_flight(descriptors.of_attempts)
        .build()
        .map_err(|cause| Failure::new(FailureKind::Identity, cause.to_string()))?;
    for warning in endpoint.memory().warnings() {
        print_to_stderr(common, Paint::Warn, &format!("eyas: memory: {warning}"));
    }
    let mut policy = Policy { transports: vec![Transport::Tcp], ..Policy::default() };
    if options.mptcp {
        policy.transports.insert(0, Transport::Mptcp);
    }
    policy.only_family = match (options.ipv4, options.ipv6) {
        (true, _) => Some(AddressFamily::V4),
        (false, true) => Some(AddressFamily::V6),
        (false, false) => None,
    };
    policy.deadline = options.connect_timeout;
    let policy = policy.validated().map_err(|cause| setting::refused_policy(&cause))?;
    let (allow, deny) = (options.allow.clone(), options.deny.clone());
    let rules = DestinationRules { allow, deny, ..DestinationRules::default() };
    let color = common.color;
    let builder = Proxy::builder(endpoint).policy(policy).rules(rules).limits(limits(options));
    let builder = builder.notices(move |text| output::notice(color, text));
    Ok(match &options.via {
        Some(via) => builder.via(via.clone().sctp(options.via_sctp)),
        None => builder,
    })
}

fn limits(options: &ProxyDestinationFlags) -> ProxyLimits {
    ProxyLimits {
        connect_time: options.connect_timeout,
        idle_time: options.idle_time,
        ..ProxyLimits::default()
    }
}

/// Reads the authorities that issue certificates to clients.
fn clients(path: &Path) -> Result<ClientCertificates, Failure> {
    setting::roots(path).map(ClientCertificates::required)
}

fn users(path: &Path, common: &CommonFlags) -> Result<ProxyUsers, Failure> {
    let file = path.display().to_string();
    fs::metadata(path).map_err(|cause| Failure::read(&file, &cause))?;
    // Before it is read, which waits for a pipe.
    ownership::check(path)?;
    let text = ownership::read_to_string(path).map_err(|cause| Failure::read(&file, &cause))?;
    if fs::metadata(path).is_ok_and(|found| private_file::is_open_to_others(&found)) {
        let text = format!("eyas: others can read the passwords in {file}: chmod 600 {file}");
        print_to_stderr(common, Paint::Warn, &text);
    }
    ProxyUsers::parse(&text)
        .map_err(|cause| Failure::new(FailureKind::Usage, format!("{file}: {cause}")))
}

fn failure(cause: &ProxyError) -> Failure {
    match cause {
        ProxyError::Serve(cause @ (ServeError::Identity(_) | ServeError::ClientRoots(_))) => {
            Failure::new(FailureKind::Identity, cause.to_string())
        }
        ProxyError::Open(address) => {
            let text =
                format!("{address} can be reached from other machines: anyone could use the proxy");
            Failure::new(FailureKind::Usage, text).hint(
                "list users with --users FILE (NAME:PASSWORD, one per line), require certificates with --client-ca, or listen on 127.0.0.1",
            )
        }
        _ => Failure::new(FailureKind::Listen, cause.to_string()),
    }
}

fn print_to_stderr(common: &CommonFlags, paint: Paint, text: &str) {
    output::print_to_stderr(
        &[PaintedLine::new().with_span(paint, text)],
        OutputStyle::of_stderr(common.color),
    );
}

/// Reports the address of the proxy once it is listening.
fn announce(
    flags: &ProxyFlags,
    common: &CommonFlags,
    running: &RunningProxy,
) -> Result<(), Failure> {
    let addresses: Vec<String> = running.local_addrs().iter().map(SocketAddr::to_string).collect();
    let metrics = running.metrics_addr().map(|address| format!("http://{address}/metrics"));
    if common.json {
        return lines::object(&json!({
            "address": addresses[0],
            "addresses": addresses,
            "users": flags.users.is_some(),
            "tls": flags.tls_cert.is_some(),
            "metrics": metrics,
        }));
    }
    let mut lines = vec![
        PaintedLine::new()
            .with_span(Paint::Good, "proxy on ")
            .with_span(Paint::Head, addresses.join(", ")),
    ];
    let mut add_row = |what: &str, paint: Paint, value: String| {
        let label = format!("  {what:<12}");
        lines.push(PaintedLine::new().with_span(Paint::Dim, label).with_span(paint, value));
    };
    let protocols = match flags.tls_cert.is_some() {
        true => {
            "SOCKS5, SOCKS4a, HTTP CONNECT, CONNECT-UDP and HTTP, all over TLS; CONNECT and CONNECT-UDP over HTTP/2 and HTTP/3"
        }
        false => "SOCKS5 with UDP, SOCKS4a, HTTP CONNECT, CONNECT-UDP and HTTP",
    };
    add_row("speaks", Paint::Plain, protocols.to_owned());
    if let Some(via) = &flags.destinations.via {
        add_row("through", Paint::Plain, via.to_string());
    }
    if let Some(path) = &flags.users {
        add_row("users", Paint::Plain, path.display().to_string());
    }
    if let Some(path) = &flags.client_ca {
        add_row("clients of", Paint::Plain, path.display().to_string());
    }
    if let Some(url) = metrics {
        add_row("metrics", Paint::Plain, url);
    }
    let user_info = if flags.users.is_some() { "NAME:PASSWORD@" } else { "" };
    let scheme = if flags.tls_cert.is_some() { "https" } else { "socks5h" };
    let command = format!("curl -x {scheme}://{user_info}{} https://example.org/", addresses[0]);
    add_row("try", Paint::Command, command);
    output::page(&lines, OutputStyle::of_stdout(common.color))
}
