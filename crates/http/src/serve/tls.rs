//! TLS of a server: which certificates it has, and which it asks of its clients.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::CertifiedKey,
};
use rustls_pki_types::CertificateDer;

use super::{ServeError, ServerIdentity};

/// The certificates that a server asks of its clients (RFC 8446 §4.3.2). They are verified against
/// roots of their own, and do not concern which server certificates anybody trusts.
#[derive(Clone, Debug)]
pub struct ClientCertificates {
    roots: Vec<CertificateDer<'static>>,
    are_required: bool,
}

impl ClientCertificates {
    /// Requires a certificate that one of these roots has issued. The handshake with a client that
    /// has none fails.
    pub fn required(roots: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        Self { roots: roots.into_iter().collect(), are_required: true }
    }

    /// Asks for a certificate, which one of these roots must have issued, but also serves clients
    /// without one: the service tells them apart by [`PeerInfo`](super::PeerInfo).
    pub fn optional(roots: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        Self { roots: roots.into_iter().collect(), are_required: false }
    }

    fn verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, ServeError> {
        let unusable = |error: &dyn std::fmt::Display| ServeError::ClientRoots(error.to_string());
        let mut roots = RootCertStore::empty();
        for root in &self.roots {
            roots.add(root.clone()).map_err(|error| unusable(&error))?;
        }
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = if self.are_required { builder } else { builder.allow_unauthenticated() };
        builder.build().map_err(|error| unusable(&error))
    }
}

/// How a server secures its connections.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    certificates: Certificates,
    clients: Option<Arc<dyn ClientCertVerifier>>,
}

#[derive(Clone, Debug)]
enum Certificates {
    /// One identity, the first and the current one.
    Own(ServerIdentity, Arc<Current>),
    /// What the caller chooses.
    Resolved(Arc<dyn ResolvesServerCert>),
}

impl Tls {
    /// Uses one identity.
    pub(super) fn with_identity(
        identity: ServerIdentity,
        clients: Option<&ClientCertificates>,
    ) -> Result<Self, ServeError> {
        let config = identity.server_config().map_err(ServeError::identity)?;
        let clients = clients
            .map(|clients| clients.verifier(Arc::clone(config.crypto_provider())))
            .transpose()?;
        let current = Arc::new(Current(RwLock::new(config.cert_resolver)));
        Ok(Self { certificates: Certificates::Own(identity, current), clients })
    }

    /// Lets the caller choose the certificate in each handshake.
    pub(super) fn with_resolver(
        resolver: Arc<dyn ResolvesServerCert>,
        clients: Option<&ClientCertificates>,
    ) -> Result<Self, ServeError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients = clients.map(|clients| clients.verifier(provider)).transpose()?;
        Ok(Self { certificates: Certificates::Resolved(resolver), clients })
    }

    /// Returns the configuration for a protocol: TLS 1.2 and 1.3, and these application protocols.
    pub(super) fn config(&self, alpn: Vec<Vec<u8>>) -> Result<ServerConfig, ServeError> {
        let (provider, resolver) = match &self.certificates {
            Certificates::Own(identity, current) => {
                let config = identity.server_config().map_err(ServeError::identity)?;
                let provider = Arc::clone(config.crypto_provider());
                (provider, Arc::<Current>::clone(current) as Arc<dyn ResolvesServerCert>)
            }
            Certificates::Resolved(resolver) => {
                (Arc::new(rustls::crypto::ring::default_provider()), Arc::clone(resolver))
            }
        };
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(ServeError::identity)?;
        let builder = match &self.clients {
            Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(resolver);
        config.alpn_protocols = alpn;
        Ok(config)
    }

    /// Returns the identity with which the server started, if it is the server's own.
    pub(super) fn identity(&self) -> Option<&ServerIdentity> {
        match &self.certificates {
            Certificates::Own(identity, _) => Some(identity),
            Certificates::Resolved(_) => None,
        }
    }

    /// Returns the identity for DTLS, whose library can neither choose a certificate by name nor
    /// verify those of clients against roots.
    #[cfg(feature = "sctp")]
    pub(super) fn dtls_identity(&self) -> Option<&ServerIdentity> {
        self.identity().filter(|_| self.clients.is_none())
    }

    /// Uses another identity from the next handshake on.
    pub(super) fn replace(&self, identity: &ServerIdentity) -> Result<(), ServeError> {
        let Certificates::Own(_, current) = &self.certificates else {
            return Err(ServeError::NoOwnIdentity);
        };
        let config = identity.server_config().map_err(ServeError::identity)?;
        *current.0.write().unwrap_or_else(PoisonError::into_inner) = config.cert_resolver;
        Ok(())
    }
}

/// The certificate of a server at the moment.
#[derive(Debug)]
struct Current(RwLock<Arc<dyn ResolvesServerCert>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let resolver = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        resolver.resolve(client_hello)
    }
}
