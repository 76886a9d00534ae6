//! Certificate verifiers for the two extremes: accept any, and accept none.

use std::sync::Arc;

use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::{CertificateError, Error, OtherError};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::signatures::check_signatures;

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
pub(super) struct AcceptNone {
    algorithms: WebPkiSupportedAlgorithms,
    why: Arc<NoTrustStore>,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the platform's trust store cannot be used ({0}): install the CA certificates or specify roots"
)]
struct NoTrustStore(String);

impl AcceptNone {
    pub(super) fn new(provider: &CryptoProvider, why: String) -> Self {
        Self {
            algorithms: provider.signature_verification_algorithms,
            why: Arc::new(NoTrustStore(why)),
        }
    }
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

impl ServerCertVerifier for AcceptNone {
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
