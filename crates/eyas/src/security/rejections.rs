//! Remembers why a certificate was rejected.
//!
//! The layers above a verifier pass on at most the text of its error, and QUIC not even a type. So
//! the rejection is described where the certificate is available, and looked up later by that text.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyas_race::evidence::{Cause, Failure};
use rustls::client::danger::ServerCertVerifier;
use rustls::{CertificateError, Error};
use rustls_pki_types::ServerName;

use super::fault_text;
use super::verdict::{Presented, Reviewed, Verdict};

/// The maximum number of rejections kept: more than occur during one handshake.
const MAX_REJECTIONS: usize = 256;

/// The prefix of the text of rustls's `InvalidCertificate`; QUIC passes on only the text.
pub(crate) const INVALID_CERTIFICATE: &str = "invalid peer certificate: ";

/// The description if the certificate is no longer known.
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
        let begins = |prefix: &str| detail.starts_with(prefix);
        match failure.cause {
            Cause::Certificate
                if begins(fault_text::EXPIRED) || begins(fault_text::ISSUER_EXPIRED) =>
            {
                Some(Self::Expired)
            }
            Cause::Certificate
                if begins(fault_text::NOT_YET) || begins(fault_text::ISSUER_NOT_YET) =>
            {
                Some(Self::NotYetValid)
            }
            Cause::Certificate if begins(fault_text::NAMES) => Some(Self::WrongName),
            Cause::Certificate if begins(fault_text::SELF_SIGNED) || begins(fault_text::ISSUER) => {
                Some(Self::UnknownIssuer)
            }
            Cause::Certificate if begins(fault_text::CERTIFICATE) => Some(Self::Other),
            _ => None,
        }
    }
}

/// The latest rejections of the verifiers, latest last.
#[derive(Debug, Default)]
pub(crate) struct Rejections(Mutex<VecDeque<Rejection>>);

#[derive(Debug, PartialEq)]
struct Rejection {
    name: ServerName<'static>,
    /// The text of the verifier's error.
    error: String,
    description: String,
}

impl Rejections {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Rejection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, rejection: Rejection) {
        let mut rejections = self.lock();
        rejections
            .retain(|known| (&known.name, &known.error) != (&rejection.name, &rejection.error));
        if rejections.len() == MAX_REJECTIONS {
            rejections.pop_front();
        }
        rejections.push_back(rejection);
    }

    /// Returns the failure of a handshake with this server, including what is wrong with its
    /// certificate.
    pub(crate) fn explain(
        &self,
        mut failure: Failure,
        name: &Result<ServerName<'static>, String>,
    ) -> Failure {
        let Some(error) = failure.detail.strip_prefix(INVALID_CERTIFICATE) else { return failure };
        let rejections = self.lock();
        let matches = |rejection: &&Rejection| {
            Ok(&rejection.name) == name.as_ref() && rejection.error == error
        };
        let description = rejections
            .iter()
            .rev()
            .find(matches)
            .map_or(UNKNOWN, |rejection| &rejection.description);
        failure.detail = description.to_owned();
        failure
    }
}

/// Returns a verifier that records what another one rejects.
pub(super) fn recording(
    inner: Arc<dyn ServerCertVerifier>,
    rejections: &Arc<Rejections>,
) -> impl ServerCertVerifier + use<> {
    let rejections = Arc::clone(rejections);
    Reviewed::new(inner, move |presented: &Presented<'_>, verdict: Verdict| {
        if let Err(Error::InvalidCertificate(why)) = &verdict {
            let Presented { certificate, name, now } = presented;
            rejections.record(Rejection {
                name: ServerName::to_owned(name),
                error: why.to_string(),
                description: fault_text::describe(certificate, why, name, *now),
            });
        }
        verdict
    })
}

/// Returns a verifier's error as passed on by the layers above.
pub(crate) fn invalid_certificate(why: &CertificateError) -> String {
    format!("{INVALID_CERTIFICATE}{why}")
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

    fn rejection(host: &str, description: &str) -> Rejection {
        Rejection {
            name: name(host),
            error: "UnknownIssuer".into(),
            description: description.into(),
        }
    }

    #[test]
    fn a_rejection_is_found_by_name_and_error_text() {
        let rejections = Rejections::default();
        rejections.record(rejection("a.test", "the certificate is self-signed: of a"));
        rejections.record(rejection("b.test", "the certificate is self-signed: of b"));
        let raw = failure("invalid peer certificate: UnknownIssuer");
        let description = |host: &str| rejections.explain(raw.clone(), &Ok(name(host))).detail;
        assert_eq!(description("a.test"), "the certificate is self-signed: of a");
        assert_eq!(description("b.test"), "the certificate is self-signed: of b");
        assert_eq!(description("c.test"), "the certificate is not accepted");
        let other = failure("the peer ended the handshake: TLS alert x");
        assert_eq!(rejections.explain(other.clone(), &Ok(name("a.test"))), other);
    }

    #[test]
    fn rejections_are_bounded_and_the_latest_is_reported() {
        let rejections = Rejections::default();
        for number in 0..2 * MAX_REJECTIONS {
            rejections.record(rejection(&format!("{number}.test"), "x"));
            rejections.record(rejection("repeated.test", &number.to_string()));
        }
        assert_eq!(rejections.lock().len(), MAX_REJECTIONS);
        let raw = failure("invalid peer certificate: UnknownIssuer");
        let last = (2 * MAX_REJECTIONS - 1).to_string();
        assert_eq!(rejections.explain(raw, &Ok(name("repeated.test"))).detail, last);
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
