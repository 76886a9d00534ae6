//! An association inside DTLS over two paths at once: each end accepts only the certificate of the
//! other.
//!
//! `cargo run -p eyas-sctp-tokio --example sctp-dtls`
//!
//! Both ends are in this program, and the two networks are two pairs of loopback addresses.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use eyas_sctp_tokio::protocol::config::{AssociationConfig, MultipathConfig};
use eyas_sctp_tokio::protocol::message::SendInfo;
use eyas_sctp_tokio::{
    DtlsIdentity, DtlsTrust, SctpAssociation, SctpConnector, SctpListenParameters, SctpListener,
    SctpOverIp,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, SignatureScheme};
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};

const SERVER: [&str; 2] = ["127.0.0.21", "127.0.0.22"];
const CLIENT: [&str; 2] = ["127.0.0.23", "127.0.0.24"];
const PORT: u16 = 5000;

/// A certificate, and the same with its key.
pub(crate) struct Credentials {
    certificate: CertificateDer<'static>,
    identity: DtlsIdentity,
}

impl Credentials {
    pub(crate) fn generate() -> Result<Self, Box<dyn Error>> {
        let key = rcgen::KeyPair::generate()?;
        let params = rcgen::CertificateParams::new(vec!["peer.test".to_owned()])?;
        let certificate = params.self_signed(&key)?.der().clone();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        Ok(Self { identity: DtlsIdentity::new(&certificate, &key)?, certificate })
    }
}

/// Accepts one certificate. A program with a certification authority takes the verifiers of rustls.
#[derive(Debug)]
struct Pinned(CertificateDer<'static>);

impl Pinned {
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        match self.0 == *certificate {
            true => Ok(()),
            false => Err(CertificateError::UnknownIssuer.into()),
        }
    }
}

/// The signatures of the handshake are verified by DTLS itself.
macro_rules! signatures_of_dtls {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Err(CertificateError::BadSignature.into())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Err(CertificateError::BadSignature.into())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            Vec::new()
        }
    };
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(certificate).map(|()| ServerCertVerified::assertion())
    }

    signatures_of_dtls!();
}

impl ClientCertVerifier for Pinned {
    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(certificate).map(|()| ClientCertVerified::assertion())
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    signatures_of_dtls!();
}

fn addresses(texts: [&str; 2]) -> Result<Vec<IpAddr>, std::net::AddrParseError> {
    texts.iter().map(|text| text.parse()).collect()
}

fn multipath() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.multipath = Some(MultipathConfig::default());
    config
}

pub(crate) fn listen(
    own: &Credentials,
    client: &Credentials,
) -> Result<SctpListener, Box<dyn Error>> {
    let addresses = addresses(SERVER)?;
    let mut parameters = SctpListenParameters::new((addresses[0], PORT).into());
    parameters.addresses = addresses.into_iter().map(|ip| (ip, PORT).into()).collect();
    parameters.encapsulation_port = Some(0);
    parameters.over_ip = SctpOverIp::No;
    parameters.association = multipath();
    parameters.dtls = Some(own.identity.clone());
    parameters.dtls_clients = Some(Arc::new(Pinned(client.certificate.clone())));
    Ok(SctpListener::bind(&parameters)?)
}

pub(crate) async fn connect(
    udp: u16,
    own: &Credentials,
    server: &Credentials,
) -> Result<SctpAssociation, Box<dyn Error>> {
    let connector = SctpConnector::new(udp, multipath()).with_local_addresses(addresses(CLIENT)?);
    let verifier = Arc::new(Pinned(server.certificate.clone()));
    let trust = DtlsTrust { verifier, name: ServerName::try_from("peer.test")? };
    let address = SocketAddr::new(SERVER[0].parse()?, PORT);
    let pending = connector.open_dtls_paths(address, own.identity.clone(), trust).await?;
    println!("inside {}", pending.version());
    Ok(pending.established().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (server, client) = (Credentials::generate()?, Credentials::generate()?);
    let listener = listen(&server, &client)?;
    let udp = listener.encapsulation_port().ok_or("SCTP is not inside UDP")?;
    let both = async { tokio::join!(connect(udp, &client, &server), listener.accept_dtls()) };
    let (ours, theirs) = both.await;
    let ours = ours?;
    ours.send(&SendInfo::default(), Bytes::from_static(b"nobody else reads this")).await?;
    let message = theirs.receive().await?.ok_or("it ended")?;
    println!("{}", String::from_utf8_lossy(&message.into_bytes()));
    ours.shutdown().await?;
    Ok(())
}
