//! Servers that are killed and restarted at the same address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use eyas::race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas::race::target::TargetHost;
use eyas::{Connection, Endpoint, ListenParameters, Listener, SecurityParameters, ServerIdentity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::common::{NAME, PATIENCE, wait};
use crate::ports::own_port;

/// A server with a runtime of its own, which ends without a word when that is dropped.
struct Server {
    runtime: Runtime,
    accepted: mpsc::Receiver<Connection>,
    /// Kept open until the server is killed.
    connections: Vec<Connection>,
}

impl Server {
    async fn start(address: SocketAddr, identity: &ServerIdentity) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let parameters = ListenParameters::new(address)
            .transports([Transport::Quic])
            .security(identity.clone())
            .with_alpn(["h3"]);
        let (sender, accepted) = mpsc::channel(1);
        let (ready, is_ready) = tokio::sync::oneshot::channel();
        runtime.spawn(async move {
            let listener = loop {
                // The one before may not have closed its socket yet.
                match Listener::bind(parameters.clone()).await {
                    Ok(listener) => break listener,
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            };
            ready.send(()).expect("the test waits");
            while sender.send(listener.accept().await).await.is_ok() {}
        });
        wait(is_ready).await.expect("it listens");
        Self { runtime, accepted, connections: Vec::new() }
    }

    fn kill(self) {
        // Its tasks go first, so that nothing is left that could send when the rest is dropped.
        tokio::task::block_in_place(|| self.runtime.shutdown_timeout(PATIENCE));
    }
}

/// Opens a connection, and exchanges a byte in each direction.
async fn connect(
    server: &mut Server,
    address: SocketAddr,
    identity: &ServerIdentity,
) -> (Endpoint, Connection) {
    let security = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    let endpoint = Endpoint::builder().security(security).build().expect("an endpoint");
    let candidate = Candidate {
        address,
        transport: Transport::Quic,
        security: Security::Tls,
        alpn: vec!["h3".into()],
        ech: None,
        priority: None,
        origin: AddressOrigin::Caller,
    };
    let host = TargetHost::Name(NAME.into());
    let mut client = wait(endpoint.attempt(&host, candidate, None)).await.expect("it listens");
    client.write_all(b"?").await.expect("it is open");
    let mut accepted = wait(server.accepted.recv()).await.expect("it accepts");
    // In the server's runtime, as its streams belong there.
    let answered = server.runtime.spawn(async move {
        accepted.read_u8().await.expect("a byte");
        accepted.write_all(b"!").await.expect("it is open");
        accepted
    });
    server.connections.push(wait(answered).await.expect("it runs"));
    wait(client.read_u8()).await.expect("a byte");
    (endpoint, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_notices_at_its_next_packet() {
    let families: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    for family in families {
        let address = SocketAddr::new(family, own_port());
        let identity = ServerIdentity::self_signed([NAME]).expect("an identity");
        let pem = [identity.certificate_pem(), identity.key_pem()].map(|pem| pem.expect("PEM"));
        let mut server = Server::start(address, &identity).await;
        let (_endpoint, mut client) = connect(&mut server, address, &identity).await;
        server.kill();
        // A restarted process reads its identity again.
        let identity = ServerIdentity::from_pem(pem[0].as_bytes(), pem[1].as_bytes());
        let restarted = Server::start(address, &identity.expect("an identity")).await;

        client.write_all(b"are you there?").await.expect("nothing is known yet");
        let quic = client.quic().expect("QUIC").clone();
        let error = wait(quic.closed()).await;
        // Not `TimedOut`.
        assert_eq!(error, quinn::ConnectionError::Reset, "at {address}");
        wait(client.read_u8()).await.expect_err("it is gone");
        restarted.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_another_key_cannot_end_the_connections_of_the_one_before() {
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), own_port());
    let identity = ServerIdentity::self_signed([NAME]).expect("an identity");
    let mut server = Server::start(address, &identity).await;
    let (_endpoint, mut client) = connect(&mut server, address, &identity).await;
    server.kill();
    let other = ServerIdentity::self_signed([NAME]).expect("an identity");
    let restarted = Server::start(address, &other).await;
    client.write_all(b"are you there?").await.expect("nothing is known yet");
    let quic = client.quic().expect("QUIC").clone();
    // Several retransmissions, which all go unanswered.
    let sent = quic.stats().udp_tx.datagrams;
    wait(async {
        while quic.stats().udp_tx.datagrams < sent + 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(quic.close_reason(), None);
    restarted.kill();
}
