//! A server that wants a client certificate, and gets none or another one: over TLS 1.3 it says so
//! only after the client's handshake is complete (RFC 8446 §2).

use std::sync::Arc;

use eyas::{SecurityParameters, ServerIdentity, rustls};
use eyas_http::{Kind, Versions};
use rustls::server::WebPkiClientVerifier;
use tokio::{io::AsyncReadExt, net::TcpListener, task::JoinSet};

use crate::{ports::own_port, site};

fn configuration(
    identity: &ServerIdentity,
    client: &ServerIdentity,
    alpn: &str,
) -> rustls::ServerConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(client.certificate().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .expect("a verifier");
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain().to_vec(), identity.private_key())
        .expect("an identity");
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    config
}

/// Accepts TLS connections, and reads them to their end.
async fn over_tcp(config: rustls::ServerConfig, port: u16, tasks: &mut JoinSet<()>) {
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a free port");
    tasks.spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.expect("a client");
            if let Ok(mut tls) = acceptor.accept(tcp).await {
                let _ = tls.read_to_end(&mut Vec::new()).await;
            }
        }
    });
}

fn over_quic(config: rustls::ServerConfig, port: u16, tasks: &mut JoinSet<()>) {
    let tls = quinn::crypto::rustls::QuicServerConfig::try_from(config).expect("a cipher suite");
    let config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    let endpoint = quinn::Endpoint::server(config, ([127, 0, 0, 1], port).into());
    let endpoint = endpoint.expect("a free port");
    tasks.spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            if let Ok(quic) = incoming.await {
                quic.closed().await;
            }
        }
    });
}

#[tokio::test]
async fn a_missing_or_unknown_client_certificate_is_an_error_of_tls() {
    let identity = site::identity(&[site::NAME]);
    let wanted = ServerIdentity::self_signed(["client.example"]).expect("an identity");
    let other = ServerIdentity::self_signed(["other.example"]).expect("an identity");
    for (alpn, versions) in [
        ("http/1.1", Versions { http1: true, http2: false, http3: false }),
        ("h2", Versions { http1: false, http2: true, http3: false }),
        ("h3", Versions { http1: false, http2: false, http3: true }),
    ] {
        for (client, words) in [(None, "requires a client certificate"), (Some(&other), "our")] {
            let (port, mut tasks) = (own_port(), JoinSet::new());
            let config = configuration(&identity, &wanted, alpn);
            match alpn {
                "h3" => over_quic(config, port, &mut tasks),
                _ => over_tcp(config, port, &mut tasks).await,
            }
            let mut security =
                SecurityParameters::platform().with_roots(vec![identity.certificate().clone()]);
            if let Some(client) = client {
                let chain = client.chain().to_vec();
                security = security.with_client_certificate(chain, client.private_key());
            }
            let endpoint = eyas::Endpoint::builder()
                .security(security)
                .resolver(eyas::Resolver::system().overriding(
                    site::NAME,
                    port,
                    vec!["127.0.0.1".parse().expect("an address")],
                ))
                .memory(eyas::MemoryStore::none())
                .build()
                .expect("an endpoint");
            let built = eyas_http::Client::builder()
                .endpoint(endpoint)
                .proxy(eyas_http::Proxy::none())
                .versions(versions)
                .build();
            let client = built.expect("a client");
            let sent = client.get(format!("https://{}:{port}/", site::NAME)).send();
            let error = tokio::time::timeout(site::SOON, sent).await.expect("in time");
            let error = error.expect_err("no certificate");
            assert_eq!(error.kind(), Kind::Tls, "{alpn}: {error}");
            assert!(error.to_string().contains(words), "{alpn}: {error}");
        }
    }
}
