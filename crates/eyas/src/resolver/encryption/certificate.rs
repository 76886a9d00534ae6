//! Whether a designated resolver is whom its designator means.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls_pki_types::ServerName;

use crate::security::{CertificateVerdict, PresentedCertificate, ReviewedVerifier};

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

/// Returns the verifier of a designated resolver's certificates, and where its result will be. All else is as `inner`
/// says.
pub(super) fn designated_verifier(
    inner: Arc<dyn ServerCertVerifier>,
    proof: RequiredProof,
) -> (impl ServerCertVerifier, ProofResult) {
    let result = ProofResult::default();
    let noted = result.clone();
    let review = move |_: &PresentedCertificate<'_>, verdict: CertificateVerdict| {
        noted.set(verdict.is_ok());
        match verdict {
            Err(_) if proof.is_optional => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    };
    let subject = proof.designator.map(|ip| ServerName::IpAddress(ip.into()));
    (ReviewedVerifier::new(inner, review).with_subject(subject), result)
}
