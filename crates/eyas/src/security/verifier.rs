//! Certificate verifiers for the two extremes, accept any and accept none, and for certificates
//! that are themselves trusted.

use std::sync::Arc;

use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, OtherError};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::oid::db::rfc5280::{ANY_EXTENDED_KEY_USAGE, ID_KP_SERVER_AUTH};
use x509_cert::ext::pkix::ExtendedKeyUsage;

use super::signatures::check_signatures;
use super::verdict::{CertificateVerdict, PresentedCertificate, ReviewedVerifier};

/// Returns a verifier that accepts what another one accepts, and a certificate that is itself a trust
/// anchor: one of these, or of the platform's trust store with `with_platform`.
///
/// The other one refuses a server's certificate that says `CA:TRUE`, as `openssl req -x509` makes
/// it. But whoever trusts exactly this certificate has decided about it: RFC 5280 §6 leaves open
/// where trust comes from, and OpenSSL, Go and Python accept it. Its names, its validity and its
/// purpose still count.
pub(super) fn accepting_anchors(
    inner: Arc<dyn ServerCertVerifier>,
    anchors: Vec<CertificateDer<'static>>,
    with_platform: bool,
) -> impl ServerCertVerifier {
    let is_anchor = move |certificate: &CertificateDer<'_>| {
        let is_same = |anchor: &CertificateDer<'_>| anchor.as_ref() == certificate.as_ref();
        anchors.iter().any(is_same)
            || (with_platform
                && is_self_issued(certificate)
                && platform_anchors().iter().any(is_same))
    };
    ReviewedVerifier::new(
        inner,
        move |presented: &PresentedCertificate<'_>, verdict: CertificateVerdict| {
            let PresentedCertificate { certificate, name, now } = presented;
            match verdict {
                Err(Error::InvalidCertificate(_)) if is_anchor(certificate) => {
                    check_anchor(certificate, name, *now).map(|()| ServerCertVerified::assertion())
                }
                verdict => verdict,
            }
        },
    )
}

/// Reads the platform's anchors once more: for a certificate that was just refused, and could be
/// one.
#[cfg(all(unix, not(target_os = "android"), not(target_vendor = "apple")))]
fn platform_anchors() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

/// Elsewhere the platform itself verifies.
#[cfg(not(all(unix, not(target_os = "android"), not(target_vendor = "apple"))))]
fn platform_anchors() -> Vec<CertificateDer<'static>> {
    Vec::new()
}

fn is_self_issued(certificate: &CertificateDer<'_>) -> bool {
    Certificate::from_der(certificate).is_ok_and(|certificate| {
        let parts = certificate.tbs_certificate();
        parts.subject() == parts.issuer()
    })
}

/// Checks everything about an anchor that trust does not settle.
fn check_anchor(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<(), Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    let decoded = Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let parts = decoded.tbs_certificate();
    let validity = parts.validity();
    let at = |time: x509_cert::time::Time| UnixTime::since_unix_epoch(time.to_unix_duration());
    let (not_before, not_after) = (at(validity.not_before), at(validity.not_after));
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
    }
    let usage = parts.get_extension::<ExtendedKeyUsage>();
    if let Some((_, usage)) = usage.map_err(|_| CertificateError::BadEncoding)?
        && !usage
            .0
            .iter()
            .any(|purpose| [ID_KP_SERVER_AUTH, ANY_EXTENDED_KEY_USAGE].contains(purpose))
    {
        return Err(CertificateError::InvalidPurpose.into());
    }
    verify_server_name(&parsed, name)
}

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

#[cfg(test)]
#[path = "verifier/tests.rs"]
mod tests;
