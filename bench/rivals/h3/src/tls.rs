//! Endpoints with a certificate of their own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{Endpoint, TransportConfig};
use rustls::RootCertStore;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::Failure;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// As quinn has it, but idle connections stay open.
fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(None);
    Arc::new(transport)
}

/// Returns a server, and writes its certificate.
pub fn server(certificate: &str) -> Result<Endpoint, Failure> {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    std::fs::write(certificate, own.cert.pem())?;
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der())?;
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let tls = Arc::new(QuicServerConfig::try_from(tls)?);
    let mut config = quinn::ServerConfig::with_crypto(tls);
    config.transport_config(transport());
    Ok(Endpoint::server(config, LOOPBACK)?)
}

/// Returns a client that trusts that certificate.
pub fn client(certificate: &str) -> Result<Endpoint, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate)?)?;
    let mut tls =
        rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    tls.resumption = Resumption::disabled();
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    let mut endpoint = Endpoint::client(LOOPBACK)?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}
