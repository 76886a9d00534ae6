//! Accepts connections over SCTP: inside UDP, over raw IP, or through the kernel's SCTP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use eyas_race::candidate::{Security, Transport};
use eyas_sctp_tokio::protocol::identifier::StreamId;
use eyas_sctp_tokio::{SctpAssociation, SctpListenParameters, SctpListener, SctpOverIp};
use rustls::crypto::ring::default_provider;
use rustls::server::danger::ClientCertVerifier;
use tokio_rustls::TlsAcceptor;

use super::handshakes::ListenerHandshakes;
use super::{AcceptContext, HANDSHAKE_TIMEOUT, ListenParameters, since};
use crate::attempt::tls;
use crate::byte_stream::ByteTransport;
use crate::connection_info::ConnectionInfo;
use crate::sctp::secured::{Role, Secured};
use crate::security::{ClientKeyVerifier, ClientKeys};
use crate::{Connection, ConnectionFeedback, Error};

/// The bound SCTP listener.
pub(super) struct SctpSockets {
    /// The address, with the port number that all transports share.
    pub(super) address: SocketAddr,
    pub(super) listener: Option<SctpListener>,
    /// Why SCTP over UDP is not served, if it was optional.
    pub(super) missing: Option<String>,
}

/// Listens as the parameters request, at the same address as the other transports.
pub(super) fn listen(
    parameters: &ListenParameters,
    mut address: SocketAddr,
) -> Result<SctpSockets, Error> {
    let requests = |transport| parameters.transports.contains(&transport);
    if !requests(Transport::Sctp) && !requests(Transport::SctpUdp) {
        return Ok(SctpSockets { address, listener: None, missing: None });
    }
    let mut sctp_parameters = SctpListenParameters::new(address);
    sctp_parameters.addresses = addresses(address, &parameters.sctp_addresses);
    sctp_parameters.association = parameters.sctp_association.clone();
    if !requests(Transport::Sctp) {
        sctp_parameters.over_ip = SctpOverIp::No;
    }
    if !requests(Transport::SctpUdp) {
        sctp_parameters.encapsulation_port = None;
    } else {
        sctp_parameters.encapsulation_port = Some(parameters.sctp_encapsulation_port);
    }
    // A key that DTLS cannot use does not affect the other transports.
    sctp_parameters.dtls =
        parameters.security.as_ref().and_then(|identity| identity.dtls_identity().ok());
    sctp_parameters.dtls_clients = parameters.client_keys.clone().map(client_verifier);
    let listener = match SctpListener::bind(&sctp_parameters) {
        Err(cause) if parameters.sctp_optional && address.port() != 0 => {
            let missing = Some(cause.to_string());
            sctp_parameters.encapsulation_port = None;
            // Without UDP there may be nothing left to serve.
            let listener = SctpListener::bind(&sctp_parameters).ok();
            return Ok(SctpSockets { address, listener, missing });
        }
        bound => bound?,
    };
    address.set_port(listener.port());
    Ok(SctpSockets { address, listener: Some(listener), missing: None })
}

fn client_verifier(keys: ClientKeys) -> Arc<dyn ClientCertVerifier> {
    Arc::new(ClientKeyVerifier::new(&default_provider(), keys))
}

/// Returns the addresses for SCTP: that of all transports and the further ones. An unspecified
/// address is left out if there are further ones.
fn addresses(address: SocketAddr, further: &[IpAddr]) -> Vec<SocketAddr> {
    let further = further.iter().map(|ip| SocketAddr::new(*ip, address.port()));
    let main = Some(address).filter(|address| !address.ip().is_unspecified() || further.len() == 0);
    let mut addresses = Vec::new();
    for address in main.into_iter().chain(further) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Accepts associations over any carrier.
pub(super) async fn accept_all(
    listener: Arc<SctpListener>,
    tls: Option<TlsAcceptor>,
    has_client_keys: bool,
    context: AcceptContext,
) {
    let mut handshakes = ListenerHandshakes::new();
    let dtls = match has_client_keys {
        false => AssociationProtection::Dtls,
        true => AssociationProtection::MutualDtls,
    };
    while context.has_space().await {
        let (association, protection) = tokio::select! {
            association = listener.accept() => (association, tls.clone().map_or(AssociationProtection::None, AssociationProtection::Tls)),
            association = listener.accept_dtls() => (association, dtls.clone()),
        };
        let Some(remote) = association.remote() else { continue };
        let ready = context.ready.clone();
        handshakes.begin(remote.ip(), async move {
            match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake(association, protection)).await
            {
                Ok(Ok(connection)) => drop(ready.send(connection).await),
                Ok(Err(error)) => tracing::debug!(%error, "handshake over SCTP failed"),
                Err(_) => tracing::debug!("handshake over SCTP took too long"),
            }
        });
    }
}

/// What protects an association.
#[derive(Clone)]
enum AssociationProtection {
    /// Nothing.
    None,
    /// TLS on its stream (RFC 3436).
    Tls(TlsAcceptor),
    /// DTLS below it (RFC 8261), which is already established.
    Dtls,
    /// The same, with certificates on both sides.
    MutualDtls,
}

async fn handshake(
    association: SctpAssociation,
    protection: AssociationProtection,
) -> io::Result<Connection> {
    let start = Instant::now();
    let remote = association.remote().ok_or(io::ErrorKind::NotConnected)?;
    let transport = match association.is_encapsulated() {
        true => Transport::SctpUdp,
        false => Transport::Sctp,
    };
    let mut info = ConnectionInfo::accepted(transport, association.local_address(), remote);
    let stream = association.stream(StreamId(0))?;
    let AssociationProtection::Tls(acceptor) = protection else {
        if !matches!(protection, AssociationProtection::None) {
            info.security = Security::Dtls;
        }
        if matches!(protection, AssociationProtection::MutualDtls) {
            let certificate = association.peer_certificate();
            info.peer_certificates = vec![certificate.ok_or(io::ErrorKind::NotConnected)?];
        }
        let transport = ByteTransport::Sctp(Box::new(stream));
        return Ok(Connection::new(transport, info, ConnectionFeedback::none(), Bytes::new()));
    };
    let role = Role::Server(acceptor);
    let tls = role.secure(stream).await.map_err(io::Error::other)?;
    info.timings.security = since(start);
    tls::describe(&mut info, tls.get_ref().1);
    let transport = ByteTransport::SctpTls(Box::new(Secured::new(tls, role)));
    Ok(Connection::new(transport, info, ConnectionFeedback::none(), Bytes::new()))
}
