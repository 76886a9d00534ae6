//! Accepts connections over SCTP: inside UDP, over raw IP, or through the kernel's SCTP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use eyas_race::candidate::{Security, Transport};
use eyas_sctp::identifier::StreamId;
use tokio_rustls::TlsAcceptor;

use super::handshakes::Handshakes;
use super::{HANDSHAKE_TIME, ListenParameters, Reception, since};
use crate::attempt::tls;
use crate::byte_stream::ByteTransport;
use crate::connection_info::ConnectionInfo;
use crate::sctp::secured::{Role, Secured};
use crate::sctp::{SctpAssociation, SctpListenParameters, SctpListener, SctpOverIp};
use crate::{Connection, Error, Feedback, ServerIdentity};

/// What accepts associations.
pub(super) struct Accepting {
    /// The address, with the port number that all transports share.
    pub(super) address: SocketAddr,
    pub(super) listener: Option<SctpListener>,
    /// Why SCTP inside UDP is not there, if it may be missing.
    pub(super) missing: Option<String>,
}

/// Listens as the parameters want it, at the address that the other transports have.
pub(super) fn listen(
    parameters: &ListenParameters,
    mut address: SocketAddr,
) -> Result<Accepting, Error> {
    let wants = |transport| parameters.transports.contains(&transport);
    if !wants(Transport::Sctp) && !wants(Transport::SctpUdp) {
        return Ok(Accepting { address, listener: None, missing: None });
    }
    let mut wanted = SctpListenParameters::new(address);
    wanted.addresses = addresses(address, &parameters.sctp_addresses);
    wanted.association = parameters.sctp_association.clone();
    if !wants(Transport::Sctp) {
        wanted.over_ip = SctpOverIp::No;
    }
    if !wants(Transport::SctpUdp) {
        wanted.encapsulation_port = None;
    } else {
        wanted.encapsulation_port = Some(parameters.sctp_encapsulation_port);
    }
    // A key that DTLS cannot use leaves the other ways as they are. Who has to be known must not come by
    // DTLS, which asks clients for nothing.
    if parameters.client_keys.is_none() {
        wanted.dtls = parameters.security.clone().filter(ServerIdentity::suits_dtls);
    }
    let listener = match SctpListener::bind(&wanted) {
        Err(cause) if parameters.sctp_optional && address.port() != 0 => {
            let missing = Some(cause.to_string());
            wanted.encapsulation_port = None;
            // Without UDP nothing may be left to serve.
            let listener = SctpListener::bind(&wanted).ok();
            return Ok(Accepting { address, listener, missing });
        }
        bound => bound?,
    };
    address.set_port(listener.port());
    Ok(Accepting { address, listener: Some(listener), missing: None })
}

/// Where SCTP is served: at the address of all transports and the further ones. One that stands for
/// all addresses gives way to those that are named.
fn addresses(address: SocketAddr, further: &[IpAddr]) -> Vec<SocketAddr> {
    let further = further.iter().map(|ip| SocketAddr::new(*ip, address.port()));
    let own = Some(address).filter(|one| !one.ip().is_unspecified() || further.len() == 0);
    let mut addresses = Vec::new();
    for one in own.into_iter().chain(further) {
        if !addresses.contains(&one) {
            addresses.push(one);
        }
    }
    addresses
}

/// Accepts associations over any carrier.
pub(super) async fn accept_all(
    listener: Arc<SctpListener>,
    tls: Option<TlsAcceptor>,
    reception: Reception,
) {
    let mut handshakes = Handshakes::new();
    while reception.has_room().await {
        let (association, guarded_by) = tokio::select! {
            association = listener.accept() => (association, tls.clone().map_or(Guard::None, Guard::Tls)),
            association = listener.accept_dtls() => (association, Guard::Dtls),
        };
        let Some(remote) = association.remote() else { continue };
        let ready = reception.ready.clone();
        handshakes.begin(remote.ip(), async move {
            match tokio::time::timeout(HANDSHAKE_TIME, shake(association, guarded_by)).await {
                Ok(Ok(connection)) => drop(ready.send(connection).await),
                Ok(Err(error)) => tracing::debug!(%error, "handshake over SCTP failed"),
                Err(_) => tracing::debug!("handshake over SCTP took too long"),
            }
        });
    }
}

/// What protects an association.
enum Guard {
    /// Nothing.
    None,
    /// TLS on its stream (RFC 3436).
    Tls(TlsAcceptor),
    /// DTLS below it (RFC 8261), which is up already.
    Dtls,
}

async fn shake(association: SctpAssociation, guard: Guard) -> io::Result<Connection> {
    let start = Instant::now();
    let remote = association.remote().ok_or(io::ErrorKind::NotConnected)?;
    let transport = match association.is_encapsulated() {
        true => Transport::SctpUdp,
        false => Transport::Sctp,
    };
    let mut info = ConnectionInfo::accepted(transport, association.local_address(), remote);
    let stream = association.stream(StreamId(0))?;
    let Guard::Tls(acceptor) = guard else {
        if matches!(guard, Guard::Dtls) {
            info.security = Security::Dtls;
        }
        let transport = ByteTransport::Sctp(Box::new(stream));
        return Ok(Connection::new(transport, info, Feedback::none(), Bytes::new()));
    };
    let role = Role::Server(acceptor);
    let tls = role.secure(stream).await.map_err(io::Error::other)?;
    info.timings.security = since(start);
    tls::describe(&mut info, tls.get_ref().1);
    let transport = ByteTransport::SctpTls(Box::new(Secured::new(tls, role)));
    Ok(Connection::new(transport, info, Feedback::none(), Bytes::new()))
}
