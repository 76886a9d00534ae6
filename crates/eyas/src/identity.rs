//! Who a server is: a certificate chain and its key.

use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::Error;

/// The certificate chain and private key of a server.
#[derive(Clone)]
pub struct ServerIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
}

impl ServerIdentity {
    /// Makes a key and a certificate for it on the spot, for DNS names and IP addresses.
    ///
    /// A client trusts it only if told to: see [`certificate`](Self::certificate) and
    /// [`SecurityParameters::with_added_root`](crate::SecurityParameters::with_added_root).
    pub fn self_signed<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Result<Self, Error> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let key = KeyPair::generate().map_err(unusable)?;
        let mut params = CertificateParams::new(names.clone()).map_err(unusable)?;
        if let Some(name) = names.into_iter().next() {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        let certificate = params.self_signed(&key).map_err(unusable)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Self { chain: vec![certificate.der().clone()], key: Arc::new(key.into()) })
    }

    /// Reads a certificate chain, the server's own first, and its key, both in PEM (RFC 7468).
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, Error> {
        let chain = certificates_from_pem(chain)?;
        let key = private_key_from_pem(key)?;
        Ok(Self { chain, key: Arc::new(key) })
    }

    /// Takes a certificate chain, the server's own first, and its key as they are.
    pub fn from_der(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, Error> {
        if chain.is_empty() {
            return Err(Error::Identity("the certificate chain is empty".into()));
        }
        Ok(Self { chain, key: Arc::new(key) })
    }

    /// The server's own certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.chain[0]
    }

    /// The whole chain, the server's own certificate first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// Whether SCTP inside DTLS can be served as this server: DTLS has no keys but those of ECDSA
    /// here.
    #[cfg(feature = "sctp")]
    pub fn suits_dtls(&self) -> bool {
        crate::sctp::dtls::Identity::new(self.certificate(), &self.key).is_ok()
    }

    /// The private key.
    #[cfg(feature = "sctp")]
    pub(crate) fn key(&self) -> &PrivateKeyDer<'static> {
        &self.key
    }

    /// A rustls configuration for this identity, TLS 1.2 and 1.3, without ALPN.
    pub fn server_config(&self) -> Result<rustls::ServerConfig, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(self.chain.clone(), self.key.clone_key())
            })
            .map_err(unusable)
    }
}

impl std::fmt::Debug for ServerIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerIdentity")
            .field("certificates", &self.chain.len())
            .finish_non_exhaustive()
    }
}

/// Reads every certificate of a PEM text; none is an error.
pub fn certificates_from_pem(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let chain = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Error::Identity(format!("not a PEM certificate: {error}")))?;
    if chain.is_empty() {
        return Err(Error::Identity("the PEM text holds no certificate".into()));
    }
    Ok(chain)
}

/// Reads the first private key (PKCS #8, PKCS #1 or SEC 1) of a PEM text.
pub fn private_key_from_pem(pem: &[u8]) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|error| Error::Identity(format!("not a PEM private key: {error}")))
}

fn unusable(error: impl std::fmt::Display) -> Error {
    Error::Identity(error.to_string())
}
