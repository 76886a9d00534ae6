//! A certificate verifier whose verdicts are looked at again.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// A certificate of a server that was verified.
pub(crate) struct PresentedCertificate<'a> {
    pub(crate) certificate: &'a CertificateDer<'a>,
    /// The name that it should be for.
    pub(crate) name: &'a ServerName<'a>,
    pub(crate) now: UnixTime,
}

/// The verdict on a certificate.
pub(crate) type CertificateVerdict = Result<ServerCertVerified, Error>;

/// Passes the verdicts of another verifier on through a function. All else is as that one says.
pub(crate) struct ReviewedVerifier<F> {
    inner: Arc<dyn ServerCertVerifier>,
    /// What the certificate must be valid for, if that is not the name of the connection.
    subject: Option<ServerName<'static>>,
    review: F,
}

impl<F: Fn(&PresentedCertificate<'_>, CertificateVerdict) -> CertificateVerdict>
    ReviewedVerifier<F>
{
    pub(crate) fn new(inner: Arc<dyn ServerCertVerifier>, review: F) -> Self {
        Self { inner, subject: None, review }
    }

    /// Sets what certificates must be valid for, whatever the name of the connection.
    #[cfg(feature = "encrypted-dns")]
    pub(crate) fn with_subject(self, subject: Option<ServerName<'static>>) -> Self {
        Self { subject, ..self }
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
        let name = self.subject.as_ref().unwrap_or(server_name);
        let verdict =
            self.inner.verify_server_cert(end_entity, intermediates, name, ocsp_response, now);
        (self.review)(&PresentedCertificate { certificate: end_entity, name, now }, verdict)
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
