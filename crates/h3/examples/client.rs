//! `client CERTIFICATE.pem HOST ADDRESS:PORT PATH` gets a page from a server that has this certificate.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a program, not the core")]

mod over_quinn;

use std::{io::Write as _, sync::Arc};

use eyas_h3::{Role, qpack::Sensitivity::Ordinary, whole::Event};
use over_quinn::{Failure, H3OverQuinn};
use quinn::{ClientConfig, Endpoint, crypto::rustls::QuicClientConfig};
use rustls::{RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject as _};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let [_, certificate, host, address, path] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("client CERTIFICATE.pem HOST ADDRESS:PORT PATH".into());
    };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate)?)?;
    let mut tls =
        rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let endpoint = Endpoint::client("[::]:0".parse()?)?;
    let quic = endpoint.connect_with(config, address.parse()?, host)?.await?;

    let mut h3 = H3OverQuinn::new(quic, Role::Client);
    let fields = [(":method", "GET"), (":scheme", "https"), (":authority", host), (":path", path)];
    let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes(), Ordinary));
    h3.core.send_request(fields.into_iter(), true)?;
    loop {
        match h3.next_event().await? {
            Event::Head { fields, .. } => eprintln!("{fields:?}"),
            Event::Data { data, .. } => std::io::stdout().write_all(&data)?,
            Event::Failed { failure, .. } => return Err(format!("{failure:?}").into()),
            Event::End { .. } => break,
            _ => {}
        }
    }
    drop(h3);
    endpoint.wait_idle().await;
    Ok(())
}
