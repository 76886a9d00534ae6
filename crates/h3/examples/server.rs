//! `server CERTIFICATE.pem ADDRESS:PORT` writes the certificate that it generates, and echoes what it gets.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a program, not the core")]

mod over_quinn;

use std::sync::Arc;

use bytes::Bytes;
use eyas_h3::{Role, qpack::Sensitivity::Ordinary, whole::Event};
use over_quinn::{Failure, H3OverQuinn};
use quinn::{Endpoint, Incoming, ServerConfig, crypto::rustls::QuicServerConfig};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let [_, certificate, address] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("server CERTIFICATE.pem ADDRESS:PORT".into());
    };
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    std::fs::write(certificate, own.cert.pem())?;
    let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der())?;
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let endpoint = Endpoint::server(config, address.parse()?)?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async { serve(incoming).await.unwrap_or_else(|end| eprintln!("{end}")) });
    }
    Ok(())
}

async fn serve(incoming: Incoming) -> Result<(), Failure> {
    let mut h3 = H3OverQuinn::new(incoming.await?, Role::Server);
    loop {
        match h3.next_event().await? {
            Event::Head { stream, .. } => {
                let fields = [(&b":status"[..], &b"200"[..], Ordinary)];
                h3.core.send_response(stream, fields.into_iter(), false)?;
            }
            Event::Data { stream, data } => h3.core.send_data(stream, data, false)?,
            Event::End { stream } => h3.core.send_data(stream, Bytes::new(), true)?,
            _ => {}
        }
    }
}
