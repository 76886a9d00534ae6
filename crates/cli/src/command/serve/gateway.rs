//! The gateway mode of `eyas serve`, in front of another web server.

use eyas::SecurityParameters;
use eyas_http::serve::{self, ServerBuilder};
use eyas_relay::gateway::{Gateway, Limits, Upstream};

use crate::command::setting;
use crate::failure::{Failure, Kind};
use crate::flags::{CommonFlags, ServeFlags};

/// Configures the upstream to answer requests.
pub(super) fn configure(
    server: ServerBuilder,
    upstream: &Upstream,
    flags: &ServeFlags,
    common: &CommonFlags,
) -> Result<ServerBuilder, Failure> {
    let color = common.color;
    let limits = Limits { response_time: flags.upstream_timeout, ..Limits::default() };
    let mut builder = Gateway::builder(upstream.clone())
        .limits(limits)
        .proxy_protocol(flags.proxy_protocol)
        .refuse_raw_targets(flags.refuse_raw_targets)
        .notices(move |text| super::notice(color, text));
    for network in &flags.trusted_proxy {
        builder = builder.trust(*network);
    }
    for protocol in &flags.allow_upgrade {
        builder = builder.upgrade(protocol);
    }
    if let Some(path) = &flags.upstream_cacert {
        builder =
            builder.security(SecurityParameters::platform().with_roots(setting::roots(path)?));
    }
    let gateway = builder.build();
    let gateway = gateway.map_err(|cause| Failure::new(Kind::Identity, cause.to_string()))?;
    let metrics_source = gateway.clone();
    // What an upstream takes is its own affair: bodies only pass through here.
    let body_bytes = flags.max_upload.unwrap_or(u64::MAX);
    let server_limits = serve::Limits { body_bytes, ..serve::Limits::default() };
    let server = server.extended_connect(true).limits(server_limits);
    Ok(server.more_metrics(move |page| metrics_source.stats().write(page)).service(gateway))
}
