//! The end that tunnels lead to.

use std::sync::Arc;

use eyas::sctp::ENCAPSULATION_PORT;
use eyas::{Endpoint, KeyFingerprint, ListenParameters, Listener, ServerIdentity};
use eyas_relay::tunnel::Server;
use eyas_relay::tunnel::frame::ALPN;
use eyas_relay::tunnel::session::ServerLimits;
use tokio_util::sync::CancellationToken;

use super::authorized::Authorized;
use super::{NoticePrinter, TunnelInfo, files, interface};
use crate::command::descriptors::Descriptors;
use crate::command::service::{Event, Service};
use crate::failure::{Failure, Kind};
use crate::flags::{CommonFlags, TunnelServeFlags};

pub(super) async fn run(flags: &TunnelServeFlags, common: &CommonFlags) -> Result<(), Failure> {
    // Set up before the server announces itself, so that no early signal is missed.
    let mut service = Service::begin(common.color)?;
    let printer = NoticePrinter::new(common);
    // Before the listener is bound, whose handshakes may have a share.
    let descriptors = Descriptors::raised();
    let identity = identity(flags, printer)?;
    let path = files::path_or_default(flags.authorized_keys.as_deref(), "authorized_keys")?;
    service.watch([path.clone()]);
    let authorized = Authorized::new(path.clone(), printer);
    if authorized.read()?.is_empty() {
        let text = format!("no one may connect yet: {} contains no keys", path.display());
        printer.warn("keys", text);
    }
    let interface = interface::create(&flags.tun, printer)?;
    let authorized = Arc::new(authorized);
    let listener = bind(flags, (identity.clone(), Arc::clone(&authorized)), printer).await?;
    if let Some(why) = listener.sctp_missing() {
        printer.warn("listening", format!("no SCTP inside UDP: {why}"));
    }
    let key = files::fingerprint(&identity)?;
    let text = format!("listening on {} with the key {key}", listener.local_addr());
    printer.info("listening", text);
    let endpoint = Endpoint::builder()
        .max_attempts_in_flight(descriptors.of_attempts)
        .build()
        .map_err(|cause| Failure::new(Kind::Listen, cause.to_string()))?;
    let status = format!("tunnels on {}", listener.local_addr());
    let keys = Arc::clone(&authorized);
    let grants = move |key: &KeyFingerprint| keys.grant(key);
    let mut server = Server::new(endpoint, grants, move |notice| printer.print(&notice))
        .total_limits(&ServerLimits::within(descriptors.of_clients));
    if let Some(interface) = &interface {
        server = server.interface(interface.clone());
    }
    let info = TunnelInfo {
        role: "server",
        name: listener.local_addr().to_string(),
        forwards: interface.iter().map(|device| interface::description(device.config())).collect(),
    };
    let _shown = super::publish_status(info, server.sessions(), printer).await;
    let stop = CancellationToken::new();
    let serving = server.serve(&listener, stop.clone());
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => {}
        failure = interface::until_removed(interface.as_ref()) => return Err(failure),
        () = until_stopped(&mut service, &status, &authorized) => {
            stop.cancel();
            tokio::select! {
                () = serving => {}
                () = service.stopped_again() => {}
            }
        }
    }
    Ok(())
}

/// Checks the keys whenever it is told to or they have changed, until the server is to stop. They are
/// read for each connection, but an operator who has made a mistake is told at once.
async fn until_stopped(service: &mut Service, status: &str, authorized: &Authorized) {
    loop {
        service.ready(status);
        if service.next().await == Event::Stop {
            return;
        }
        authorized.load();
    }
}

async fn bind(
    flags: &TunnelServeFlags,
    (identity, authorized): (ServerIdentity, Arc<Authorized>),
    printer: NoticePrinter,
) -> Result<Listener, Failure> {
    let parameters = ListenParameters::new(flags.listen)
        .transports(crate::command::setting::served_transports(true))
        .security(identity)
        .client_keys(move |key| authorized.grant(key).is_some())
        .notices(move |text| printer.warn("exhausted", text))
        .with_alpn([ALPN])
        .sctp_addresses(flags.paths.local_address.iter().copied())
        .sctp_association(super::association(&flags.paths))
        .sctp_encapsulation_port(flags.sctp_udp_port.unwrap_or(ENCAPSULATION_PORT))
        .sctp_optional(flags.sctp_udp_port.is_none());
    Listener::bind(parameters).await.map_err(|cause| Failure::new(Kind::Listen, cause.to_string()))
}

/// Returns the key of this server, generating it if there is none.
fn identity(flags: &TunnelServeFlags, printer: NoticePrinter) -> Result<ServerIdentity, Failure> {
    let path = files::path_or_default(flags.key.key.as_deref(), "host.pem")?;
    if let Some(identity) = files::read_key(&path)? {
        return Ok(identity);
    }
    printer.info("keys", format!("generated a key for this server: {}", path.display()));
    files::generate_key(&path)
}
