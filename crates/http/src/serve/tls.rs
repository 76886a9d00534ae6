//! TLS of a server: which certificates it has, and which it asks of its clients.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::CryptoProvider,
    server::{
        ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::{ServeError, ServerIdentity, by_name::ByName};

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

    /// Returns whether clients without a certificate are turned away.
    pub const fn are_required(&self) -> bool {
        self.are_required
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
    clients: Option<Arc<CurrentClients>>,
    provider: Arc<CryptoProvider>,
}

#[derive(Clone, Debug)]
enum Certificates {
    /// Its own identities: the one with which it started, or the first of several, and the current
    /// ones.
    Own {
        first: ServerIdentity,
        #[cfg_attr(not(feature = "sctp"), expect(dead_code, reason = "only DTLS asks"))]
        are_several: bool,
        current: Arc<Current>,
    },
    /// What the caller chooses.
    Resolved(Arc<dyn ResolvesServerCert>),
}

impl Tls {
    /// Uses these identities.
    pub(super) fn with_identities(
        identities: &[ServerIdentity],
        clients: Option<&ClientCertificates>,
    ) -> Result<Self, ServeError> {
        let provider = Arc::new(eyas::crypto_provider());
        let first = identities.first().cloned().ok_or(ServeError::NoOwnIdentity)?;
        let current = Arc::new(Current(RwLock::new(ByName::new(identities, &provider)?.into())));
        let are_several = identities.len() > 1;
        Self::new(Certificates::Own { first, are_several, current }, clients, provider)
    }

    /// Lets the caller choose the certificate in each handshake.
    pub(super) fn with_resolver(
        resolver: Arc<dyn ResolvesServerCert>,
        clients: Option<&ClientCertificates>,
    ) -> Result<Self, ServeError> {
        let provider = Arc::new(eyas::crypto_provider());
        Self::new(Certificates::Resolved(resolver), clients, provider)
    }

    fn new(
        certificates: Certificates,
        clients: Option<&ClientCertificates>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, ServeError> {
        let clients = clients.map(|clients| clients.verifier(Arc::clone(&provider))).transpose()?;
        let clients = clients.map(|verifier| Arc::new(CurrentClients(RwLock::new(verifier))));
        Ok(Self { certificates, clients, provider })
    }

    /// Returns the configuration for a protocol: TLS 1.2 and 1.3, and these application protocols.
    pub(super) fn config(&self, alpn: Vec<Vec<u8>>) -> Result<ServerConfig, ServeError> {
        let resolver = match &self.certificates {
            Certificates::Own { current, .. } => {
                Arc::<Current>::clone(current) as Arc<dyn ResolvesServerCert>
            }
            Certificates::Resolved(resolver) => Arc::clone(resolver),
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(ServeError::identity)?;
        let mut config = match &self.clients {
            Some(verifier) => {
                let verifier = Arc::<CurrentClients>::clone(verifier);
                let mut config =
                    builder.with_client_cert_verifier(verifier).with_cert_resolver(resolver);
                // A resumed session would not be verified against roots that have been replaced.
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.send_tls13_tickets = 0;
                config
            }
            None => builder.with_no_client_auth().with_cert_resolver(resolver),
        };
        config.alpn_protocols = alpn;
        Ok(config)
    }

    /// Returns whether clients are asked for certificates.
    pub(super) fn asks_clients(&self) -> bool {
        self.clients.is_some()
    }

    /// Returns the first identity with which the server started, if it is the server's own.
    pub(super) fn identity(&self) -> Option<&ServerIdentity> {
        match &self.certificates {
            Certificates::Own { first, .. } => Some(first),
            Certificates::Resolved(_) => None,
        }
    }

    /// Returns the identity for DTLS, whose library can neither choose a certificate by name nor
    /// verify those of clients against roots.
    #[cfg(feature = "sctp")]
    pub(super) fn dtls_identity(&self) -> Option<&ServerIdentity> {
        match &self.certificates {
            Certificates::Own { first, are_several: false, .. } if self.clients.is_none() => {
                Some(first)
            }
            _ => None,
        }
    }

    /// Uses other identities from the next handshake on.
    pub(super) fn replace(&self, identities: &[ServerIdentity]) -> Result<(), ServeError> {
        let Certificates::Own { current, .. } = &self.certificates else {
            return Err(ServeError::NoOwnIdentity);
        };
        if identities.is_empty() {
            return Err(ServeError::NoOwnIdentity);
        }
        let by_name = Arc::new(ByName::new(identities, &self.provider)?);
        *current.0.write().unwrap_or_else(PoisonError::into_inner) = by_name;
        Ok(())
    }

    /// Verifies certificates of clients in this way from the next handshake on.
    pub(super) fn replace_clients(&self, clients: &ClientCertificates) -> Result<(), ServeError> {
        let Some(current) = &self.clients else {
            let why = "the server did not ask for any when it started";
            return Err(ServeError::ClientRoots(why.to_owned()));
        };
        let verifier = clients.verifier(Arc::clone(&self.provider))?;
        *current.0.write().unwrap_or_else(PoisonError::into_inner) = verifier;
        Ok(())
    }
}

/// The certificates of a server at the moment.
#[derive(Debug)]
struct Current(RwLock<Arc<ByName>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let by_name = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        by_name.resolve(client_hello)
    }
}

/// How a server verifies certificates of clients at the moment.
#[derive(Debug)]
struct CurrentClients(RwLock<Arc<dyn ClientCertVerifier>>);

impl CurrentClients {
    fn now(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientCertVerifier for CurrentClients {
    fn client_auth_mandatory(&self) -> bool {
        self.now().client_auth_mandatory()
    }

    /// Names no authorities, which is allowed (RFC 8446 §4.2.4): the trait lends them, so they could
    /// not be replaced.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.now().verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now().verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.now().verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.now().supported_verify_schemes()
    }
}
