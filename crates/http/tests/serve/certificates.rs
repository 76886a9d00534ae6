//! Certificates of a server by name and replaced at run time, and those of its clients, over every
//! transport.

use std::{convert::Infallible, sync::Arc, time::Duration};

use eyas::{
    Endpoint, MemoryStore, Resolver, SecurityParameters, ServerIdentity,
    race::{
        candidate::{Security, Transport},
        policy::{Policy, SctpSecurity},
        target::{Target, TargetHost},
    },
    rustls::{
        crypto::ring::sign::any_supported_type,
        server::{ClientHello, ResolvesServerCert},
        sign::CertifiedKey,
    },
};
use eyas_http::{
    Client, Kind, Proxy, Versions,
    serve::{
        ClientCertificates, PeerInfo, RequestBody, Running, SctpService, Server, ServerBuilder,
    },
};
use http::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const NAMES: [&str; 2] = ["a.example", "b.example"];

/// Answers with the name in the handshake and the number of the client's certificates.
async fn answer(request: Request<RequestBody>) -> Result<Response<String>, Infallible> {
    let peer = request.extensions().get::<PeerInfo>().expect("information");
    let name = peer.server_name.as_deref().unwrap_or("none");
    let certificates = peer.client_certificates.as_ref().map_or(0, |chain| chain.len());
    Ok(Response::new(format!("{name} {certificates}")))
}

fn identity(name: &str) -> ServerIdentity {
    ServerIdentity::self_signed([name]).expect("an identity")
}

async fn start(builder: ServerBuilder) -> Running {
    let builder = builder.sctp(SctpService::with_free_port());
    builder.service(tower::service_fn(answer)).start().await.expect("it starts")
}

/// How a client reaches the server: over each transport and version.
#[derive(Clone, Copy, Debug)]
struct Way {
    versions: Versions,
    transport: Transport,
}

fn ways() -> Vec<Way> {
    let over = |transport, http1, http2, http3| Way {
        versions: Versions { http1, http2, http3 },
        transport,
    };
    vec![
        over(Transport::Tcp, true, false, false),
        over(Transport::Tcp, false, true, false),
        over(Transport::Quic, false, false, true),
        over(Transport::SctpUdp, true, false, false),
    ]
}

/// An endpoint that trusts one certificate, and may have one.
fn endpoint(server: &Running, trusted: &ServerIdentity, own: Option<&ServerIdentity>) -> Endpoint {
    let mut security =
        SecurityParameters::platform().with_roots(vec![trusted.certificate().clone()]);
    if let Some(own) = own {
        security = security.with_client_certificate(own.chain().to_vec(), own.private_key());
    }
    let port = server.local_addr().port();
    let resolver = NAMES.into_iter().fold(Resolver::system(), |resolver, name| {
        resolver.overriding(name, port, vec!["127.0.0.1".parse().expect("an address")])
    });
    let encapsulation = server.sctp().and_then(|sctp| sctp.encapsulation_port());
    Endpoint::builder()
        .security(security)
        .resolver(resolver)
        .memory(MemoryStore::none())
        .sctp_encapsulation_port(encapsulation.expect("SCTP inside UDP"))
        .build()
        .expect("an endpoint")
}

/// A client at such an endpoint.
fn client(
    server: &Running,
    way: Way,
    trusted: &ServerIdentity,
    own: Option<&ServerIdentity>,
) -> Client {
    let endpoint = endpoint(server, trusted, own);
    let race = Policy { transports: vec![way.transport], ..Policy::default() };
    let builder = Client::builder().endpoint(endpoint).proxy(Proxy::none());
    builder.versions(way.versions).race(race).build().expect("a client")
}

fn url(server: &Running, name: &str) -> String {
    format!("https://{name}:{}/", server.local_addr().port())
}

async fn text(client: &Client, server: &Running, name: &str) -> Result<String, eyas_http::Error> {
    client.get(url(server, name)).send().await?.text().await
}

/// Fetches a page over SCTP inside DTLS, which HTTP clients of eyas do not use.
async fn text_over_dtls(
    endpoint: &Endpoint,
    server: &Running,
    name: &str,
) -> Result<String, eyas::ConnectError> {
    let (host, port) = (TargetHost::Name(name.into()), server.local_addr().port());
    let target = Target::plain(host, port, vec![Transport::SctpUdp], Security::Tls);
    let policy = Policy {
        transports: vec![Transport::SctpUdp],
        sctp_security: SctpSecurity::Dtls,
        ..Policy::default()
    };
    let mut connection = endpoint.preconnection(target).policy(policy).connect().await?;
    let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.expect("a response");
    Ok(answer)
}

/// Chooses a certificate by the name that the client asks for.
#[derive(Debug)]
struct ByName(Vec<(&'static str, Arc<CertifiedKey>)>);

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?;
        self.0.iter().find(|(one, _)| *one == name).map(|(_, key)| Arc::clone(key))
    }
}

#[tokio::test]
async fn a_resolver_chooses_the_certificate_by_name() {
    let identities = NAMES.map(identity);
    let certified = |identity: &ServerIdentity| {
        let key = any_supported_type(&identity.private_key()).expect("a key");
        Arc::new(CertifiedKey::new(identity.chain().to_vec(), key))
    };
    let named = NAMES.into_iter().zip(identities.iter().map(certified)).collect();
    let server = start(Server::builder().certificates(Arc::new(ByName(named)))).await;
    assert!(server.identity().is_none());
    for way in ways() {
        for (name, own) in NAMES.into_iter().zip(&identities) {
            let reached = text(&client(&server, way, own, None), &server, name).await;
            assert_eq!(reached.expect("its certificate"), format!("{name} 0"), "{way:?}");
        }
        // The certificate of the one is not that of the other.
        let other = client(&server, way, &identities[1], None);
        let error = text(&other, &server, NAMES[0]).await.expect_err("another certificate");
        assert_eq!(error.kind(), Kind::Certificate, "{way:?}: {error}");
    }
    assert!(server.replace_identity(&identities[0]).is_err(), "the resolver decides");
}

#[tokio::test]
async fn several_identities_are_chosen_by_name_and_replaced_together() {
    let (old, new) = (NAMES.map(identity), NAMES.map(identity));
    let server = start(Server::builder().identities(old.clone())).await;
    for (current, former) in [(&old, None), (&new, Some(&old))] {
        if former.is_some() {
            server.replace_identities(current).expect("usable");
        }
        for way in ways() {
            for (place, name) in NAMES.into_iter().enumerate() {
                let trusting = client(&server, way, &current[place], None);
                let reached = text(&trusting, &server, name);
                assert_eq!(reached.await.expect("its certificate"), format!("{name} 0"), "{way:?}");
                let Some(former) = former else { continue };
                let trusting = client(&server, way, &former[place], None);
                let stale = text(&trusting, &server, name);
                let error = stale.await.expect_err("the former certificate");
                assert_eq!(error.kind(), Kind::Certificate, "{way:?}: {error}");
            }
        }
    }
    assert!(server.replace_identities(&[]).is_err());
}

#[tokio::test]
async fn roots_of_client_certificates_are_replaced() {
    let (old, new) = (identity("old.example"), identity("new.example"));
    let (name, served) = (NAMES[0], identity(NAMES[0]));
    let roots = |root: &ServerIdentity| ClientCertificates::required([root.certificate().clone()]);
    let builder = Server::builder().tls(served.clone()).client_certificates(roots(&old));
    let server = start(builder).await;
    let before: Vec<_> =
        ways().into_iter().map(|way| client(&server, way, &served, Some(&old))).collect();
    for client in &before {
        text(client, &server, name).await.expect("known");
    }
    server.replace_client_certificates(&roots(&new)).expect("usable");
    for (client, way) in before.iter().zip(ways()) {
        let response = client.get(url(&server, name)).send().await.expect("it goes on");
        assert!(response.connection_was_reused(), "{way:?}");
    }
    for way in ways() {
        let known = client(&server, way, &served, Some(&new));
        text(&known, &server, name).await.expect("the new root");
        let unknown = client(&server, way, &served, Some(&old));
        text(&unknown, &server, name).await.expect_err("the old root, without resumption");
    }
    assert!(server.replace_client_certificates(&ClientCertificates::required([])).is_err());
    let without = start(Server::builder().tls(served)).await;
    assert!(without.replace_client_certificates(&roots(&new)).is_err());
}

#[tokio::test]
async fn an_identity_is_replaced_while_connections_go_on() {
    let [old, new] = [identity(NAMES[0]), identity(NAMES[0])];
    let server = start(Server::builder().tls(old.clone())).await;
    let dtls = endpoint(&server, &old, None);
    let answer = text_over_dtls(&dtls, &server, NAMES[0]).await.expect("the old certificate");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let before: Vec<_> = ways().into_iter().map(|way| client(&server, way, &old, None)).collect();
    for client in &before {
        text(client, &server, NAMES[0]).await.expect("the old certificate");
    }
    server.replace_identity(&new).expect("a usable identity");
    for (client, way) in before.iter().zip(ways()) {
        let response = client.get(url(&server, NAMES[0])).send().await.expect("it goes on");
        assert!(response.connection_was_reused(), "{way:?}");
    }
    for way in ways() {
        let reached = text(&client(&server, way, &new, None), &server, NAMES[0]).await;
        reached.expect("the new certificate");
        let stale = text(&client(&server, way, &old, None), &server, NAMES[0]).await;
        let error = stale.expect_err("the old certificate");
        assert_eq!(error.kind(), Kind::Certificate, "{way:?}: {error}");
    }
    let stale = text_over_dtls(&dtls, &server, NAMES[0]).await;
    let error = stale.expect_err("the old certificate").to_string();
    assert!(error.contains("certificate"), "{error}");
    let dtls = endpoint(&server, &new, None);
    text_over_dtls(&dtls, &server, NAMES[0]).await.expect("the new certificate");
    // What DTLS cannot use is refused as a whole.
    let pem = include_bytes!("ed25519.pem");
    let ed25519 = ServerIdentity::from_pem(pem, pem).expect("an identity");
    let error = server.replace_identity(&ed25519).expect_err("DTLS is served").to_string();
    assert!(error.contains("ECDSA"), "{error}");
    for way in ways() {
        let reached = text(&client(&server, way, &new, None), &server, NAMES[0]).await;
        reached.expect("the certificate from before");
    }
}

#[tokio::test]
async fn dtls_is_served_only_where_its_library_can_do_what_is_asked() {
    let served = identity(NAMES[0]);
    let key = any_supported_type(&served.private_key()).expect("a key");
    let certified = Arc::new(CertifiedKey::new(served.chain().to_vec(), key));
    let resolver = Arc::new(ByName(vec![(NAMES[0], certified)]));
    let clients = ClientCertificates::optional([served.certificate().clone()]);
    for (builder, is_served) in [
        (Server::builder().tls(served.clone()), true),
        (Server::builder().certificates(resolver), false),
        (Server::builder().tls(served.clone()).client_certificates(clients), false),
    ] {
        let server = start(builder).await;
        let endpoint = endpoint(&server, &served, None);
        let reached = text_over_dtls(&endpoint, &server, NAMES[0]);
        // Nothing answers a handshake that is not served.
        let patience = Duration::from_secs(if is_served { 60 } else { 1 });
        let reached = tokio::time::timeout(patience, reached).await;
        assert_eq!(matches!(reached, Ok(Ok(_))), is_served, "{reached:?}");
    }
}

#[tokio::test]
async fn client_certificates_are_verified_and_shown_to_the_service() {
    let (own, other) = (identity("client.example"), identity("other.example"));
    let roots = || [own.certificate().clone()];
    for asked in [ClientCertificates::required(roots()), ClientCertificates::optional(roots())] {
        let name = NAMES[0];
        let served = identity(name);
        let builder = Server::builder().tls(served.clone()).client_certificates(asked.clone());
        let server = start(builder).await;
        for way in ways() {
            let known = client(&server, way, &served, Some(&own));
            assert_eq!(text(&known, &server, name).await.expect("known"), format!("{name} 1"));
            let unknown = client(&server, way, &served, Some(&other));
            text(&unknown, &server, name).await.expect_err("another root has issued it");
            let anonymous = text(&client(&server, way, &served, None), &server, name).await;
            if format!("{asked:?}").contains("are_required: true") {
                let error = anonymous.expect_err("no certificate");
                assert_eq!(error.kind(), Kind::Tls, "{way:?}: {error}");
            } else {
                assert_eq!(anonymous.expect("served"), format!("{name} 0"), "{way:?}");
            }
        }
    }
}

#[tokio::test]
async fn roots_that_are_none_are_refused_at_the_start() {
    let builder = Server::builder().client_certificates(ClientCertificates::required([]));
    let error = builder.start().await.expect_err("no roots");
    assert!(error.to_string().contains("client certificates"), "{error}");
}
