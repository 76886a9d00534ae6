//! Whether a designated resolver is whom its designator means.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// What the certificate of a designated resolver has to prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct RequiredProof {
    /// The address that must be in the certificate: that of the designator (RFC 9462 §4.2). `None` if its name must,
    /// which came by a trusted way.
    pub(in super::super) designator: Option<IpAddr>,
    /// Whether the resolver is used without a proof, too: it has the designator's own private address (§4.3).
    pub(in super::super) is_optional: bool,
}

/// Whether the latest certificate proved what it had to.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct ProofResult(Arc<AtomicU8>);

const VERIFIED: u8 = 1;
const FAILED: u8 = 2;

impl ProofResult {
    pub(in super::super) fn is_verified(&self) -> bool {
        self.0.load(Ordering::Relaxed) == VERIFIED
    }

    pub(in super::super) fn has_failed(&self) -> bool {
        self.0.load(Ordering::Relaxed) == FAILED
    }

    fn set(&self, is_verified: bool) {
        self.0.store(if is_verified { VERIFIED } else { FAILED }, Ordering::Relaxed);
    }
}

/// Verifies the certificates of a designated resolver.
#[derive(Debug)]
pub(super) struct DesignatedVerifier {
    inner: Arc<dyn ServerCertVerifier>,
    proof: RequiredProof,
    result: ProofResult,
}

impl DesignatedVerifier {
    /// Returns the verifier, and where its result will be. All else is as `inner` says.
    pub(super) fn new(
        inner: Arc<dyn ServerCertVerifier>,
        proof: RequiredProof,
    ) -> (Self, ProofResult) {
        let result = ProofResult::default();
        (Self { inner, proof, result: result.clone() }, result)
    }
}

impl ServerCertVerifier for DesignatedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let designator = self.proof.designator.map(|ip| ServerName::IpAddress(ip.into()));
        let subject = designator.as_ref().unwrap_or(server_name);
        let verdict =
            self.inner.verify_server_cert(end_entity, intermediates, subject, ocsp_response, now);
        self.result.set(verdict.is_ok());
        match verdict {
            Err(_) if self.proof.is_optional => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
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
