//! The certificate and key for a DTLS handshake.

use std::time::{Duration, SystemTime};

use dimpl::DtlsCertificate;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// The name of those who remain anonymous (RFC 6761 §6.4).
const NOBODY: &str = "nobody.invalid";
/// How long an anonymous certificate is valid, and how far the clock of a peer may be behind.
const VALIDITY: Duration = Duration::from_secs(397 * 86_400);
const CLOCK_TOLERANCE: Duration = Duration::from_secs(86_400);

/// A certificate with an ECDSA key, which one end shows in DTLS handshakes.
#[derive(Clone, Debug)]
pub struct DtlsIdentity(DtlsCertificate);

/// Why something cannot be an identity in DTLS.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DtlsIdentityError {
    /// The key is none of ECDSA, the only kind supported.
    #[error("DTLS needs a certificate with an ECDSA key (P-256 or P-384)")]
    NotEcdsa,
    /// A key or its certificate could not be generated.
    #[error("no certificate for an anonymous client can be generated: {0}")]
    NotGenerated(String),
}

impl DtlsIdentity {
    /// Creates an identity from an end-entity certificate and its key.
    ///
    /// # Errors
    /// If the key is not an ECDSA key.
    pub fn new(
        certificate: &CertificateDer<'_>,
        key: &PrivateKeyDer<'_>,
    ) -> Result<Self, DtlsIdentityError> {
        if any_ecdsa_type(key).is_err() {
            return Err(DtlsIdentityError::NotEcdsa);
        }
        Ok(Self(DtlsCertificate {
            certificate: certificate.to_vec(),
            private_key: key.secret_der().to_vec(),
        }))
    }

    /// Generates an anonymous identity for a client, which must have one in case the server
    /// requests it.
    ///
    /// # Errors
    /// If no key can be generated.
    pub fn anonymous() -> Result<Self, DtlsIdentityError> {
        let failed = |error: rcgen::Error| DtlsIdentityError::NotGenerated(error.to_string());
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::new(vec![NOBODY.to_owned()]).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, NOBODY);
        let not_before = SystemTime::now() - CLOCK_TOLERANCE;
        params.not_before = not_before.into();
        params.not_after = (not_before + VALIDITY).into();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.self_signed(&key).map_err(failed)?;
        let (certificate, private_key) = (certificate.der().to_vec(), key.serialize_der());
        Ok(Self(DtlsCertificate { certificate, private_key }))
    }

    pub(super) fn to_dtls(&self) -> DtlsCertificate {
        self.0.clone()
    }
}
