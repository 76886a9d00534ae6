//! The effect of security parameters on the wire, over TLS and over QUIC.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use eyas::race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas::race::target::{Target, TargetHost};
use eyas::{Connection, Endpoint, SecurityParameters};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::tls::{Credentials, Server, Sessions};
use crate::common::{NAME, Scene, wait};

const TRANSPORTS: [Transport; 2] = [Transport::Tcp, Transport::Quic];

fn candidate(address: SocketAddr, transport: Transport) -> Candidate {
    let alpn = if transport == Transport::Quic { "h3" } else { "h2" };
    Candidate {
        address,
        transport,
        security: Security::Tls,
        alpn: vec![alpn.into()],
        ech: None,
        priority: None,
        origin: AddressOrigin::Caller,
    }
}

fn endpoint(security: SecurityParameters) -> Endpoint {
    Endpoint::builder().security(security).build().unwrap()
}

fn host() -> TargetHost {
    TargetHost::Name(NAME.into())
}

async fn connect(endpoint: &Endpoint, server: &Server, transport: Transport) -> Connection {
    let wanted = candidate(server.address, transport);
    wait(endpoint.attempt(&host(), wanted, None)).await.unwrap()
}

async fn ping(connection: &mut Connection) -> io::Result<()> {
    let exchange = async {
        connection.write_all(b"ping").await?;
        connection.flush().await?;
        let mut received = [0; 4];
        connection.read_exact(&mut received).await?;
        assert_eq!(&received, b"pong");
        Ok(())
    };
    wait(exchange).await
}

#[tokio::test]
async fn the_key_exchange_holds_against_quantum_computers_if_the_server_has_that() {
    use eyas::rustls::crypto::ring::kx_group::{SECP256R1, X25519};

    let own = Credentials::of(NAME);
    for transport in TRANSPORTS {
        for (groups, negotiated) in [
            (eyas::crypto_provider().kx_groups, "X25519MLKEM768"),
            (vec![X25519], "X25519"),
            // After a HelloRetryRequest (RFC 8446 §4.1.4).
            (vec![SECP256R1], "secp256r1"),
        ] {
            let server = Server::start(own.config_with_groups(groups));
            let mut connection = connect(&endpoint(own.trusted()), &server, transport).await;
            assert_eq!(connection.info().key_exchange, Some(negotiated), "{transport}");
            ping(&mut connection).await.unwrap();
        }
    }
}

#[tokio::test]
async fn groups_for_key_exchange_are_those_that_were_chosen() {
    use eyas::rustls::NamedGroup::{X25519, X25519MLKEM768, secp256r1, secp521r1};

    let own = Credentials::of(NAME);
    for transport in TRANSPORTS {
        for (groups, negotiated) in [
            (&[X25519][..], "X25519"),
            (&[secp256r1, X25519], "secp256r1"),
            (&[X25519, X25519MLKEM768], "X25519"),
            (&[secp256r1], "secp256r1"),
            (&[], "X25519MLKEM768"),
        ] {
            // It takes the group whose share it gets, which is the first.
            let server = Server::start(own.config(None));
            let security = own.trusted().with_key_exchange_groups(groups.iter().copied());
            let connection = connect(&endpoint(security), &server, transport).await;
            assert_eq!(connection.info().key_exchange, Some(negotiated), "{transport} {groups:?}");
        }
    }
    let unknown = own.trusted().with_key_exchange_groups([secp521r1]);
    let error = Endpoint::builder().security(unknown).build().unwrap_err().to_string();
    assert!(error.contains("there is no key exchange secp521r1 here"), "{error}");
}

#[tokio::test]
async fn a_client_certificate_is_sent_if_requested() {
    let (own, client) = (Credentials::of(NAME), Credentials::of("client.example"));
    for transport in TRANSPORTS {
        let mut server = Server::start(own.config(Some(&client)));
        let security =
            own.trusted().with_client_certificate(vec![client.certificate.clone()], client.key());
        let mut connection = connect(&endpoint(security), &server, transport).await;
        ping(&mut connection).await.unwrap();
        let seen = wait(server.handshakes.recv()).await.unwrap();
        assert_eq!(seen, Ok(vec![client.certificate.clone()]), "{transport}");
    }
}

#[tokio::test]
async fn without_a_certificate_or_with_another_one_nothing_passes() {
    let (own, client) = (Credentials::of(NAME), Credentials::of("client.example"));
    let other = Credentials::of("other.example");
    let with_other =
        own.trusted().with_client_certificate(vec![other.certificate.clone()], other.key());
    for transport in TRANSPORTS {
        for security in [own.trusted(), with_other.clone()] {
            let mut server = Server::start(own.config(Some(&client)));
            let wanted = candidate(server.address, transport);
            // In TLS 1.3 the client completes before the server has verified its certificate.
            if let Ok(mut connection) =
                wait(endpoint(security).attempt(&host(), wanted, None)).await
            {
                ping(&mut connection).await.unwrap_err();
            }
            let seen = wait(server.handshakes.recv()).await.unwrap();
            assert!(seen.is_err(), "{transport}: {seen:?}");
        }
    }
}

#[tokio::test]
async fn a_second_handshake_is_resumed_unless_that_is_switched_off() {
    let own = Credentials::of(NAME);
    for transport in TRANSPORTS {
        for (security, resumed) in [(own.trusted(), 1), (own.trusted().without_resumption(), 0)] {
            let sessions = Sessions::new();
            let mut config = own.config(None);
            config.session_storage = sessions.clone();
            let server = Server::start(config);
            let endpoint = endpoint(security);
            for _ in 0..2 {
                ping(&mut connect(&endpoint, &server, transport).await).await.unwrap();
            }
            assert_eq!(sessions.resumed.load(Ordering::SeqCst), resumed, "{transport}");
        }
    }
}

#[tokio::test]
async fn a_session_of_one_transport_is_not_resumed_over_the_other() {
    let own = Credentials::of(NAME);
    let sessions = Sessions::new();
    let mut config = own.config(None);
    config.session_storage = sessions.clone();
    let server = Server::start(config);
    let endpoint = endpoint(own.trusted());
    for transport in TRANSPORTS {
        ping(&mut connect(&endpoint, &server, transport).await).await.unwrap();
    }
    assert_eq!(sessions.resumed.load(Ordering::SeqCst), 0);
}

/// Sends `ping` as early data, if possible. Returns the result of the exchange and whether the
/// server accepted the early data.
async fn early_ping(endpoint: &Endpoint, server: &Server) -> Option<(io::Result<()>, bool)> {
    let wanted = candidate(server.address, Transport::Quic);
    let target = Target::https(host(), server.address.port());
    let early = wait(endpoint.early(&target, wanted)).await?;
    let (mut sending, mut receiving) = early.quic().open_bi().await.unwrap();
    sending.write_all(b"ping").await.unwrap();
    let (mut connection, accepted) = wait(early.confirmed()).await.unwrap();
    if !accepted {
        // The stream is lost; the connection is still usable.
        assert!(receiving.read_exact(&mut [0; 4]).await.is_err());
        return Some((ping(&mut connection).await, false));
    }
    let mut received = [0; 4];
    wait(receiving.read_exact(&mut received)).await.unwrap();
    assert_eq!(&received, b"pong");
    Some((Ok(()), true))
}

#[tokio::test]
async fn early_data_needs_a_session_and_must_be_enabled() {
    let own = Credentials::of(NAME);
    let mut config = own.config(None);
    config.max_early_data_size = u32::MAX;
    let server = Server::start(config);
    let with_early_data = endpoint(own.trusted().with_early_data(true));
    assert!(early_ping(&with_early_data, &server).await.is_none(), "there is no session yet");
    ping(&mut connect(&with_early_data, &server, Transport::Quic).await).await.unwrap();
    let (answered, accepted) = early_ping(&with_early_data, &server).await.unwrap();
    assert!(answered.is_ok() && accepted);
    let unasked = endpoint(own.trusted());
    ping(&mut connect(&unasked, &server, Transport::Quic).await).await.unwrap();
    assert!(early_ping(&unasked, &server).await.is_none());
}

#[tokio::test]
async fn rejected_early_data_leaves_a_working_connection() {
    let own = Credentials::of(NAME);
    let mut config = own.config(None);
    config.max_early_data_size = u32::MAX;
    let server = Server::start(config.clone());
    let endpoint = endpoint(own.trusted().with_early_data(true));
    ping(&mut connect(&endpoint, &server, Transport::Quic).await).await.unwrap();
    // Another server with the same name, which does not know the session.
    config.session_storage = Sessions::new();
    let other_server = Server::start(config);
    let (answered, accepted) = early_ping(&endpoint, &other_server).await.unwrap();
    assert!(answered.is_ok() && !accepted, "{answered:?}");
}

/// What is passed on read by read goes on together. The connection breaks after the last record: the reader learns of
/// that, too, and not of an end.
#[tokio::test]
async fn records_that_have_arrived_are_read_together() {
    const RECORDS: usize = 3 * 16 * 1024;
    let scene = Scene::new([Transport::Tcp]).await;
    let connecting = scene.endpoint.preconnection(scene.target()).connect();
    let (client, mut server) =
        wait(async { tokio::join!(connecting, scene.listener.accept()) }).await;
    let mut client = client.unwrap();
    // It is in the client's socket once it is written.
    wait(server.write_all(&[7; RECORDS])).await.unwrap();
    wait(server.flush()).await.unwrap();
    drop(server);
    let mut buffer = vec![0; 4 * RECORDS];
    assert_eq!(wait(client.read(&mut buffer)).await.unwrap(), RECORDS);
    let broken = wait(client.read(&mut buffer)).await.unwrap_err();
    assert_eq!(broken.kind(), io::ErrorKind::UnexpectedEof);
}
