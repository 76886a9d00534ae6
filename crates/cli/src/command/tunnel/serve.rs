//! The end that tunnels lead to.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use eyas::race::candidate::Transport;
use eyas::sockets::BoundAddress;
use eyas::{Endpoint, KeyFingerprint, ListenParameters, Listener, ServerIdentity};
use eyas_sctp_tokio::ENCAPSULATION_PORT;
use eyas_tunnel::ALPN;
use eyas_tunnel::ServerLimits;
use eyas_tunnel::TunnelServer;
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::authorized::AuthorizedKeysFile;
use super::{NoticePrinter, TunnelInfo, files, interface};
use crate::command::descriptors::DescriptorShares;
use crate::command::service::{self, PassedSockets, RunningService, ServiceEvent};
use crate::command::setting;
use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, TunnelServeFlags};

/// Where it listens by itself without `--listen`.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 4433);

pub(super) async fn run(flags: &TunnelServeFlags, common: &CommonFlags) -> Result<(), Failure> {
    // Set up before the server announces itself, so that no early signal is missed.
    let mut service = RunningService::begin(common.color)?;
    let printer = NoticePrinter::new(common);
    // Before the listener is bound, whose handshakes may have a share.
    let descriptors = DescriptorShares::raised();
    let identity = identity(flags, printer)?;
    let path = files::path_or_default(flags.authorized_keys.as_deref(), "authorized_keys")?;
    service.watch([path.clone()]);
    let authorized = AuthorizedKeysFile::new(path.clone(), printer);
    if authorized.read()?.is_empty() {
        let text = format!("no one may connect yet: {} contains no keys", path.display());
        printer.warn("keys", text);
    }
    let interface = interface::create(&flags.tun, printer)?;
    let authorized = Arc::new(authorized);
    let listeners = listeners(flags, (identity.clone(), Arc::clone(&authorized)), printer).await?;
    for why in listeners.iter().filter_map(Listener::sctp_missing) {
        printer.warn("listening", format!("no SCTP inside UDP: {why}"));
    }
    let addresses: Vec<String> =
        listeners.iter().map(|listener| listener.local_addr().to_string()).collect();
    let addresses = addresses.join(", ");
    let key = files::fingerprint(&identity)?;
    printer.info("listening", format!("listening on {addresses} with the key {key}"));
    let endpoint = Endpoint::builder()
        .max_attempts_in_flight(descriptors.of_attempts)
        .build()
        .map_err(|cause| Failure::new(FailureKind::Listen, cause.to_string()))?;
    let status = format!("tunnels on {addresses}");
    let keys = Arc::clone(&authorized);
    let grants = move |key: &KeyFingerprint| keys.grant(key);
    let mut server = TunnelServer::new(endpoint, grants, move |notice| printer.print(&notice))
        .total_limits(&ServerLimits::within(descriptors.of_clients));
    if let Some(interface) = &interface {
        server = server.interface(interface.clone());
    }
    let info = TunnelInfo {
        role: "server",
        name: addresses,
        forwards: interface.iter().map(|device| interface::description(device.config())).collect(),
    };
    let _shown = super::publish_status(info, server.sessions(), printer).await;
    let stop = CancellationToken::new();
    let serving = join_all(listeners.iter().map(|listener| server.serve(listener, stop.clone())));
    tokio::pin!(serving);
    tokio::select! {
        _ = &mut serving => {}
        failure = interface::until_removed(interface.as_ref()) => return Err(failure),
        () = until_stopped(&mut service, &status, &authorized) => {
            stop.cancel();
            tokio::select! {
                _ = serving => {}
                () = service.stopped_again() => {}
            }
        }
    }
    Ok(())
}

/// Checks the keys whenever it is told to or they have changed, until the server is to stop. They are
/// read for each connection, but an operator who has made a mistake is told at once.
async fn until_stopped(
    service: &mut RunningService,
    status: &str,
    authorized: &AuthorizedKeysFile,
) {
    loop {
        service.ready(status);
        if service.next().await == ServiceEvent::Stop {
            return;
        }
        authorized.load();
    }
}

/// Listens on the sockets of the service manager, with a listener for each of their addresses, or otherwise at
/// `--listen`.
async fn listeners(
    flags: &TunnelServeFlags,
    (identity, authorized): (ServerIdentity, Arc<AuthorizedKeysFile>),
    printer: NoticePrinter,
) -> Result<Vec<Listener>, Failure> {
    let parameters = ListenParameters::new(flags.listen.unwrap_or(DEFAULT_ADDRESS))
        .transports(setting::served_transports(true))
        .security(identity)
        .client_keys(move |key| authorized.grant(key).is_some())
        .require_post_quantum()
        .notices(move |text| printer.warn("exhausted", text))
        .with_alpn([ALPN])
        .sctp_addresses(flags.paths.local_address.iter().copied())
        .sctp_association(super::association(&flags.paths))
        .sctp_encapsulation_port(flags.sctp_udp_port.unwrap_or(ENCAPSULATION_PORT))
        .sctp_optional(flags.sctp_udp_port.is_none());
    let failed = |cause: eyas::Error| Failure::new(FailureKind::Listen, cause.to_string());
    let Some(PassedSockets(sockets)) = service::sockets()? else {
        return Listener::bind(parameters).await.map(|one| vec![one]).map_err(failed);
    };
    if flags.listen.is_some() {
        return Err(service::listens_twice());
    }
    let with_sctp = sctp_place(flags, &sockets)?;
    let listen = |(place, bound): (usize, BoundAddress)| {
        let mut parameters = parameters.clone();
        if place != with_sctp {
            let others = setting::served_transports(true);
            let is_sctp =
                |transport: &Transport| matches!(transport, Transport::Sctp | Transport::SctpUdp);
            parameters = parameters.transports(others.filter(|one| !is_sctp(one)));
        }
        Listener::from_bound(bound, &parameters).map_err(failed)
    };
    sockets.into_iter().enumerate().map(listen).collect()
}

/// Returns the place of the address at which SCTP, whose sockets are bound here, is served: all addresses of this host
/// if these are among them, and otherwise the first.
fn sctp_place(flags: &TunnelServeFlags, sockets: &[BoundAddress]) -> Result<usize, Failure> {
    let port = flags.sctp_udp_port.unwrap_or(ENCAPSULATION_PORT);
    let takes_port = |bound: &BoundAddress| bound.udp.is_some() && bound.address.port() == port;
    if sockets.iter().any(takes_port) {
        let text = format!(
            "a socket for datagrams of the service manager has port {port}, which is that of SCTP"
        );
        return Err(Failure::new(FailureKind::Listen, text).hint(
            "remove its ListenDatagram=: datagram sockets serve QUIC, and the server binds that of SCTP itself",
        ));
    }
    let is_any = |bound: &BoundAddress| bound.address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    Ok(sockets.iter().position(is_any).unwrap_or(0))
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
