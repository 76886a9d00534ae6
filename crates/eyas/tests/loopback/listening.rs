//! Misbehaving peers at a listener.

use std::net::{SocketAddr, TcpStream};

use eyas::race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas::race::target::TargetHost;
use eyas::sockets::{self, StreamProtocol, WantedSockets};
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
        origin: AddressOrigin::Caller,
    }
}

#[tokio::test]
async fn a_listener_can_require_what_holds_against_quantum_computers() {
    use eyas::rustls::{ClientConfig, RootCertStore, crypto::ring, version};

    let identity = ServerIdentity::self_signed(["localhost"]).unwrap();
    let parameters = ListenParameters::new("127.0.0.1:0".parse().unwrap())
        .security(identity.clone())
        .require_post_quantum();
    let listener = Listener::bind(parameters).await.unwrap();
    let address = listener.local_addr();
    let accepting = tokio::spawn(async move { listener.accept().await });

    let mut roots = RootCertStore::empty();
    roots.add(identity.certificate().clone()).unwrap();
    let without = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(without));
    wait(connector.connect("localhost".try_into().unwrap(), stream)).await.unwrap_err();

    let security = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    let endpoint = Endpoint::builder().security(security).build().unwrap();
    let host = TargetHost::Name("localhost".into());
    let wanted = Candidate { alpn: vec![], ..candidate(address, Transport::Tcp) };
    let connection = wait(endpoint.attempt(&host, wanted, None)).await.unwrap();
    assert_eq!(connection.info().key_exchange, Some("X25519MLKEM768"));
    let accepted = wait(accepting).await.unwrap();
    assert_eq!(accepted.info().key_exchange, Some("X25519MLKEM768"));
}

//= hostile tunnel
//# strangers who begin a handshake and stay silent
//= bound: `MAX_HANDSHAKES`, `SHARE` of the descriptors; who has most is evicted
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
        let host = TargetHost::Name("localhost".into());
        let client = wait(endpoint.attempt(&host, candidate(address, transport), None)).await;
        ping_pong(&listener, client.unwrap()).await;
    }
    // The oldest was evicted.
    let mut first = &silent[0];
    first.set_read_timeout(Some(crate::common::PATIENCE)).unwrap();
    assert_eq!(std::io::Read::read(&mut first, &mut [0]).unwrap(), 0);
}

/// Sockets as a service manager passes them serve what they can.
#[cfg(feature = "quic")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_that_are_already_bound_serve_what_they_can() {
    let identity = ServerIdentity::self_signed(["localhost"]).unwrap();
    let both = [Transport::Tcp, Transport::Quic];
    let parameters = |transports: &[Transport]| {
        ListenParameters::new("192.0.2.1:1".parse().unwrap())
            .transports(transports.iter().copied())
            .security(identity.clone())
            .with_alpn(["h3", "h2"])
    };
    let bind = |stream: Option<StreamProtocol>, udp: bool| {
        let address = "127.0.0.1:0".parse().unwrap();
        sockets::bind(&[address], WantedSockets { stream, udp }).unwrap().remove(0)
    };
    let security = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    let endpoint = Endpoint::builder().security(security).build().unwrap();
    let tcp = Some(StreamProtocol::Tcp);
    for (stream, udp, served) in
        [(tcp, true, &both[..]), (tcp, false, &both[..1]), (None, true, &both[1..])]
    {
        let bound = bind(stream, udp);
        let address = bound.address;
        let listener = Listener::from_bound(bound, &parameters(&both)).unwrap();
        assert_eq!(listener.local_addr(), address);
        for transport in both {
            let host = TargetHost::Name("localhost".into());
            let client = wait(endpoint.attempt(&host, candidate(address, transport), None)).await;
            match served.contains(&transport) {
                true => ping_pong(&listener, client.unwrap()).await,
                false => assert!(client.is_err(), "{transport} at {stream:?}, {udp}"),
            }
        }
    }
    let unused = Listener::from_bound(bind(tcp, false), &parameters(&both[1..]));
    let error = unused.expect_err("it has no socket").to_string();
    assert!(error.contains("no socket"), "{error}");
}
