//! The security parameters of an endpoint: trust and own credentials.

use std::sync::Arc;

#[cfg(feature = "sctp")]
use eyas_sctp_tokio::DtlsIdentity;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{EchMode, Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{
    CertificateError, ClientConfig, KeyLogFile, NamedGroup, ProtocolVersion, RootCertStore,
    SupportedCipherSuite, SupportedProtocolVersion,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

#[cfg(feature = "quic")]
use crate::attempt::client_hello::HelloLength;
use crate::ech::EchParameters;
use crate::{EchChoice, Error};

mod fault_text;
mod groups;
mod key;
mod key_exchange;
mod name;
mod rejections;
mod signatures;
mod verdict;
mod verifier;

pub(crate) use groups::KeyExchangeGroups;
pub(crate) use key::{ClientKeyVerifier, ClientKeys};
pub use key::{KeyFingerprint, KeyFingerprintError};
pub use key_exchange::crypto_provider;
pub(crate) use key_exchange::recorded_call;
#[cfg(feature = "sctp")]
pub(crate) use rejections::keeping;
#[cfg(feature = "quic")]
pub(crate) use rejections::observed_call;
pub(crate) use rejections::{CertificateRejection, certificate_fault, explained, observed};
#[cfg(feature = "encrypted-dns")]
pub(crate) use verdict::{CertificateVerdict, PresentedCertificate, ReviewedVerifier};

/// The maximum number of sessions kept for resumption per endpoint and transport.
const MAX_SESSIONS: usize = 256;

/// Security parameters (RFC 9622 §6.3): trust, own certificate, resumption. They apply equally to
/// TLS over TCP and MPTCP and to QUIC, so that candidates can race each other (RFC 9621 §3.2).
///
/// The name of a server is encrypted (RFC 9849) where the server offers that: see
/// [`with_ech`](Self::with_ech).
#[derive(Clone, Debug)]
pub struct SecurityParameters {
    trust: TrustSource,
    added_roots: Vec<CertificateDer<'static>>,
    client: Option<ClientIdentity>,
    resumption: bool,
    #[cfg(feature = "quic")]
    early_data: bool,
    key_log: bool,
    /// All safe versions if empty.
    versions: Vec<&'static SupportedProtocolVersion>,
    /// All suites of the provider if empty.
    suites: Vec<SupportedCipherSuite>,
    groups: KeyExchangeGroups,
    ech: EchParameters,
}

#[derive(Clone, Debug)]
enum TrustSource {
    Platform,
    Roots(Vec<CertificateDer<'static>>),
    Keys(Vec<KeyFingerprint>),
    AnyCertificate,
}

#[derive(Clone, Debug)]
struct ClientIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
}

impl Default for SecurityParameters {
    fn default() -> Self {
        Self::platform()
    }
}

impl SecurityParameters {
    /// Trusts the platform's roots.
    pub fn platform() -> Self {
        Self {
            trust: TrustSource::Platform,
            added_roots: Vec::new(),
            client: None,
            resumption: true,
            #[cfg(feature = "quic")]
            early_data: false,
            key_log: false,
            versions: Vec::new(),
            suites: Vec::new(),
            groups: KeyExchangeGroups::default(),
            ech: EchParameters::default(),
        }
    }

    /// Trusts only these roots.
    #[must_use]
    pub fn with_roots(mut self, roots: impl IntoIterator<Item = CertificateDer<'static>>) -> Self {
        self.trust = TrustSource::Roots(roots.into_iter().collect());
        self
    }

    /// Trusts this root in addition.
    #[must_use]
    pub fn with_added_root(mut self, root: CertificateDer<'static>) -> Self {
        self.added_roots.push(root);
        self
    }

    /// Trusts only servers with one of these keys, whatever names, dates and issuers their
    /// certificates have, like a client that already knows the server.
    #[must_use]
    pub fn with_pinned_keys(mut self, keys: impl IntoIterator<Item = KeyFingerprint>) -> Self {
        self.trust = TrustSource::Keys(keys.into_iter().collect());
        self
    }

    /// Presents this certificate chain, end-entity certificate first, to servers that request one.
    /// SCTP inside UDP and DTLS then has a DTLS 1.3 session for each path, all with this certificate,
    /// whose key must then be an ECDSA key.
    #[must_use]
    pub fn with_client_certificate(
        mut self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Self {
        self.client = Some(ClientIdentity { chain, key: Arc::new(key) });
        self
    }

    /// Accepts any certificate: for tests and diagnosis only. The peer must still prove possession
    /// of the certificate's key.
    #[must_use]
    pub fn accept_any_certificate(mut self) -> Self {
        self.trust = TrustSource::AnyCertificate;
        self
    }

    /// Returns whether the certificates of peers are verified.
    pub(crate) const fn authenticates_peers(&self) -> bool {
        !matches!(self.trust, TrustSource::AnyCertificate)
    }

    /// Disables session resumption.
    #[must_use]
    pub fn without_resumption(mut self) -> Self {
        self.resumption = false;
        self
    }

    /// Lets `Endpoint::early` send 0-RTT data over QUIC (RFC 9001 §4.6), which an attacker can
    /// replay. Off by default. Nothing else sends early data: neither a race, which must not be won
    /// by a 0-RTT flight alone, nor TLS over TCP.
    #[cfg(feature = "quic")]
    #[must_use]
    pub fn with_early_data(mut self, early_data: bool) -> Self {
        self.early_data = early_data;
        self
    }

    /// Returns the store of tokens that spare a QUIC server the validation of this client's address
    /// (RFC 9000 §8.1.3). Like a session they allow the server to recognise a returning client.
    #[cfg(feature = "quic")]
    pub(crate) fn quic_tokens(&self) -> Arc<dyn quinn::TokenStore> {
        if self.resumption {
            Arc::new(quinn::TokenMemoryCache::default())
        } else {
            Arc::new(quinn::NoneTokenStore)
        }
    }

    #[cfg(feature = "quic")]
    pub(crate) fn allows_early_data(&self) -> bool {
        self.early_data
    }

    /// Writes session secrets to the file named by `SSLKEYLOGFILE`, for packet analysers.
    #[must_use]
    pub fn with_key_log(mut self) -> Self {
        self.key_log = true;
        self
    }

    /// Offers only these versions of TLS over TCP, MPTCP and SCTP, such as
    /// `[&rustls::version::TLS12]`. QUIC and encrypted DNS support only TLS 1.3, and DTLS is a
    /// protocol of its own: they are not affected.
    #[must_use]
    pub fn with_tls_versions(
        mut self,
        versions: impl IntoIterator<Item = &'static SupportedProtocolVersion>,
    ) -> Self {
        self.versions = versions.into_iter().collect();
        self
    }

    /// Offers only these cipher suites, most preferred first, where
    /// [`with_tls_versions`](Self::with_tls_versions) applies; see
    /// `rustls::crypto::ring::cipher_suite`. A version without one of its suites is not offered.
    #[must_use]
    pub fn with_cipher_suites(
        mut self,
        suites: impl IntoIterator<Item = SupportedCipherSuite>,
    ) -> Self {
        self.suites = suites.into_iter().collect();
        self
    }

    /// Offers only these groups for key exchange (RFC 8446 §4.2.7) over TLS and QUIC, most preferred first: of those that
    /// [`crypto_provider`] has, otherwise building the endpoint fails. An empty list stands for all of them. DTLS is not
    /// affected.
    #[must_use]
    pub fn with_key_exchange_groups(
        mut self,
        groups: impl IntoIterator<Item = NamedGroup>,
    ) -> Self {
        self.groups = KeyExchangeGroups::new(groups.into_iter().collect());
        self
    }

    /// Requires the key exchange X25519MLKEM768 (RFC 10024) of TLS and QUIC servers, and therefore TLS
    /// 1.3. Without this it is preferred: a server that lacks it gets X25519, and so does one that
    /// does not answer a ClientHello of two packets over TCP, which somebody who drops packets can
    /// bring about. DTLS, which has nothing of the kind, is not affected.
    #[must_use]
    pub fn require_post_quantum(mut self) -> Self {
        self.groups = KeyExchangeGroups::post_quantum();
        self
    }

    /// Sets how Encrypted ClientHello (RFC 9849) is used, by [`EchPolicy`]; [`EchPolicy::Auto`] by default.
    ///
    /// Given an [`EchConfigList`](crate::EchConfigList), the ClientHello to every server is encrypted with that, whatever
    /// DNS says, unless the policy is [`EchPolicy::Off`]. A server that has other configurations sends them, and is tried
    /// again with those (RFC 9849 §6.1.6); one that is not the public name is not reached.
    ///
    /// [`EchPolicy`]: crate::EchPolicy
    /// [`EchPolicy::Auto`]: crate::EchPolicy::Auto
    /// [`EchPolicy::Off`]: crate::EchPolicy::Off
    #[must_use]
    pub fn with_ech(mut self, choice: impl Into<EchChoice>) -> Self {
        match choice.into() {
            EchChoice::Policy(policy) => self.ech.policy = policy,
            EchChoice::Configs(configs) => self.ech.given = Some(configs),
        }
        self
    }

    pub(crate) fn ech(&self) -> &EchParameters {
        &self.ech
    }

    /// Returns whether a ClientHello of one packet may be sent where one of two does not get through.
    pub(crate) fn may_shorten_hello(&self) -> bool {
        self.groups.without_hybrid().is_some()
    }

    /// Returns whether TLS over streams offers TLS 1.3 alone, which a ClientHello with ECH does.
    pub(crate) fn has_tls13_alone(&self) -> bool {
        self.stream_versions().iter().all(|version| version.version == ProtocolVersion::TLSv1_3)
    }

    /// Returns a configuration without ALPN for streams; each call creates a separate resumption
    /// store. `verifier` is the result of [`server_verifier`](Self::server_verifier).
    pub(crate) fn stream_config(
        &self,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<ClientConfig, Error> {
        self.config(self.stream_provider(&self.groups)?, self.stream_versions(), verifier, None)
    }

    /// Returns the same as `long`, which is the result of that, but for a ClientHello of one packet,
    /// with the same sessions. `None` if `long` already has that, or if only X25519MLKEM768 is offered.
    pub(crate) fn short_hello_config(
        &self,
        long: &ClientConfig,
        verifier: Arc<dyn ServerCertVerifier>,
        ech: Option<EchMode>,
    ) -> Result<Option<ClientConfig>, Error> {
        let has_tls13 = self.stream_versions().contains(&&rustls::version::TLS13);
        let Some(groups) = self.groups.without_hybrid().filter(|_| has_tls13) else {
            return Ok(None);
        };
        let provider = self.stream_provider(&groups)?;
        let config = self.config(provider, self.stream_versions(), verifier, ech)?;
        Ok(Some(with_sessions_of(config, long)))
    }

    fn stream_provider(&self, groups: &KeyExchangeGroups) -> Result<CryptoProvider, Error> {
        let mut provider = groups.provider()?;
        if !self.suites.is_empty() {
            provider.cipher_suites.clone_from(&self.suites);
        }
        Ok(provider)
    }

    fn stream_versions(&self) -> &[&'static SupportedProtocolVersion] {
        match &self.versions[..] {
            [] => self.groups.versions(),
            versions => versions,
        }
    }

    /// Returns the same as `clear`, which is the result of that, with ECH and the same sessions.
    pub(crate) fn stream_ech_config(
        &self,
        clear: &ClientConfig,
        verifier: Arc<dyn ServerCertVerifier>,
        ech: EchMode,
    ) -> Result<ClientConfig, Error> {
        let versions = self.stream_versions();
        let config =
            self.config(self.stream_provider(&self.groups)?, versions, verifier, Some(ech))?;
        Ok(with_sessions_of(config, clear))
    }

    /// Returns the same as `clear`, which is the configuration of QUIC, with ECH, or for a ClientHello of one packet, and
    /// with the same sessions.
    #[cfg(feature = "quic")]
    pub(crate) fn quic_config_beside(
        &self,
        clear: &ClientConfig,
        verifier: Arc<dyn ServerCertVerifier>,
        ech: Option<EchMode>,
        hello: HelloLength,
    ) -> Result<ClientConfig, Error> {
        let short = self.groups.without_hybrid().filter(|_| hello == HelloLength::Short);
        let provider = short.as_ref().unwrap_or(&self.groups).provider()?;
        let config = self.config(provider, self.groups.versions(), verifier, ech)?;
        Ok(with_sessions_of(config, clear))
    }

    /// Returns the same for protocols that choose versions and suites themselves: QUIC, encrypted
    /// DNS.
    #[cfg(any(feature = "quic", feature = "encrypted-dns"))]
    pub(crate) fn client_config(
        &self,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<ClientConfig, Error> {
        self.config(self.groups.provider()?, self.groups.versions(), verifier, None)
    }

    fn config(
        &self,
        provider: CryptoProvider,
        versions: &[&'static SupportedProtocolVersion],
        verifier: Arc<dyn ServerCertVerifier>,
        ech: Option<EchMode>,
    ) -> Result<ClientConfig, Error> {
        let builder = ClientConfig::builder_with_provider(Arc::new(provider));
        let builder = match ech {
            Some(mode) => builder.with_ech(mode)?,
            None => builder.with_protocol_versions(versions)?,
        }
        .dangerous()
        .with_custom_certificate_verifier(verifier);
        let mut config = match &self.client {
            None => builder.with_no_client_auth(),
            Some(client) => {
                builder.with_client_auth_cert(client.chain.clone(), client.key.clone_key())?
            }
        };
        config.resumption = if self.resumption {
            Resumption::in_memory_sessions(MAX_SESSIONS)
        } else {
            Resumption::disabled()
        };
        if self.key_log {
            config.key_log = Arc::new(KeyLogFile::new());
        }
        Ok(config)
    }

    /// Returns the verifier of server certificates, for any transport. Creating it reads and parses
    /// every root: once is enough for an endpoint.
    pub(crate) fn server_verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, Error> {
        let provider = Arc::new(crypto_provider());
        let inner = self.trust_verifier(&provider)?;
        Ok(Arc::new(rejections::recording(inner)))
    }

    /// Returns the identity that a client presents to a DTLS server that requests a certificate.
    #[cfg(feature = "sctp")]
    pub(crate) fn dtls_identity(&self) -> Result<DtlsIdentity, Error> {
        Ok(match &self.client {
            Some(ClientIdentity { chain, key }) if !chain.is_empty() => {
                DtlsIdentity::new(&chain[0], key)
            }
            _ => DtlsIdentity::anonymous(),
        }?)
    }

    /// Returns whether clients have a certificate to present.
    #[cfg(feature = "sctp")]
    pub(crate) fn has_client_certificate(&self) -> bool {
        self.client.as_ref().is_some_and(|client| !client.chain.is_empty())
    }

    fn trust_verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, Error> {
        match &self.trust {
            TrustSource::AnyCertificate => Ok(Arc::new(verifier::AcceptAny::new(provider))),
            TrustSource::Keys(keys) => Ok(Arc::new(key::PinnedKeyVerifier::new(provider, keys))),
            TrustSource::Platform => {
                let inner = self.platform_verifier(provider)?;
                let added = self.added_roots.clone();
                Ok(Arc::new(verifier::accepting_anchors(inner, added, true)))
            }
            TrustSource::Roots(roots) => {
                let anchors: Vec<_> = roots.iter().chain(&self.added_roots).cloned().collect();
                let inner = roots_verifier(provider, &anchors)?;
                Ok(Arc::new(verifier::accepting_anchors(inner, anchors, false)))
            }
        }
    }

    /// Returns the platform's verifier. A machine without a trust store is an error only when it is
    /// needed: where roots were added, they count alone.
    fn platform_verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, Error> {
        // Android's verifier takes no more roots: there, those that were added count alone.
        #[cfg(target_os = "android")]
        let verifier = match &self.added_roots[..] {
            [] => rustls_platform_verifier::Verifier::new(Arc::clone(provider)),
            added => return Ok(roots_verifier(provider, added)?),
        };
        #[cfg(not(target_os = "android"))]
        let verifier = rustls_platform_verifier::Verifier::new_with_extra_roots(
            self.added_roots.iter().cloned(),
            Arc::clone(provider),
        );
        match verifier {
            Ok(verifier) => Ok(Arc::new(verifier)),
            Err(error) => {
                tracing::warn!(%error, "the platform's trust store cannot be used");
                match &self.added_roots[..] {
                    [] => Ok(Arc::new(verifier::AcceptNone::new(provider, error.to_string()))),
                    added => Ok(roots_verifier(provider, added)?),
                }
            }
        }
    }
}

/// Returns a configuration that resumes the sessions of another one. rustls holds a session to the verifier and to the
/// client certificates under which it began.
fn with_sessions_of(mut config: ClientConfig, other: &ClientConfig) -> ClientConfig {
    config.resumption = other.resumption.clone();
    config.client_auth_cert_resolver = Arc::clone(&other.client_auth_cert_resolver);
    config
}

/// Returns a verifier that trusts these roots alone.
fn roots_verifier(
    provider: &Arc<CryptoProvider>,
    roots: &[CertificateDer<'static>],
) -> Result<Arc<WebPkiServerVerifier>, Error> {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root.clone()).map_err(unusable_root)?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
        .build()
        .map_err(|error| Error::Security(error.to_string()))
}

fn unusable_root(error: rustls::Error) -> Error {
    let why = match error {
        rustls::Error::InvalidCertificate(CertificateError::BadEncoding) => {
            "it is damaged".to_owned()
        }
        other => other.to_string(),
    };
    Error::Security(format!("a root certificate cannot be used: {why}"))
}
