//! Counts the CPU time of full handshakes, both ends in this process, without sockets: `rival-tls KEY CERTIFICATE`, two
//! DER files, of PKCS #8 and X.509. Each line that it prints has a provider with its key exchange, a column and a figure.

use std::fs;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, quic};

#[cfg(feature = "eyas")]
#[expect(dead_code, reason = "eyas also wants to know which exchange it was")]
#[path = "../../../../crates/eyas/src/security/key_exchange.rs"]
mod key_exchange;

/// Handshakes of one figure.
const HANDSHAKES: u32 = 1000;

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [key, certificate] = &paths[..] else { panic!("two files are needed") };
    let key = PrivatePkcs8KeyDer::from(fs::read(key).expect("the key"));
    let certificate = CertificateDer::from(fs::read(certificate).expect("the certificate"));
    for (name, provider) in providers() {
        let (client, server) = configs(provider, key.clone_key().into(), &certificate);
        for (column, handshake) in [("TLS", over_tls as fn(_, _)), ("QUIC", over_quic)] {
            handshake(Arc::clone(&client), Arc::clone(&server));
            let before = cpu_time();
            for _ in 0..HANDSHAKES {
                handshake(Arc::clone(&client), Arc::clone(&server));
            }
            println!("{name}\t{column}\t{:.2}", (cpu_time() - before) / f64::from(HANDSHAKES));
        }
    }
}

fn providers() -> Vec<(&'static str, CryptoProvider)> {
    let mut providers = Vec::new();
    #[cfg(feature = "ring")]
    {
        use rustls::crypto::ring::{default_provider, kx_group};
        let kx_groups = vec![kx_group::X25519];
        providers.push(("ring, X25519", CryptoProvider { kx_groups, ..default_provider() }));
    }
    #[cfg(feature = "eyas")]
    providers.push(("ring and libcrux, X25519MLKEM768", key_exchange::crypto_provider()));
    #[cfg(feature = "aws-lc-rs")]
    {
        use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
        let kx_groups = vec![kx_group::X25519];
        providers.push(("aws-lc-rs, X25519", CryptoProvider { kx_groups, ..default_provider() }));
        let kx_groups = vec![kx_group::X25519MLKEM768, kx_group::X25519];
        providers
            .push(("aws-lc-rs, X25519MLKEM768", CryptoProvider { kx_groups, ..default_provider() }));
    }
    providers
}

fn configs(
    provider: CryptoProvider,
    key: PrivateKeyDer<'static>,
    certificate: &CertificateDer<'static>,
) -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let provider = Arc::new(provider);
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a root");
    let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.resumption = Resumption::disabled();
    let server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("a pair");
    (Arc::new(client), Arc::new(server))
}

fn name() -> ServerName<'static> {
    "localhost".try_into().expect("a name")
}

fn over_tls(client: Arc<ClientConfig>, server: Arc<ServerConfig>) {
    let mut client = ClientConnection::new(client, name()).expect("a client");
    let mut server = ServerConnection::new(server).expect("a server");
    let mut octets = Vec::new();
    while client.is_handshaking() || server.is_handshaking() {
        while client.wants_write() {
            client.write_tls(&mut octets).expect("memory");
        }
        let mut rest = &octets[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).expect("memory");
            server.process_new_packets().expect("a handshake");
        }
        octets.clear();
        while server.wants_write() {
            server.write_tls(&mut octets).expect("memory");
        }
        let mut rest = &octets[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).expect("memory");
            client.process_new_packets().expect("a handshake");
        }
        octets.clear();
    }
}

fn over_quic(client: Arc<ClientConfig>, server: Arc<ServerConfig>) {
    let version = quic::Version::V1;
    let mut client: quic::Connection =
        quic::ClientConnection::new(client, version, name(), Vec::new()).expect("a client").into();
    let mut server: quic::Connection =
        quic::ServerConnection::new(server, version, Vec::new()).expect("a server").into();
    while client.is_handshaking() || server.is_handshaking() {
        pass(&mut client, &mut server);
        pass(&mut server, &mut client);
    }
}

/// Passes on all that one end has to say, level by level.
fn pass(from: &mut quic::Connection, to: &mut quic::Connection) {
    loop {
        let mut octets = Vec::new();
        let keys = from.write_hs(&mut octets);
        if octets.is_empty() && keys.is_none() {
            break;
        }
        if !octets.is_empty() {
            to.read_hs(&octets).expect("a handshake");
        }
    }
}

/// Returns the CPU time of this process, in microseconds.
fn cpu_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a time into the variable.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
