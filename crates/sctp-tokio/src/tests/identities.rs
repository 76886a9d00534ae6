//! Certificates for tests, and whom these trust.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};

use crate::dtls::{DtlsIdentity, DtlsTrust};

/// The name in the certificates.
pub(crate) const NAME: &str = "peer.test";

/// A certificate and its key.
#[derive(Debug)]
pub(crate) struct TestIdentity {
    pub(crate) certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl TestIdentity {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![NAME.to_owned()]).expect("parameters");
        let certificate = params.self_signed(&key).expect("a certificate").der().clone();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        Self { certificate, key }
    }

    pub(crate) fn dtls(&self) -> DtlsIdentity {
        DtlsIdentity::new(&self.certificate, &self.key).expect("an ECDSA key")
    }
}

/// Trusts some certificates, or any.
#[derive(Clone, Debug)]
pub(crate) struct TestTrust {
    /// The trusted ones; any if `None`.
    trusted: Option<Vec<CertificateDer<'static>>>,
    /// Whether the name has to be that of the certificate.
    checks_name: bool,
}

impl TestTrust {
    pub(crate) fn any() -> Self {
        Self { trusted: None, checks_name: false }
    }

    pub(crate) fn certificate(identity: &TestIdentity) -> Self {
        Self { trusted: Some(vec![identity.certificate.clone()]), checks_name: true }
    }

    /// Trusts these whatever their names.
    pub(crate) fn pinned(identities: &[&TestIdentity]) -> Self {
        let trusted = identities.iter().map(|identity| identity.certificate.clone());
        Self { trusted: Some(trusted.collect()), checks_name: false }
    }

    pub(crate) fn of_server(&self, name: &str) -> DtlsTrust {
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        DtlsTrust { verifier: Arc::new(self.clone()), name }
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        match &self.trusted {
            Some(trusted) if !trusted.contains(certificate) => {
                Err(CertificateError::UnknownIssuer.into())
            }
            _ => Ok(()),
        }
    }
}

/// DTLS verifies signatures by itself.
macro_rules! no_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(CertificateError::BadSignature.into())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(CertificateError::BadSignature.into())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            Vec::new()
        }
    };
}

impl ServerCertVerifier for TestTrust {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(certificate)?;
        if self.checks_name {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    no_signatures!();
}

impl ClientCertVerifier for TestTrust {
    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(certificate).map(|()| ClientCertVerified::assertion())
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    no_signatures!();
}
