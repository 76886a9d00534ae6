//! The gateway mode of `eyas serve`, in front of another web server.

use std::path::Path;

use eyas::SecurityParameters;
use eyas_gateway::{Gateway, GatewayError, GatewayLimits, Upstream};
use eyas_http::serve::{self, ServerBuilder};

use crate::command::descriptors::DescriptorShares;
use crate::command::setting;
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, ServeFlags};
use crate::output;

/// Returns the number of clients that are wanted, and the limits of the server for them: a third of the descriptors, as
/// each client has a connection to the upstream, and that may take two attempts.
pub(super) fn server_limits(
    flags: &ServeFlags,
    descriptors: DescriptorShares,
) -> (usize, serve::Limits) {
    // What an upstream takes is its own affair: bodies only pass through here.
    let body_bytes = flags.max_upload.unwrap_or(u64::MAX);
    let limits = serve::Limits { body_bytes, open_files: 0, ..serve::Limits::default() };
    (limits.connections, limits.within(descriptors.all() / 3))
}

/// Configures the upstream to answer requests.
pub(super) fn configure(
    server: ServerBuilder,
    upstream: &Upstream,
    flags: &ServeFlags,
    (common, descriptors): (&CommonFlags, DescriptorShares),
) -> Result<(ServerBuilder, Gateway), Failure> {
    let color = common.color;
    let limits = GatewayLimits {
        connect_time: flags.upstream_connect_timeout,
        response_time: flags.upstream_timeout,
        idle_time: flags.upstream_idle_timeout,
        ..GatewayLimits::default()
    };
    let limits = limits.within(descriptors.all() / 3 * 2);
    let mut builder = Gateway::builder(upstream.clone())
        .limits(limits)
        .proxy_protocol(flags.proxy_protocol)
        .http3(!flags.upstream_no_h3)
        .refuse_raw_targets(flags.refuse_raw_targets)
        .notices(move |text| output::notice(color, text));
    for network in &flags.trusted_proxy {
        builder = builder.trust(*network);
    }
    for protocol in &flags.allow_upgrade {
        builder = builder.upgrade(protocol);
    }
    if let Some(path) = &flags.upstream_cacert {
        builder = builder.security(trusting(path)?);
    }
    let gateway = builder.build();
    let gateway =
        gateway.map_err(|cause| Failure::new(FailureKind::Identity, cause.to_string()))?;
    let metrics_source = gateway.clone();
    let server = server.extended_connect(["websocket"]).keep_field_case(true);
    let server = server.more_metrics(move |page| metrics_source.stats().write(page));
    Ok((server.service(gateway.clone()), gateway))
}

/// Returns the trust in an upstream whose certificate these issue.
fn trusting(path: &Path) -> Result<SecurityParameters, Failure> {
    Ok(SecurityParameters::platform().with_roots(setting::roots(path)?))
}

/// Loads the certificates of the upstream's issuers again.
pub(super) fn reload(gateway: &Gateway, path: &Path) -> Result<String, Failure> {
    let unusable = |cause: GatewayError| Failure::new(FailureKind::Identity, cause.to_string());
    gateway.replace_security(trusting(path)?).map_err(unusable)?;
    Ok(format!("loaded {}", path.display()))
}
