//! One candidate at a time, over real sockets on loopback.

use std::net::SocketAddr;

use eyas::race::candidate::{AddressOrigin, Candidate, Security, Transport};
use eyas::race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use eyas::race::target::TargetHost;
use eyas::{Connection, Endpoint, ListenParameters, Listener, SecurityParameters, ServerIdentity};

use crate::common::{own_address, ping_pong, wait};

fn candidate(address: SocketAddr, transport: Transport, security: Security) -> Candidate {
    Candidate {
        address,
        transport,
        security,
        alpn: vec![],
        ech: None,
        priority: None,
        origin: AddressOrigin::Caller,
    }
}

fn localhost() -> TargetHost {
    TargetHost::Name("localhost".into())
}

fn identity() -> ServerIdentity {
    ServerIdentity::self_signed(["localhost"]).unwrap()
}

fn trusting(identity: &ServerIdentity) -> Endpoint {
    let security = SecurityParameters::platform().with_roots([identity.certificate().clone()]);
    Endpoint::builder().security(security).build().unwrap()
}

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

async fn try_one(endpoint: &Endpoint, candidate: Candidate) -> Result<Connection, AttemptFailure> {
    wait(endpoint.attempt(&localhost(), candidate, None)).await
}

#[tokio::test]
async fn plain_tcp_carries_bytes() {
    let listener = Listener::bind(ListenParameters::new(any_port())).await.unwrap();
    let endpoint = Endpoint::builder().build().unwrap();
    let wanted = candidate(listener.local_addr(), Transport::Tcp, Security::None);
    let client = try_one(&endpoint, wanted).await.unwrap();
    assert_eq!(client.info().transport, Transport::Tcp);
    assert_eq!(client.info().security, Security::None);
    assert_eq!(client.info().protocol, None);
    assert!(client.info().rtt.is_some());
    ping_pong(&listener, client).await;
}

#[tokio::test]
async fn tls_reports_version_and_application_protocol() {
    let identity = identity();
    let parameters = ListenParameters::new(any_port())
        .security(identity.clone())
        .with_alpn(["h3", "h2", "http/1.1"]);
    let listener = Listener::bind(parameters).await.unwrap();
    let mut wanted = candidate(listener.local_addr(), Transport::Tcp, Security::Tls);
    wanted.alpn = vec!["http/1.1".into(), "h2".into()];
    let client = try_one(&trusting(&identity), wanted).await.unwrap();
    assert_eq!(client.info().security, Security::Tls);
    assert_eq!(client.info().protocol, Some("TLSv1.3"));
    assert_eq!(client.info().alpn.as_deref(), Some("h2"), "the server's order decides");
    assert_eq!(&client.info().peer_certificates[0], identity.certificate());
    ping_pong(&listener, client).await;
}

#[tokio::test]
async fn tls_uses_the_configured_version_and_suite() {
    use eyas::rustls::crypto::ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;

    let identity = identity();
    let parameters = ListenParameters::new(any_port()).security(identity.clone());
    let listener = Listener::bind(parameters).await.unwrap();
    let security = SecurityParameters::platform()
        .with_roots([identity.certificate().clone()])
        .with_tls_versions([&eyas::rustls::version::TLS12])
        .with_cipher_suites([TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]);
    let endpoint = Endpoint::builder().security(security).build().unwrap();
    let wanted = candidate(listener.local_addr(), Transport::Tcp, Security::Tls);
    let client = try_one(&endpoint, wanted).await.unwrap();
    assert_eq!(client.info().protocol, Some("TLSv1.2"));
    ping_pong(&listener, client).await;
}

#[tokio::test]
async fn a_closed_port_refuses() {
    let closed = candidate(own_address(), Transport::Tcp, Security::None);
    let endpoint = Endpoint::builder().build().unwrap();
    let failure = try_one(&endpoint, closed).await.unwrap_err();
    assert_eq!((failure.cause, failure.reached), (FailureCause::Refused, EvidenceLevel::Started));
}

/// Accepts one connection, sends these bytes, and closes it.
fn server_that_sends(bytes: &'static [u8]) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        // Reads the ClientHello, since unread bytes would turn the close into a reset.
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(bytes);
    });
    address
}

#[tokio::test]
async fn closing_during_the_handshake_counts_as_a_reset() {
    let address = server_that_sends(b"");
    let endpoint = trusting(&identity());
    let wanted = candidate(address, Transport::Tcp, Security::Tls);
    let failure = try_one(&endpoint, wanted).await.unwrap_err();
    assert_eq!((failure.cause, failure.reached), (FailureCause::Reset, EvidenceLevel::Transport));
    assert!(failure.detail.contains("closed"), "{failure:?}");
}

#[tokio::test]
async fn a_peer_without_tls_is_a_protocol_error() {
    let address = server_that_sends(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    let endpoint = trusting(&identity());
    let wanted = candidate(address, Transport::Tcp, Security::Tls);
    let failure = try_one(&endpoint, wanted).await.unwrap_err();
    assert_eq!(failure.cause, FailureCause::Protocol, "{failure:?}");
    assert!(failure.detail.contains("does not speak TLS"), "{failure:?}");
}

#[cfg(feature = "quic")]
mod quic {
    use super::*;

    async fn listen(identity: &ServerIdentity, address: &str) -> Listener {
        let parameters = ListenParameters::new(address.parse().unwrap())
            .transports([Transport::Tcp, Transport::Quic])
            .security(identity.clone())
            .with_alpn(["h3", "h2"]);
        Listener::bind(parameters).await.unwrap()
    }

    fn h3(address: SocketAddr) -> Candidate {
        let mut wanted = candidate(address, Transport::Quic, Security::Tls);
        wanted.alpn = vec!["h3".into()];
        wanted
    }

    #[tokio::test]
    async fn one_port_number_serves_tcp_and_quic() {
        let identity = identity();
        let listener = listen(&identity, "127.0.0.1:0").await;
        let endpoint = trusting(&identity);
        let client = try_one(&endpoint, h3(listener.local_addr())).await.unwrap();
        assert_eq!(client.info().transport, Transport::Quic);
        assert_eq!(client.info().alpn.as_deref(), Some("h3"));
        assert_eq!(client.info().local.unwrap().ip(), listener.local_addr().ip());
        assert_eq!(&client.info().peer_certificates[0], identity.certificate());
        assert!(client.quic().is_some());
        ping_pong(&listener, client).await;
        let mut over_tcp = candidate(listener.local_addr(), Transport::Tcp, Security::Tls);
        over_tcp.alpn = vec!["h3".into(), "h2".into()];
        let client = try_one(&endpoint, over_tcp).await.unwrap();
        assert_eq!(client.info().alpn.as_deref(), Some("h2"), "h3 is not for TCP");
        ping_pong(&listener, client).await;
    }

    #[tokio::test]
    async fn one_listener_serves_both_families() {
        let identity = identity();
        let listener = listen(&identity, "[::]:0").await;
        let endpoint = trusting(&identity);
        for address in ["127.0.0.1", "::1"] {
            let address = SocketAddr::new(address.parse().unwrap(), listener.local_addr().port());
            let client = try_one(&endpoint, h3(address)).await.unwrap();
            ping_pong(&listener, client).await;
            let over_tcp = candidate(address, Transport::Tcp, Security::Tls);
            ping_pong(&listener, try_one(&endpoint, over_tcp).await.unwrap()).await;
        }
    }

    #[tokio::test]
    async fn a_closed_udp_port_refuses() {
        let endpoint = trusting(&identity());
        for ip in ["127.0.0.1", "::1"] {
            let closed = SocketAddr::new(ip.parse().unwrap(), own_address().port());
            let failure = try_one(&endpoint, h3(closed)).await.unwrap_err();
            assert_eq!(
                (failure.cause, failure.reached),
                (FailureCause::Refused, EvidenceLevel::Started)
            );
            let expected = format!("nothing is listening on this port (ICMP from {ip})");
            assert_eq!(failure.detail, expected);
        }
    }

    #[tokio::test]
    async fn a_refusal_does_not_affect_other_connections() {
        let identity = identity();
        let listener = listen(&identity, "127.0.0.1:0").await;
        let endpoint = trusting(&identity);
        let host = localhost();
        for _ in 0..3 {
            let refused = endpoint.attempt(&host, h3(own_address()), None);
            let served = endpoint.attempt(&host, h3(listener.local_addr()), None);
            let (refused, served) = wait(async { tokio::join!(refused, served) }).await;
            assert_eq!(refused.unwrap_err().cause, FailureCause::Refused);
            ping_pong(&listener, served.unwrap()).await;
        }
    }

    #[tokio::test]
    async fn an_untrusted_certificate_is_not_silence() {
        let listener = listen(&identity(), "127.0.0.1:0").await;
        let endpoint = trusting(&identity());
        for wanted in [
            h3(listener.local_addr()),
            candidate(listener.local_addr(), Transport::Tcp, Security::Tls),
        ] {
            let failure = try_one(&endpoint, wanted).await.unwrap_err();
            assert_eq!(failure.cause, FailureCause::Certificate, "{failure:?}");
            assert!(failure.reached >= EvidenceLevel::Answered, "{failure:?}");
        }
    }

    #[tokio::test]
    async fn no_common_application_protocol_is_a_tls_failure() {
        let identity = identity();
        let listener = listen(&identity, "127.0.0.1:0").await;
        let endpoint = trusting(&identity);
        for transport in [Transport::Tcp, Transport::Quic] {
            let mut wanted = candidate(listener.local_addr(), transport, Security::Tls);
            wanted.alpn = vec!["no-such-protocol".into()];
            let failure = try_one(&endpoint, wanted).await.unwrap_err();
            assert_eq!(failure.cause, FailureCause::Tls, "{failure:?}");
        }
    }

    #[tokio::test]
    async fn quic_without_security_cannot_be_listened_for() {
        let parameters = ListenParameters::new(any_port()).transports([Transport::Quic]);
        assert!(Listener::bind(parameters).await.is_err());
    }
}
