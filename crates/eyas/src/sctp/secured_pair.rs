//! Both ends of a connection over SCTP with TLS, on loopback, for tests.

use std::net::Ipv4Addr;
use std::time::Duration;

use eyas_race::candidate::{Security, Transport};
use eyas_race::policy::Policy;
use eyas_race::target::{Host, Target};
use tokio::time::timeout;

use crate::test_ports::own_port;
use crate::{Connection, Endpoint, ListenParameters, Listener, SecurityParameters, ServerIdentity};

/// Longer than anything takes in these tests.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the listener, the client's end and the server's.
pub(super) async fn pair() -> (Listener, Connection, Connection) {
    let identity = ServerIdentity::self_signed(["server.test"]).expect("an identity");
    let (port, udp) = (own_port(), own_port());
    let parameters = ListenParameters::new((Ipv4Addr::LOCALHOST, port).into())
        .transports([Transport::SctpUdp])
        .security(identity)
        .sctp_encapsulation_port(udp);
    let listener = Listener::bind(parameters).await.expect("a listener");
    let security = SecurityParameters::platform().accept_any_certificate();
    let endpoint = Endpoint::builder().security(security).sctp_encapsulation_port(udp);
    let host = Host::Literal(Ipv4Addr::LOCALHOST.into(), 0);
    let transports = vec![Transport::SctpUdp];
    let target = Target::plain(host, port, transports.clone(), Security::Tls);
    let policy = Policy { transports, ..Policy::default() };
    let endpoint = endpoint.build().expect("an endpoint");
    let ours = endpoint.preconnection(target).policy(policy).connect().await.expect("it connects");
    let theirs = timeout(TIMEOUT, listener.accept()).await.expect("a connection");
    (listener, ours, theirs)
}
