//! Certificate verifiers for the two extremes: anyone, and nobody.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Accepts any certificate whose key the peer proves to hold.
#[derive(Debug)]
pub(super) struct AcceptAny {
    algorithms: WebPkiSupportedAlgorithms,
}

impl AcceptAny {
    pub(super) fn new(provider: &CryptoProvider) -> Self {
        Self { algorithms: provider.signature_verification_algorithms }
    }
}

/// Accepts no certificate, because there is nothing to check one against.
#[derive(Debug)]
pub(super) struct TrustNobody {
    algorithms: WebPkiSupportedAlgorithms,
    why: Arc<NoTrustStore>,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the platform's trust store cannot be used ({0}): install the CA certificates or name roots"
)]
struct NoTrustStore(String);

impl TrustNobody {
    pub(super) fn new(provider: &CryptoProvider, why: String) -> Self {
        Self {
            algorithms: provider.signature_verification_algorithms,
            why: Arc::new(NoTrustStore(why)),
        }
    }
}

macro_rules! check_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls12_signature(message, cert, dss, &self.algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, cert, dss, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    check_signatures!();
}

impl ServerCertVerifier for TrustNobody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Err(CertificateError::Other(OtherError(Arc::clone(&self.why) as _)).into())
    }

    check_signatures!();
}
