//! Describes why a certificate is not accepted.
//!
//! The layers above a verifier pass on one word of its error at most, and QUIC not even a type. So
//! the verifier's refusal is described where the certificate is available, and looked up again by
//! that word.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyas_race::evidence::{Cause, Failure};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::words;

/// Refusals kept: more than an endpoint meets between a handshake and its end.
const MAX_KEPT: usize = 256;

/// How rustls begins every `InvalidCertificate`, of which QUIC keeps only the text.
pub(crate) const VERDICT: &str = "invalid peer certificate: ";

/// What is said where the certificate is no longer known.
const UNKNOWN: &str = "the certificate is not accepted";

/// What is wrong with a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CertificateFault {
    /// The certificate, or one in its chain, has expired.
    Expired,
    /// The certificate, or one in its chain, is not valid yet.
    NotYetValid,
    /// The certificate is for other names than the requested one.
    WrongName,
    /// The certificate was not issued by a trusted authority.
    UnknownIssuer,
    /// Another fault, which the failure describes.
    Other,
}

impl CertificateFault {
    /// Returns what is wrong, if the failure is that the server's certificate was not accepted
    /// here. Returns `None` also if it was the server that rejected our certificate, or the lack of
    /// one.
    pub fn of(failure: &Failure) -> Option<Self> {
        let detail = failure.detail.as_str();
        let begins = |start: &str| detail.starts_with(start);
        match failure.cause {
            Cause::Certificate if begins(words::EXPIRED) || begins(words::ISSUER_EXPIRED) => {
                Some(Self::Expired)
            }
            Cause::Certificate if begins(words::NOT_YET) || begins(words::ISSUER_NOT_YET) => {
                Some(Self::NotYetValid)
            }
            Cause::Certificate if begins(words::NAMES) => Some(Self::WrongName),
            Cause::Certificate if begins(words::SELF_SIGNED) || begins(words::ISSUER) => {
                Some(Self::UnknownIssuer)
            }
            Cause::Certificate if begins(words::CERTIFICATE) => Some(Self::Other),
            _ => None,
        }
    }
}

/// What verifiers have refused of late, the latest last.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<VecDeque<Refusal>>);

#[derive(Debug, PartialEq)]
struct Refusal {
    name: ServerName<'static>,
    /// The word of the verifier.
    said: String,
    reported: String,
}

impl Refusals {
    fn kept(&self) -> MutexGuard<'_, VecDeque<Refusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, refusal: Refusal) {
        let mut kept = self.kept();
        kept.retain(|one| (&one.name, &one.said) != (&refusal.name, &refusal.said));
        if kept.len() == MAX_KEPT {
            kept.pop_front();
        }
        kept.push_back(refusal);
    }

    /// Returns the failure of a handshake with this server, including what is wrong with its
    /// certificate.
    pub(crate) fn explain(
        &self,
        mut failure: Failure,
        name: &Result<ServerName<'static>, String>,
    ) -> Failure {
        let Some(said) = failure.detail.strip_prefix(VERDICT) else { return failure };
        let kept = self.kept();
        let is_it = |one: &&Refusal| Ok(&one.name) == name.as_ref() && one.said == said;
        let reported = kept.iter().rev().find(is_it).map_or(UNKNOWN, |one| &one.reported);
        failure.detail = reported.to_owned();
        failure
    }
}

/// Verifies as another does, and keeps what that refuses.
#[derive(Debug)]
pub(super) struct Witness {
    inner: Arc<dyn ServerCertVerifier>,
    refusals: Arc<Refusals>,
}

impl Witness {
    pub(super) fn of(inner: Arc<dyn ServerCertVerifier>, refusals: &Arc<Refusals>) -> Self {
        Self { inner, refusals: Arc::clone(refusals) }
    }
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        if let Err(Error::InvalidCertificate(why)) = &verdict {
            self.refusals.keep(Refusal {
                name: server_name.to_owned(),
                said: why.to_string(),
                reported: words::fault(end_entity, why, server_name, now),
            });
        }
        verdict
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

/// Returns a verifier's message as passed on by the layers above.
pub(crate) fn verdict(why: &CertificateError) -> String {
    format!("{VERDICT}{why}")
}

#[cfg(test)]
mod tests {
    use eyas_race::evidence::Level;

    use super::*;

    fn name(text: &str) -> ServerName<'static> {
        ServerName::try_from(text.to_owned()).expect("a name")
    }

    fn failure(detail: &str) -> Failure {
        Failure { cause: Cause::Certificate, reached: Level::Transport, detail: detail.into() }
    }

    fn refusal(host: &str, reported: &str) -> Refusal {
        Refusal { name: name(host), said: "UnknownIssuer".into(), reported: reported.into() }
    }

    #[test]
    fn a_refusal_is_found_by_its_name_and_text() {
        let refusals = Refusals::default();
        refusals.keep(refusal("a.test", "the certificate is self-signed: of a"));
        refusals.keep(refusal("b.test", "the certificate is self-signed: of b"));
        let raw = failure("invalid peer certificate: UnknownIssuer");
        let reported = |host: &str| refusals.explain(raw.clone(), &Ok(name(host))).detail;
        assert_eq!(reported("a.test"), "the certificate is self-signed: of a");
        assert_eq!(reported("b.test"), "the certificate is self-signed: of b");
        assert_eq!(reported("c.test"), "the certificate is not accepted");
        let other = failure("the peer ended the handshake: TLS alert x");
        assert_eq!(refusals.explain(other.clone(), &Ok(name("a.test"))), other);
    }

    #[test]
    fn refusals_are_bounded_and_the_latest_is_reported() {
        let refusals = Refusals::default();
        for number in 0..2 * MAX_KEPT {
            refusals.keep(refusal(&format!("{number}.test"), "x"));
            refusals.keep(refusal("again.test", &number.to_string()));
        }
        assert_eq!(refusals.kept().len(), MAX_KEPT);
        let raw = failure("invalid peer certificate: UnknownIssuer");
        let last = (2 * MAX_KEPT - 1).to_string();
        assert_eq!(refusals.explain(raw, &Ok(name("again.test"))).detail, last);
    }

    #[test]
    fn faults_are_parsed_from_their_text() {
        let of = |detail: &str| CertificateFault::of(&failure(detail));
        assert_eq!(of("the certificate expired on 2002-01-01"), Some(CertificateFault::Expired));
        assert_eq!(of("the certificate is for a, not for b"), Some(CertificateFault::WrongName));
        assert_eq!(of(UNKNOWN), Some(CertificateFault::Other));
        assert_eq!(of("the peer ended the handshake: it requires a client certificate"), None);
        let refused = Failure { cause: Cause::Refused, ..failure(UNKNOWN) };
        assert_eq!(CertificateFault::of(&refused), None);
    }
}
