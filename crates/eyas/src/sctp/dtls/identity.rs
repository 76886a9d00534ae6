//! The certificate and key for a DTLS handshake.

use dimpl::DtlsCertificate;
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::{Error, ServerIdentity};

/// A certificate with an ECDSA key.
#[derive(Clone, Debug)]
pub(crate) struct Identity(DtlsCertificate);

impl Identity {
    /// Takes a certificate and its key as they are.
    ///
    /// # Errors
    /// If the key is not one of ECDSA: DTLS has no other here.
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

    /// Generates an anonymous identity, for clients, which must have one in case the server
    /// requests it.
    pub(crate) fn nobody() -> Result<Self, Error> {
        let nobody = "nobody.invalid".to_owned();
        let made = ServerIdentity::on_the_spot(vec![nobody.clone()], nobody)?;
        Self::new(made.certificate(), made.key())
    }

    pub(super) fn shown(&self) -> DtlsCertificate {
        self.0.clone()
    }
}
