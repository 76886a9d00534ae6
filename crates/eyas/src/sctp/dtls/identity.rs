//! The certificate and key for a DTLS handshake.

use dimpl::DtlsCertificate;
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::{Error, ServerIdentity};

/// A certificate with an ECDSA key.
#[derive(Clone, Debug)]
pub(crate) struct Identity(DtlsCertificate);

impl Identity {
    /// Creates an identity from a certificate and its key.
    ///
    /// # Errors
    /// If the key is not an ECDSA key, the only kind supported here.
    pub(crate) fn new(
        certificate: &CertificateDer<'_>,
        key: &PrivateKeyDer<'_>,
    ) -> Result<Self, Error> {
        if any_ecdsa_type(key).is_err() {
            return Err(Error::Identity(
                "DTLS needs a certificate with an ECDSA key (P-256 or P-384)".into(),
            ));
        }
        Ok(Self(DtlsCertificate {
            certificate: certificate.to_vec(),
            private_key: key.secret_der().to_vec(),
        }))
    }

    /// Generates an anonymous identity for a client, which must have one in case the server
    /// requests it.
    pub(crate) fn anonymous() -> Result<Self, Error> {
        let name = "nobody.invalid".to_owned();
        let identity = ServerIdentity::generate(vec![name.clone()], name)?;
        Self::new(identity.certificate(), identity.key())
    }

    pub(super) fn to_dtls(&self) -> DtlsCertificate {
        self.0.clone()
    }
}
