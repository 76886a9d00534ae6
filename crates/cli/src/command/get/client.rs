//! The client of a run, which all its URLs share.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::Arc;

use eyas::race::candidate::AddressFamily;
use eyas::race::target::Target;
use eyas::zone::interface_addresses;
use eyas::{Endpoint, EndpointBuilder};
use eyas_http::{Client, HttpPolicy, Proxy};

use super::cookies::RunCookies;
use super::failure;
use super::request::RefererFlag;
use crate::command::setting::{self, RaceContext};
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, GetFlags, PolicyName, RacePolicy, SourceFlag};
use crate::terminal::OutputStyle;

/// Creates the endpoint and the memory of a run.
pub(super) async fn context(flags: &GetFlags, targets: &[Target]) -> Result<RaceContext, Failure> {
    let builder = bound(Endpoint::builder(), flags.request.interface.as_ref())?;
    let settings = (&flags.choice, &flags.reach, &flags.trust);
    RaceContext::for_targets(builder, settings, targets).await
}

/// Lets connections come from the addresses of `--interface`.
fn bound(
    builder: EndpointBuilder,
    source: Option<&SourceFlag>,
) -> Result<EndpointBuilder, Failure> {
    Ok(match source {
        None => builder,
        Some(SourceFlag::Address(address)) => {
            if let Err(cause) = UdpSocket::bind((*address, 0))
                && cause.kind() == ErrorKind::AddrNotAvailable
            {
                let message = format!("{address} is no address of this host");
                return Err(Failure::new(FailureKind::Listen, message)
                    .hint("--interface takes one of 'ip address', or the name of an interface"));
            }
            builder.local_addresses([*address])
        }
        Some(SourceFlag::Interface(name)) => {
            let addresses = interface_addresses(name);
            if addresses.is_empty() {
                let message = format!("no interface {name} with an address");
                return Err(Failure::new(FailureKind::Listen, message).hint(
                    "--interface takes an address of this host or the name of an interface",
                ));
            }
            builder.local_addresses(addresses)
        }
    })
}

/// Returns the family of an address that connections have to come from.
fn only_family(source: Option<&SourceFlag>) -> Option<AddressFamily> {
    match source? {
        SourceFlag::Address(address) if address.is_ipv4() => Some(AddressFamily::V4),
        SourceFlag::Address(_) => Some(AddressFamily::V6),
        SourceFlag::Interface(_) => None,
    }
}

/// Creates the client.
pub(super) fn client(
    (flags, common): (&GetFlags, &CommonFlags),
    context: &RaceContext,
    target: &Target,
    cookies: Option<&Arc<RunCookies>>,
) -> Result<Client, Failure> {
    let request = &flags.request;
    let race_policy = match flags.policy {
        PolicyName::Naive => RacePolicy::Naive,
        // For HTTP, `serial` means QUIC until it fails, then TCP.
        _ => RacePolicy::Race,
    };
    let mut policy = setting::policy(race_policy, &flags.choice, &flags.reach, target)?;
    policy.only_family = policy.only_family.or_else(|| only_family(request.interface.as_ref()));
    let mut builder = Client::builder()
        .endpoint(context.endpoint.clone())
        .race(policy)
        .policy(match flags.policy {
            PolicyName::Race | PolicyName::Naive => HttpPolicy::Race,
            PolicyName::AltSvc => HttpPolicy::AltSvc,
            PolicyName::Serial => HttpPolicy::Serial,
            PolicyName::RaceAltSvc => HttpPolicy::RaceAltSvc,
        })
        .versions(setting::versions(flags.versions))
        .http2_prior_knowledge(flags.http2_prior_knowledge)
        .redirects(if request.location { request.max_redirs } else { 0 })
        .referer_of_redirects(RefererFlag::parse(request).is_automatic)
        .decompress(request.compressed)
        .proxy(setting::proxy(request.proxy.as_deref(), request.noproxy.as_deref())?);
    if let Some(path) = &request.unix_socket {
        builder = builder.unix_socket(path).proxy(Proxy::none());
    }
    if let Some(cookies) = cookies {
        builder = builder.cookie_store(Arc::clone(cookies) as _);
    }
    builder.build().map_err(|error| {
        let style = flags.output.verbose.then(|| OutputStyle::of_stderr(common.color));
        failure::from_error(&error, style)
    })
}
