//! Both ends of a connection over SCTP with TLS or inside DTLS, on loopback, for tests.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use eyas_race::candidate::{Security, Transport};
use eyas_race::policy::{Policy, SctpSecurity};
use eyas_race::target::{Target, TargetHost};
use eyas_sctp_tokio::protocol::config::{AssociationConfig, MultipathConfig};
use tokio::time::timeout;

use crate::test_ports::own_port;
use crate::{
    Connection, Endpoint, KeyFingerprint, ListenParameters, Listener, SecurityParameters,
    ServerIdentity,
};

/// Longer than anything takes in these tests.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the listener, the client's end and the server's.
pub(super) async fn pair() -> (Listener, Connection, Connection) {
    let security = SecurityParameters::platform().accept_any_certificate();
    connected(|listening| listening, security, &[], SctpSecurity::Tls).await
}

/// The same inside DTLS with certificates on both sides.
pub(super) async fn dtls_pair() -> (Listener, Connection, Connection) {
    dtls_pair_at(&[], &[]).await
}

/// The same with these addresses at the server and at the client, all on loopback.
pub(super) async fn dtls_pair_at(
    server: &[IpAddr],
    client: &[IpAddr],
) -> (Listener, Connection, Connection) {
    let own = ServerIdentity::self_signed(["client.test"]).expect("an identity");
    let key = KeyFingerprint::from_certificate(own.certificate()).expect("a key");
    let security = SecurityParameters::platform()
        .accept_any_certificate()
        .with_client_certificate(own.chain().to_vec(), own.private_key());
    let server = server.to_vec();
    let listening = |parameters: ListenParameters| {
        parameters.client_keys(move |client_key| *client_key == key).sctp_addresses(server)
    };
    connected(listening, security, client, SctpSecurity::Dtls).await
}

async fn connected(
    set: impl FnOnce(ListenParameters) -> ListenParameters,
    security: SecurityParameters,
    local_addresses: &[IpAddr],
    sctp_security: SctpSecurity,
) -> (Listener, Connection, Connection) {
    let identity = ServerIdentity::self_signed(["server.test"]).expect("an identity");
    let (port, udp) = (own_port(), own_port());
    let mut association = AssociationConfig::default();
    association.multipath = Some(MultipathConfig::default());
    association.hb_interval = Some(Duration::from_millis(500));
    association.rto_min = Duration::from_millis(200);
    let parameters = ListenParameters::new((Ipv4Addr::LOCALHOST, port).into())
        .transports([Transport::SctpUdp])
        .security(identity)
        .sctp_association(association.clone())
        .sctp_encapsulation_port(udp);
    let listener = Listener::bind(set(parameters)).await.expect("a listener");
    let endpoint = Endpoint::builder()
        .security(security)
        .sctp_association(association)
        .sctp_local_addresses(local_addresses.iter().copied())
        .sctp_encapsulation_port(udp);
    let host = TargetHost::Literal(Ipv4Addr::LOCALHOST.into(), 0);
    let transports = vec![Transport::SctpUdp];
    let target = Target::plain(host, port, transports.clone(), Security::Tls);
    let policy = Policy { transports, sctp_security, ..Policy::default() };
    let endpoint = endpoint.build().expect("an endpoint");
    let ours = endpoint.preconnection(target).policy(policy).connect().await.expect("it connects");
    let theirs = timeout(TIMEOUT, listener.accept()).await.expect("a connection");
    (listener, ours, theirs)
}
