//! `eyas serve`: HTTP/1.1, 2 and 3 on one port.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | the server, and the report of its address |
//! | `files` | certificates and keys, loaded again while it runs |
//! | `gateway` | another web server behind it |
//! | `log` | a line for each request |

mod files;
mod gateway;
mod log;

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use eyas_gateway::Gateway;
use eyas_http::Versions;
use eyas_http::serve::{
    AltSvcPolicy, Limits, Running, SctpService, ServeError, Server, ServerBuilder,
};
use eyas_sctp_tokio::{ENCAPSULATION_PORT, SctpListener};
use eyas_testserver::site::{Site, SiteError};
use serde_json::{Value, json};

use self::log::ServeLog;
use super::descriptors::DescriptorShares;
use super::identity;
use super::service::{self, PassedSockets, RunningService, ServiceEvent};
use crate::failure::{Failure, FailureKind};
use crate::flags::{ColorChoice, CommonFlags, ListenAddresses, ServeFlags};
use crate::output;
use crate::terminal::{OutputStyle, Paint, PaintedLine};

/// How long requests in flight may take to end after the first Ctrl-C.
const GRACE: Duration = Duration::from_secs(30);

/// The port at loopback that is served without `--listen`.
const DEFAULT_PORT: u16 = 8443;

/// Names that a generated certificate always contains.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Serves until Ctrl-C.
pub(crate) async fn run(flags: &ServeFlags, common: &CommonFlags) -> Result<(), Failure> {
    // Set up before the server announces itself, so that no early signal is missed.
    let mut service = RunningService::begin(common.color)?;
    service.watch(files::watched(flags));
    let color = common.color;
    let mut passed = service::sockets()?;
    let descriptors = DescriptorShares::raised();
    let mut builder = builder(flags, common, passed.as_ref())?;
    builder = builder.notices(move |text| output::notice(color, text)).limits(limits(
        flags,
        descriptors,
        color,
    ));
    let mut gateway = None;
    if let Some(upstream) = &flags.upstream {
        let configured = gateway::configure(builder, upstream, flags, (common, descriptors))?;
        (builder, gateway) = (configured.0, Some(configured.1));
    }
    let mut log = None;
    if let Some(path) = &flags.log {
        let opened = ServeLog::open(path, common, move |text| output::notice(color, text))?;
        builder = builder.access_log(opened.writer(flags.log_format));
        log = Some(opened);
    }
    let started = match passed.take() {
        Some(PassedSockets(sockets)) => builder.start_on(sockets),
        None => builder.start().await,
    };
    let running = started.map_err(|cause| failure(&cause))?;
    announce(flags, common, &running)?;
    let loading = (&running, gateway.as_ref(), log.as_ref());
    until_stopped(&mut service, flags, loading).await;
    if !common.json {
        let line =
            PaintedLine::new().with_span(Paint::Dim, "stopping once all requests are answered");
        output::print_to_stderr(&[line], OutputStyle::of_stderr(common.color));
    }
    tokio::select! {
        _ = running.shutdown(GRACE) => {}
        () = service.stopped_again() => {}
    }
    log.map_or(Ok(()), ServeLog::finish)
}

/// Loads files again whenever it is told to or they have changed, until the server is to stop.
async fn until_stopped(
    service: &mut RunningService,
    flags: &ServeFlags,
    (running, gateway, log): (&Running, Option<&Gateway>, Option<&ServeLog>),
) {
    let addresses = running.local_addrs().iter().map(SocketAddr::to_string);
    let status = format!("serving on {}", addresses.collect::<Vec<_>>().join(", "));
    loop {
        service.ready(&status);
        let event = service.next().await;
        if event == ServiceEvent::Stop {
            return;
        }
        for result in files::load(flags, running, gateway) {
            service.report(result);
        }
        // A log that was only renamed goes on until the signal.
        let reopened =
            (event == ServiceEvent::Reload).then(|| log.and_then(ServeLog::reopen)).flatten();
        if let Some(result) = reopened {
            service.report(result);
        }
    }
}

/// Returns limits for which there are enough descriptors, and tells if there are few.
fn limits(flags: &ServeFlags, descriptors: DescriptorShares, color: ColorChoice) -> Limits {
    let (wanted, limits) = match &flags.upstream {
        Some(_) => gateway::server_limits(flags, descriptors),
        None => {
            let wanted = Limits::default();
            (wanted.connections, wanted.within(descriptors.all()))
        }
    };
    if let Some(text) = DescriptorShares::lowered(wanted, limits.connections, "clients") {
        output::notice(color, text);
    }
    limits
}

fn builder(
    flags: &ServeFlags,
    common: &CommonFlags,
    passed: Option<&PassedSockets>,
) -> Result<ServerBuilder, Failure> {
    let mut versions = Versions { http3: !flags.no_h3 && !flags.plain, ..Versions::ALL };
    if let Some(passed) = passed {
        if !flags.listen.is_empty() {
            return Err(service::listens_twice());
        }
        versions.http3 &= passed.have_datagrams();
        versions.http1 &= passed.have_streams();
        versions.http2 &= passed.have_streams();
        if !(versions.http1 || versions.http2 || versions.http3) {
            return Err(service::serve_nothing());
        }
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut builder = Server::builder().versions(versions).mptcp(true).threads(threads);
    for address in ListenAddresses::or_loopback(&flags.listen, DEFAULT_PORT) {
        builder = builder.listen(address);
    }
    builder = builder.early_data(flags.early_data);
    if !flags.no_sctp {
        let mut sctp = SctpService::default();
        sctp.optional = flags.sctp_udp_port.is_none();
        sctp.encapsulation_port = flags.sctp_udp_port.or(sctp.encapsulation_port);
        builder = builder.sctp(sctp);
    }
    let identities = files::identities(flags)?;
    for warning in files::expired(flags, &identities) {
        output::notice(common.color, warning);
    }
    builder = match identities.is_empty() {
        _ if flags.plain => builder.plain(),
        false => builder.identities(identities),
        true => {
            let names = LOCAL_NAMES.map(str::to_owned).into_iter().chain(flags.names.clone());
            builder.tls(identity::generated(names, flags.save_cert.as_deref())?)
        }
    };
    if let Some(clients) = files::clients(flags)? {
        builder = builder.client_certificates(clients);
    }
    if !flags.accept_proxy_protocol.is_empty() {
        let balancers = flags.accept_proxy_protocol.clone();
        builder =
            builder.proxy_protocol(move |ip| balancers.iter().any(|network| network.contains(ip)));
    }
    builder = builder.service(site(flags)?);
    if let Some(address) = flags.metrics {
        builder = builder.metrics(address);
    }
    Ok(match flags.alt_svc.as_deref() {
        None => builder,
        Some("none") => builder.alt_svc(AltSvcPolicy::Off),
        Some(value) => {
            let field = value.parse().map_err(|_| {
                Failure::new(FailureKind::Usage, format!("{value:?} cannot be sent as a header"))
            })?;
            builder.alt_svc(AltSvcPolicy::Field(field))
        }
    })
}

/// Returns the site that is served if there is no upstream.
fn site(flags: &ServeFlags) -> Result<Site, Failure> {
    if flags.no_files || flags.upstream.is_some() {
        return Ok(Site::new());
    }
    Site::with_directory(&flags.directory).map_err(|cause| {
        let kind = match cause {
            SiteError::Directory { .. } => FailureKind::Read,
            _ => FailureKind::Usage,
        };
        Failure::new(kind, cause.to_string())
    })
}

fn failure(cause: &ServeError) -> Failure {
    let kind = match cause {
        ServeError::Bind { .. } | ServeError::Endpoint(_) | ServeError::Sctp { .. } => {
            FailureKind::Listen
        }
        ServeError::Identity(_) => FailureKind::Identity,
        _ => FailureKind::Usage,
    };
    Failure::new(kind, cause.to_string())
}

/// Returns the names of the versions that are served.
fn version_names(running: &Running) -> Vec<&'static str> {
    let Versions { http1, http2, http3 } = running.versions();
    let all = [(http1, "HTTP/1.1"), (http2, "HTTP/2"), (http3, "HTTP/3")];
    all.into_iter().filter(|(is_served, _)| *is_served).map(|(_, name)| name).collect()
}

/// Returns the URL for a browser on this machine.
fn url(scheme: &str, address: SocketAddr) -> String {
    match address.ip() {
        ip if ip.is_loopback() || ip.is_unspecified() => {
            format!("{scheme}://localhost:{}/", address.port())
        }
        // IPv6 addresses are in brackets (RFC 3986 §3.2.2).
        _ => format!("{scheme}://{address}/"),
    }
}

/// Reports where the server listens, once it does.
fn announce(flags: &ServeFlags, common: &CommonFlags, running: &Running) -> Result<(), Failure> {
    let (address, sctp) = (running.local_addr(), sctp(running));
    let url = url(if flags.plain { "http" } else { "https" }, address);
    if common.json {
        warn(common, running);
        return output::object(&object(flags, running, &url));
    }
    let style = OutputStyle::of_stdout(common.color);
    let mut lines = vec![
        PaintedLine::new()
            .with_span(Paint::Good, "serving ")
            .with_span(Paint::Head, &url)
            .with_span(Paint::Plain, format!("  {}", version_names(running).join(", "))),
    ];
    let mut add_row = |what: &str, value: String| {
        let label = format!("  {what:<12}");
        lines.push(PaintedLine::new().with_span(Paint::Dim, label).with_span(Paint::Plain, value));
    };
    let addresses: Vec<_> = running.local_addrs().iter().map(SocketAddr::to_string).collect();
    add_row("listening", addresses.join(", "));
    if !flags.no_sctp {
        add_row("SCTP", if sctp.is_empty() { "not served".to_owned() } else { sctp.join(", ") });
    }
    if let Some(upstream) = &flags.upstream {
        add_row("upstream", upstream.to_string());
    } else if !flags.no_files {
        add_row("files", flags.directory.display().to_string());
    }
    if let Some(url) = metrics(running) {
        add_row("metrics", url);
    }
    if flags.upstream.is_none() {
        add_row("also", "/bytes/N  /echo  /slow?ms=N".to_owned());
    }
    if let Some(path) = &flags.save_cert {
        add_row("certificate", path.display().to_string());
        let command =
            format!("eyas get -v{} --cacert {} {url}", client_flags(running), path.display());
        lines.push(
            PaintedLine::new()
                .with_span(Paint::Dim, "  try         ")
                .with_span(Paint::Command, command),
        );
    }
    warn(common, running);
    output::page(&lines, style)
}

/// Reports what is missing that was not requested explicitly, and how to get it.
fn warn(common: &CommonFlags, running: &Running) {
    let Some(why) = running.sctp_missing() else { return };
    let what = if running.sctp().is_none() { "no SCTP" } else { "no SCTP inside UDP" };
    let text = format!("{what}: {why}; --sctp-udp-port chooses another port, 0 a free one");
    output::notice(common.color, text);
}

/// Returns how clients find SCTP inside UDP, if it is not at its usual port.
fn client_flags(running: &Running) -> String {
    let port = running.sctp().and_then(SctpListener::encapsulation_port);
    let unusual = port.filter(|port| *port != ENCAPSULATION_PORT);
    unusual.map_or_else(String::new, |port| format!(" --sctp-udp-port {port}"))
}

fn metrics(running: &Running) -> Option<String> {
    running.metrics_addr().map(|address| format!("http://{address}/metrics"))
}

/// Describes how SCTP is served.
fn sctp(running: &Running) -> Vec<String> {
    let Some(listener) = running.sctp() else { return Vec::new() };
    let inside_udp = listener.encapsulation_port().map(|port| match port {
        ENCAPSULATION_PORT => format!("inside UDP port {port}"),
        _ => format!("inside UDP port {port} (clients: --sctp-udp-port {port})"),
    });
    let directly = listener.is_direct().then(|| "over IP".to_owned());
    directly.into_iter().chain(inside_udp).collect()
}

fn object(flags: &ServeFlags, running: &Running, url: &str) -> Value {
    let alt_svc = running.alt_svc().map(|field| String::from_utf8_lossy(field.as_bytes()));
    json!({
        "address": running.local_addr().to_string(),
        "addresses": running.local_addrs(),
        "url": url,
        "versions": version_names(running),
        "directory": (!flags.no_files && flags.upstream.is_none())
            .then(|| flags.directory.display().to_string()),
        "upstream": flags.upstream.as_ref().map(ToString::to_string),
        "certificate": flags.save_cert.as_ref().map(|path| path.display().to_string()),
        "alt_svc": alt_svc,
        "sctp_udp_port": running.sctp().and_then(|sctp| sctp.encapsulation_port()),
        "sctp_missing": running.sctp_missing(),
        "metrics": metrics(running),
        "sctp_directly": running.sctp().is_some_and(|sctp| sctp.is_direct()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_can_be_typed_into_a_browser() {
        for (address, wanted) in [
            ("127.0.0.1:8443", "https://localhost:8443/"),
            ("[::]:443", "https://localhost:443/"),
            ("192.0.2.1:8443", "https://192.0.2.1:8443/"),
            ("[2001:db8::1]:8443", "https://[2001:db8::1]:8443/"),
        ] {
            assert_eq!(url("https", address.parse().unwrap()), wanted);
        }
    }
}
