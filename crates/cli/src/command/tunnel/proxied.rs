//! The proxy through which the server is reached, where there is one.

use eyas::race::candidate::Transport;
use eyas::race::target::{Target, TargetHost, TargetService};
use eyas::{Endpoint, MemoryStore, SecurityParameters};
use eyas_relay::destination::Destination;
use eyas_relay::via::UpstreamProxy;
use eyas_tunnel::{ProxyFault, ServerProxy};

use crate::command::setting;
use crate::failure::{Failure, FailureKind};
use crate::flags::TunnelFlags;

/// How to do without a proxy.
const DIRECTLY: &str = "--noproxy '*' reaches the server directly";

/// Returns the proxy of `--proxy`, or otherwise that of the environment, unless the server is an exception.
pub(super) fn proxy(
    flags: &TunnelFlags,
    target: &Target,
    memory: MemoryStore,
) -> Result<Option<ServerProxy>, Failure> {
    let proxy = setting::proxy(flags.proxy.as_deref(), flags.noproxy.as_deref())?;
    let url = proxy.url_for(&target.host.to_string(), target.port);
    let unusable = |cause: String| Failure::new(FailureKind::Usage, cause).hint(DIRECTLY);
    let url = url.map_err(|error| unusable(error.detail().to_owned()))?;
    let Some(url) = url else { return Ok(None) };
    let via = UpstreamProxy::parse(&url).map_err(|cause| {
        // Not the URL, which may have a password.
        unusable(format!("the proxy of --proxy or the environment cannot be used: {cause}"))
    })?;
    if flags.paths.multipath.is_some() {
        let text = format!("--multipath requires SCTP, which does not go through the proxy {via}");
        return Err(unusable(text));
    }
    if let TargetService::Plain { transports, .. } = &target.service
        && !transports.contains(&Transport::Tcp)
    {
        let names: Vec<String> = transports.iter().map(ToString::to_string).collect();
        let text =
            format!("{} does not go through the proxy {via}: only tcp does", names.join(", "));
        return Err(unusable(text));
    }
    let mut security = SecurityParameters::platform();
    if let Some(path) = &flags.proxy_cacert {
        security = security.with_roots(setting::roots(path)?);
    }
    let reach = &flags.reach;
    let resolver = setting::resolver(&reach.name_server, &reach.resolve)?;
    let endpoint = Endpoint::builder().security(security).memory(memory).resolver(resolver);
    let endpoint =
        endpoint.build().map_err(|cause| Failure::new(FailureKind::Identity, cause.to_string()))?;
    let server = destination(flags, target)?;
    Ok(Some(ServerProxy::new(via, endpoint, server)))
}

/// Returns what the proxy is asked to connect to.
fn destination(flags: &TunnelFlags, target: &Target) -> Result<Destination, Failure> {
    let mut server = Destination::new(target.host.clone(), target.port);
    server.absolute = target.absolute;
    if let Some(rule) = setting::rule_for(&flags.reach, target) {
        server.port = rule.to_port.unwrap_or(target.port);
        if let Some(host) = &rule.to_host {
            let parsed = TargetHost::parse(host).map_err(|cause| {
                Failure::new(FailureKind::Usage, format!("--connect-to {host}: {cause}"))
            })?;
            (server.host, server.absolute) = (parsed, host.ends_with('.'));
        }
    }
    Ok(server)
}

/// Returns the kind of failure.
pub(super) const fn kind(fault: ProxyFault) -> FailureKind {
    match fault {
        ProxyFault::NoAddress => FailureKind::Dns,
        ProxyFault::TimedOut => FailureKind::Timeout,
        ProxyFault::Protocol => FailureKind::Protocol,
        ProxyFault::Tls => FailureKind::Tls,
        ProxyFault::Certificate => FailureKind::Certificate,
        _ => FailureKind::Connect,
    }
}

/// Returns the next step, for a server at this port.
pub(super) fn next_step(fault: ProxyFault, port: u16) -> String {
    match fault {
        ProxyFault::Certificate => {
            "--proxy-cacert FILE trusts another certificate or CA".to_owned()
        }
        ProxyFault::NotAllowed => format!(
            "have it allow CONNECT to port {port}, or let the server listen on 443, which most proxies \
             allow"
        ),
        _ => format!("--proxy URL or https_proxy sets a proxy; {DIRECTLY}"),
    }
}
