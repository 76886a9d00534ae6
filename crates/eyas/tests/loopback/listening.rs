//! Misbehaving peers at a listener.

use std::net::{SocketAddr, TcpStream};

use eyas::race::candidate::{Candidate, Origin, Security, Transport};
use eyas::race::target::Host;
use eyas::{Endpoint, ListenParameters, Listener, SecurityParameters, ServerIdentity};

use crate::common::{ping_pong, wait};

/// More than the limit on pending connections.
const SILENT: usize = 300;

fn candidate(address: SocketAddr, transport: Transport) -> Candidate {
    Candidate {
        address,
        transport,
        security: Security::Tls,
        alpn: vec!["h3".into(), "h2".into()],
        ech: None,
        priority: None,
        origin: Origin::Caller,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_peers_do_not_block_others() {
    let identity = ServerIdentity::self_signed(["localhost"]).unwrap();
    let mut transports = vec![Transport::Tcp];
    if cfg!(feature = "quic") {
        transports.push(Transport::Quic);
    }
    let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap())
        .transports(transports.clone())
        .security(identity.clone())
        .with_alpn(["h3", "h2"]);
    let listener = Listener::bind(parameters).await.unwrap();
    let address = listener.local_addr();
    let silent: Vec<TcpStream> =
        (0..SILENT).map(|_| TcpStream::connect(address).unwrap()).collect();
    let security = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    let endpoint = Endpoint::builder().security(security).build().unwrap();
    for transport in transports {
        let host = Host::Name("localhost".into());
        let client = wait(endpoint.attempt(&host, candidate(address, transport), None)).await;
        ping_pong(&listener, client.unwrap()).await;
    }
    // The oldest was evicted.
    let mut first = &silent[0];
    first.set_read_timeout(Some(crate::common::PATIENCE)).unwrap();
    assert_eq!(std::io::Read::read(&mut first, &mut [0]).unwrap(), 0);
}
