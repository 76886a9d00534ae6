//! Identifies public keys by their fingerprints, independently of who issued a certificate for
//! them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DistinguishedName, Error, OtherError};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use sha2::{Digest as _, Sha256};

use super::signatures::check_signatures;

/// The prefix of a fingerprint as text.
const ALGORITHM: &str = "SHA256:";

/// The fingerprint of a public key: the SHA-256 hash of its SubjectPublicKeyInfo (RFC 5280
/// §4.1.2.7, as in RFC 7469 §2.4). As text it is `SHA256:` followed by base64 without padding, as
/// OpenSSH writes fingerprints. It stays the same when a certificate is renewed for the same key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyFingerprint([u8; 32]);

impl KeyFingerprint {
    /// Returns the fingerprint of the key in this certificate, or `None` if it cannot be parsed. It
    /// is parsed by the same code that verifies the signatures of the handshake, so that both use
    /// the same key.
    pub fn from_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        Some(Self(Sha256::digest(parsed.subject_public_key_info()).into()))
    }

    /// Returns the bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{ALGORITHM}{}", STANDARD_NO_PAD.encode(self.0)))
    }
}

impl fmt::Debug for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error of parsing a [`KeyFingerprint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected SHA256: and 43 letters of base64, as 'eyas tunnel keygen' prints them")]
pub struct KeyFingerprintError;

impl FromStr for KeyFingerprint {
    type Err = KeyFingerprintError;

    fn from_str(text: &str) -> Result<Self, KeyFingerprintError> {
        let hash = text.strip_prefix(ALGORITHM).ok_or(KeyFingerprintError)?;
        let hash = STANDARD_NO_PAD.decode(hash).map_err(|_| KeyFingerprintError)?;
        hash.try_into().map(Self).map_err(|_| KeyFingerprintError)
    }
}

/// Decides which keys may connect; called for each connection.
#[derive(Clone)]
pub(crate) struct ClientKeys(pub(crate) Arc<dyn Fn(&KeyFingerprint) -> bool + Send + Sync>);

impl fmt::Debug for ClientKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKeys")
    }
}

/// Why a key is rejected.
#[derive(Debug, thiserror::Error)]
enum KeyFault {
    #[error("its key is {0}")]
    Unknown(KeyFingerprint),
    #[error("its key cannot be read")]
    Unreadable,
}

/// Accepts certificates with these keys, whatever else they contain.
#[derive(Debug)]
pub(super) struct PinnedKeyVerifier {
    algorithms: WebPkiSupportedAlgorithms,
    keys: Vec<KeyFingerprint>,
}

impl PinnedKeyVerifier {
    pub(super) fn new(provider: &CryptoProvider, keys: &[KeyFingerprint]) -> Self {
        Self { algorithms: provider.signature_verification_algorithms, keys: keys.to_vec() }
    }
}

/// Accepts clients with the keys that the caller allows.
#[derive(Debug)]
pub(crate) struct ClientKeyVerifier {
    algorithms: WebPkiSupportedAlgorithms,
    keys: ClientKeys,
}

impl ClientKeyVerifier {
    pub(crate) fn new(provider: &CryptoProvider, keys: ClientKeys) -> Self {
        Self { algorithms: provider.signature_verification_algorithms, keys }
    }
}

impl ServerCertVerifier for PinnedKeyVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let fault = match KeyFingerprint::from_certificate(end_entity) {
            Some(key) if self.keys.contains(&key) => return Ok(ServerCertVerified::assertion()),
            Some(key) => KeyFault::Unknown(key),
            None => KeyFault::Unreadable,
        };
        Err(CertificateError::Other(OtherError(Arc::new(fault))).into())
    }

    check_signatures!();
}

impl ClientCertVerifier for ClientKeyVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match KeyFingerprint::from_certificate(end_entity) {
            Some(key) if (self.keys.0)(&key) => Ok(ClientCertVerified::assertion()),
            _ => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    check_signatures!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerIdentity;

    #[test]
    fn a_fingerprint_is_of_the_key_and_parses_as_displayed() {
        let [first, second] =
            [(); 2].map(|()| ServerIdentity::self_signed(["a.test"]).expect("an identity"));
        let of =
            |identity: &ServerIdentity| KeyFingerprint::from_certificate(identity.certificate());
        let fingerprint = of(&first).expect("a key");
        assert_ne!(Some(fingerprint), of(&second));
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        assert_eq!(fingerprint.to_string().len(), ALGORITHM.len() + 43);
        assert_eq!(KeyFingerprint::from_certificate(&CertificateDer::from(vec![7; 40])), None);
        for text in ["", "SHA256:", "SHA256:AAAA", "MD5:AAAA", &format!("{fingerprint}A")] {
            assert_eq!(text.parse::<KeyFingerprint>(), Err(KeyFingerprintError), "{text}");
        }
    }
}
