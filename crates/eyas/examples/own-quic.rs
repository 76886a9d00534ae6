//! A race for a protocol that needs its own QUIC configuration, as WebTransport and MoQ do: every
//! address of the host under Happy Eyeballs, with the caller's configuration of quinn.
//!
//! `cargo run -p eyas --example own-quic -- example.org 443 h3`

use std::error::Error;
use std::sync::Arc;

use eyas::quinn::crypto::rustls::QuicClientConfig;
use eyas::race::policy::Policy;
use eyas::rustls::{self, ClientConfig};
use eyas::{Connection, Endpoint, Security, Target, TargetHost, Transport, quinn};

/// The QUIC configuration of the protocol.
pub(crate) fn quic_config(
    mut tls: ClientConfig,
    alpn: &str,
) -> Result<quinn::ClientConfig, Box<dyn Error>> {
    tls.alpn_protocols = vec![alpn.into()];
    let mut transport = quinn::TransportConfig::default();
    transport.max_concurrent_uni_streams(1_000_u32.into()).datagram_receive_buffer_size(None);
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

pub(crate) async fn connect(
    endpoint: &Endpoint,
    (host, port, alpn): (&str, u16, &str),
    config: quinn::ClientConfig,
) -> Result<Connection, Box<dyn Error>> {
    let host = TargetHost::parse(host)?;
    let target = Target::plain(host, port, vec![Transport::Quic], Security::Tls).with_alpn([alpn]);
    let race = endpoint
        .preconnection(target)
        .policy(Policy { transports: vec![Transport::Quic], ..Policy::default() });
    Ok(race.quic_config(config).connect().await?)
}

fn tls() -> Result<ClientConfig, Box<dyn Error>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = rustls_platform_verifier::Verifier::new(Arc::clone(&provider))?;
    Ok(ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [host, port, alpn] = &std::env::args().skip(1).collect::<Vec<_>>()[..] else {
        return Err("give host, port and ALPN".into());
    };
    let config = quic_config(tls()?, alpn)?;
    let endpoint = Endpoint::builder().build()?;
    let connection = connect(&endpoint, (host, port.parse()?, alpn), config).await?;
    // From here on quinn is used directly: streams, datagrams, whatever the protocol needs.
    let quic: &quinn::Connection = connection.quic().ok_or("only QUIC was raced")?;
    println!("{} after {:?}", quic.remote_address(), connection.info().timings.security);
    quic.close(0_u32.into(), b"bye");
    Ok(())
}
