//! Keeps why a certificate was rejected until its handshake has failed.
//!
//! The layers above a verifier pass on at most its error, and QUIC only the TLS alert (RFC 9001
//! §4.8), which several faults share. So a rejection is described where the certificate is
//! available, and collected by whoever runs the handshake: a verifier is called by the code that
//! processes the server's messages, so both are on the same stack.

use std::cell::RefCell;
use std::sync::Arc;
#[cfg(feature = "sctp")]
use std::sync::OnceLock;

use eyas_race::evidence::{AttemptFailure, CertificateFailure, CertificateFault, FailureCause};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::fault_text;
use super::verdict::CertificateVerdict;
#[cfg(feature = "sctp")]
use super::verdict::{PresentedCertificate, ReviewedVerifier};

/// The description of a fault that is not one of the certificate itself.
const UNKNOWN: &str = "the certificate is not accepted";

tokio::task_local! {
    /// What the handshake that is run by the current task, or the current call, has rejected.
    static REJECTED: RefCell<Option<CertificateRejection>>;
}

/// What is wrong with a server's certificate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CertificateRejection {
    /// The name that it was checked for, if it came to that.
    name: Option<ServerName<'static>>,
    fault: CertificateFault,
    description: String,
}

impl CertificateRejection {
    /// Describes a certificate that was presented by a server of this name.
    fn new(
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
        why: &CertificateError,
    ) -> Self {
        let description = fault_text::describe(certificate, why, name, now);
        Self { name: Some(name.to_owned()), fault: certificate_fault(why), description }
    }

    /// Creates the rejection of a certificate of which only the kind of fault is known.
    pub(crate) fn undescribed(fault: CertificateFault) -> Self {
        Self { name: None, fault, description: UNKNOWN.to_owned() }
    }

    /// Returns whether it is a certificate for this name, as far as is known, and not for the public name of ECH.
    pub(crate) fn is_of(&self, server: &ServerName<'_>) -> bool {
        self.name.as_ref().is_none_or(|name| name == server)
    }

    /// Returns a failure with the reason that what answered an encrypted ClientHello has not proved to be its public
    /// name.
    pub(crate) fn explain_broken_ech(&self, failure: AttemptFailure) -> AttemptFailure {
        let name = self.name.as_ref().map(ServerName::to_str).unwrap_or_default();
        let detail = format!(
            "what answered the encrypted ClientHello is neither the server nor `{name}`, its public name: {}",
            self.description
        );
        AttemptFailure { cause: FailureCause::EchBroken, fault: None, detail, ..failure }
    }

    /// Returns a failure with this as its reason.
    pub(crate) fn explain(self, failure: AttemptFailure) -> AttemptFailure {
        let failure = failure.with_fault(CertificateFailure::PeerCertificate(self.fault));
        AttemptFailure { detail: self.description, ..failure }
    }
}

/// Completes the failure of a handshake whose certificate was not accepted. Others stay as they are.
pub(crate) fn explained(
    failure: AttemptFailure,
    rejection: Option<CertificateRejection>,
) -> AttemptFailure {
    match failure.peer_certificate() {
        Some(fault) => {
            rejection.unwrap_or_else(|| CertificateRejection::undescribed(fault)).explain(failure)
        }
        None => failure,
    }
}

/// Returns which fault this error of a verifier is.
pub(crate) fn certificate_fault(why: &CertificateError) -> CertificateFault {
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            CertificateFault::Expired
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            CertificateFault::NotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            CertificateFault::WrongName
        }
        CertificateError::UnknownIssuer => CertificateFault::UnknownIssuer,
        CertificateError::Revoked => CertificateFault::Revoked,
        _ => CertificateFault::Other,
    }
}

/// Runs a handshake, and returns with its result what a [recording] verifier rejected meanwhile.
pub(crate) async fn observed<T>(
    handshake: impl Future<Output = T>,
) -> (T, Option<CertificateRejection>) {
    let observed = async {
        let result = handshake.await;
        (result, REJECTED.with(RefCell::take))
    };
    REJECTED.scope(RefCell::default(), observed).await
}

/// Does the same for a call that processes messages of a handshake.
#[cfg(feature = "quic")]
pub(crate) fn observed_call<T>(handshake: impl FnOnce() -> T) -> (T, Option<CertificateRejection>) {
    REJECTED.sync_scope(RefCell::default(), || (handshake(), REJECTED.with(RefCell::take)))
}

/// Leaves a rejection for the handshake that is observed, if one is.
fn record(rejection: impl FnOnce() -> CertificateRejection) {
    let _ = REJECTED.try_with(|rejected| *rejected.borrow_mut() = Some(rejection()));
}

/// Returns a verifier that records what another one rejects.
pub(super) fn recording(inner: Arc<dyn ServerCertVerifier>) -> impl ServerCertVerifier {
    RecordingVerifier(inner)
}

#[derive(Debug)]
struct RecordingVerifier(Arc<dyn ServerCertVerifier>);

impl RecordingVerifier {
    /// Records that a server has not proved to have the key of its certificate.
    fn signature_checked(
        result: Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        if let Err(Error::InvalidCertificate(why)) = &result {
            record(|| CertificateRejection::undescribed(certificate_fault(why)));
        }
        result
    }
}

impl ServerCertVerifier for RecordingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> CertificateVerdict {
        let verdict =
            self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        if let Err(Error::InvalidCertificate(why)) = &verdict {
            record(|| CertificateRejection::new(end_entity, server_name, now, why));
        }
        verdict
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Self::signature_checked(self.0.verify_tls12_signature(message, cert, dss))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Self::signature_checked(self.0.verify_tls13_signature(message, cert, dss))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.0.requires_raw_public_keys()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.0.root_hint_subjects()
    }
}

/// Returns a verifier for one handshake, which other tasks carry on, and where its rejection will
/// be.
#[cfg(feature = "sctp")]
pub(crate) fn keeping(
    inner: Arc<dyn ServerCertVerifier>,
) -> (Arc<dyn ServerCertVerifier>, Arc<OnceLock<CertificateRejection>>) {
    let rejected = Arc::<OnceLock<CertificateRejection>>::default();
    let kept = Arc::clone(&rejected);
    let verifier = ReviewedVerifier::new(
        inner,
        move |presented: &PresentedCertificate<'_>, verdict: CertificateVerdict| {
            if let Err(Error::InvalidCertificate(why)) = &verdict {
                let PresentedCertificate { certificate, name, now } = presented;
                // The first rejection ends the handshake.
                let _ = kept.set(CertificateRejection::new(certificate, name, *now, why));
            }
            verdict
        },
    );
    (Arc::new(verifier), rejected)
}

#[cfg(test)]
mod tests {
    use eyas_race::evidence::EvidenceLevel;

    use super::*;

    fn failure() -> AttemptFailure {
        let detail = "invalid peer certificate: UnknownIssuer";
        AttemptFailure::new(FailureCause::Certificate, EvidenceLevel::Transport, detail)
            .with_fault(CertificateFailure::PeerCertificate(CertificateFault::UnknownIssuer))
    }

    fn rejection(description: &str) -> CertificateRejection {
        CertificateRejection {
            name: None,
            fault: CertificateFault::UnknownIssuer,
            description: description.into(),
        }
    }

    #[tokio::test]
    async fn each_handshake_finds_its_own_rejection() {
        let handshake = |text: &'static str| {
            observed(async move {
                record(|| rejection(text));
                tokio::task::yield_now().await;
                failure()
            })
        };
        let (a, b, other) = tokio::join!(
            handshake("the certificate is self-signed: of a"),
            handshake("the certificate is self-signed: of b"),
            observed(async { failure() }),
        );
        let detail = |(failure, rejection)| explained(failure, rejection).detail;
        assert_eq!(detail(a), "the certificate is self-signed: of a");
        assert_eq!(detail(b), "the certificate is self-signed: of b");
        assert_eq!(detail(other), "the certificate is not accepted");
        // Nobody waits for it, and nobody finds it later.
        record(|| rejection("lost"));
        assert_eq!(observed(async {}).await.1, None);
    }

    #[tokio::test]
    async fn the_latest_rejection_of_a_handshake_is_reported() {
        let (_, found) = observed(async {
            for number in 0..3 {
                record(|| rejection(&number.to_string()));
            }
        })
        .await;
        assert_eq!(found, Some(rejection("2")));
    }

    #[test]
    fn other_failures_stay_as_they_are() {
        let detail = "the peer ended the handshake: it requires a client certificate";
        let required =
            AttemptFailure::new(FailureCause::Certificate, EvidenceLevel::Transport, detail)
                .with_fault(CertificateFailure::OwnCertificate(CertificateFault::Missing));
        assert_eq!(explained(required.clone(), Some(rejection("x"))), required);
        let refused = AttemptFailure::new(FailureCause::Refused, EvidenceLevel::Started, UNKNOWN);
        assert_eq!(explained(refused.clone(), None), refused);
    }
}
