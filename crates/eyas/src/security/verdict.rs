//! A certificate verifier whose verdicts are looked at again.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// A certificate of a server that was verified.
pub(super) struct PresentedCertificate<'a> {
    pub(super) certificate: &'a CertificateDer<'a>,
    /// The name that it should be for.
    pub(super) name: &'a ServerName<'a>,
    pub(super) now: UnixTime,
}

/// The verdict on a certificate.
pub(super) type CertificateVerdict = Result<ServerCertVerified, Error>;

/// Passes the verdicts of another verifier on through a function. All else is as that one says.
pub(super) struct ReviewedVerifier<F> {
    inner: Arc<dyn ServerCertVerifier>,
    review: F,
}

impl<F: Fn(&PresentedCertificate<'_>, CertificateVerdict) -> CertificateVerdict>
    ReviewedVerifier<F>
{
    pub(super) fn new(inner: Arc<dyn ServerCertVerifier>, review: F) -> Self {
        Self { inner, review }
    }
}

impl<F> fmt::Debug for ReviewedVerifier<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReviewedVerifier").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<F> ServerCertVerifier for ReviewedVerifier<F>
where
    F: Fn(&PresentedCertificate<'_>, CertificateVerdict) -> CertificateVerdict + Send + Sync,
{
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> CertificateVerdict {
        let verdict = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        (self.review)(
            &PresentedCertificate { certificate: end_entity, name: server_name, now },
            verdict,
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.inner.requires_raw_public_keys()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.inner.root_hint_subjects()
    }
}
