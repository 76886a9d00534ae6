//! What all attempts of an endpoint share: TLS configurations and UDP sockets.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use eyas_race::candidate::AlpnName;
#[cfg(feature = "sctp")]
use eyas_sctp_tokio::{DtlsIdentity, SctpConnector};
use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;

#[cfg(feature = "quic")]
use crate::attempt::client_hello::HelloLength;
use crate::ech::{EchOffer, EchParameters};
use crate::local_addresses::LocalAddresses;
#[cfg(feature = "quic")]
use crate::network::CurrentNetwork;
#[cfg(feature = "quic")]
use crate::quic_sockets::QuicSockets;
#[cfg(feature = "quic")]
use crate::quic_tls::QuicClientTls;
use crate::{Error, SecurityParameters};

/// The maximum number of cached configurations of one kind; a program offers few lists of
/// protocols.
const MAX_CONFIGS: usize = 8;

#[derive(Debug)]
pub(crate) struct EndpointConnector {
    stream_tls: ClientConfig,
    stream_configs: ConfigCache<Arc<ClientConfig>>,
    short_hellos: ShortHelloConnector,
    #[cfg(feature = "quic")]
    quic: QuicConnector,
    #[cfg(feature = "sctp")]
    sctp: SctpConnector,
    /// The verifier that all configurations use.
    verifier: Arc<dyn ServerCertVerifier>,
    security: SecurityParameters,
    fast_open: bool,
    mptcp: bool,
    local_addresses: LocalAddresses,
}

/// How an endpoint connects where a ClientHello of two packets does not get through.
#[derive(Debug, Default)]
struct ShortHelloConnector {
    /// `None` if every ClientHello fits into one packet, or has to be of two.
    tls: Option<ClientConfig>,
    configs: ConfigCache<Arc<ClientConfig>>,
}

/// The configurations of TLS over a stream.
pub(crate) struct StreamTls {
    pub(crate) tls: Arc<ClientConfig>,
    /// That for a ClientHello that fits into one packet, unless the first does, or must not.
    pub(crate) short: Option<Arc<ClientConfig>>,
}

/// What the DTLS sessions of an endpoint use.
#[cfg(feature = "sctp")]
pub(crate) struct DtlsConnector {
    /// The verifier of server certificates.
    pub(crate) verifier: Arc<dyn ServerCertVerifier>,
    /// The identity for servers that request one.
    pub(crate) identity: DtlsIdentity,
    /// Whether that is a certificate of the caller's, rather than an anonymous one.
    pub(crate) has_certificate: bool,
}

/// What all QUIC attempts share.
#[cfg(feature = "quic")]
struct QuicConnector {
    tls: ClientConfig,
    /// Indexed by whether early data is allowed, whether ECH is pretended (GREASE), and whether the ClientHello is short.
    configs: [[[ConfigCache<Arc<QuicClientTls>>; 2]; 2]; 2],
    tokens: Arc<dyn quinn::TokenStore>,
    early_data: bool,
    sockets: QuicSockets,
    network: CurrentNetwork,
}

impl EndpointConnector {
    pub(crate) fn new(
        security: &SecurityParameters,
        #[cfg(feature = "quic")] network: CurrentNetwork,
        fast_open: bool,
        mptcp: bool,
        local_addresses: LocalAddresses,
    ) -> Result<Self, Error> {
        let verifier = security.server_verifier()?;
        let stream_tls = security.stream_config(Arc::clone(&verifier))?;
        let short_hello = security.short_hello_config(&stream_tls, Arc::clone(&verifier), None)?;
        Ok(Self {
            stream_tls,
            stream_configs: ConfigCache::default(),
            short_hellos: ShortHelloConnector { tls: short_hello, ..Default::default() },
            #[cfg(feature = "quic")]
            quic: QuicConnector {
                // Separate, because a TLS session over TCP must not be resumed over QUIC.
                tls: security.client_config(Arc::clone(&verifier))?,
                configs: Default::default(),
                tokens: security.quic_tokens(),
                early_data: security.allows_early_data(),
                sockets: QuicSockets::default(),
                network,
            },
            #[cfg(feature = "sctp")]
            sctp: SctpConnector::default(),
            verifier,
            security: security.clone(),
            fast_open,
            mptcp,
            local_addresses,
        })
    }

    /// Returns the configurations for streams to a server that is offered this. Those with a key of the server are made
    /// for each attempt: such keys change by the hour.
    pub(crate) fn stream_tls(&self, alpn: &[AlpnName], ech: &EchOffer) -> Result<StreamTls, Error> {
        let Some(mode) = ech.mode() else {
            let tls = self.stream_configs.get(alpn, || Arc::new(with_alpn(&self.stream_tls, alpn)));
            let short = &self.short_hellos;
            let create = |tls| short.configs.get(alpn, || Arc::new(with_alpn(tls, alpn)));
            return Ok(StreamTls { tls, short: short.tls.as_ref().map(create) });
        };
        let (security, verifier) = (&self.security, || Arc::clone(&self.verifier));
        let tls = security.stream_ech_config(&self.stream_tls, verifier(), mode.clone())?;
        let short = security.short_hello_config(&tls, verifier(), Some(mode))?;
        let with_alpn = |tls| Arc::new(with_alpn(&tls, alpn));
        Ok(StreamTls { tls: with_alpn(tls), short: short.map(with_alpn) })
    }

    /// Returns how ECH is used.
    pub(crate) fn ech(&self) -> &EchParameters {
        self.security.ech()
    }

    /// Returns whether a ClientHello of one packet may be sent where one of two does not get through.
    pub(crate) fn may_shorten_hello(&self) -> bool {
        self.security.may_shorten_hello()
    }

    /// Returns whether TLS over streams offers TLS 1.3 alone.
    pub(crate) fn has_tls13_alone(&self) -> bool {
        self.security.has_tls13_alone()
    }

    /// Returns the TLS configuration of QUIC attempts that offer these protocols to a server that is offered this.
    #[cfg(feature = "quic")]
    pub(crate) fn quic_tls(
        &self,
        alpn: &[AlpnName],
        ech: &EchOffer,
        early_data: bool,
        hello: HelloLength,
    ) -> Result<Arc<QuicClientTls>, Error> {
        let (quic, verifier) = (&self.quic, || Arc::clone(&self.verifier));
        let create = |ech: &EchOffer| {
            let mut tls = match (ech.mode(), hello) {
                (None, HelloLength::Long) => with_alpn(&quic.tls, alpn),
                (mode, hello) => {
                    let beside = &quic.tls;
                    let tls = self.security.quic_config_beside(beside, verifier(), mode, hello)?;
                    with_alpn(&tls, alpn)
                }
            };
            tls.enable_early_data = early_data;
            QuicClientTls::new(tls).map(Arc::new)
        };
        let is_grease = matches!(ech, EchOffer::Grease);
        match ech {
            EchOffer::Encrypted(..) => create(ech),
            EchOffer::Nothing | EchOffer::Grease => {
                let is_short = hello == HelloLength::Short;
                let [by_grease, by_length] = [is_grease, is_short].map(usize::from);
                let configs = &quic.configs[usize::from(early_data)][by_grease][by_length];
                configs.try_get(alpn, || create(ech))
            }
        }
    }

    /// Returns the tokens that servers gave for later connections (RFC 9000 §8.1.3).
    #[cfg(feature = "quic")]
    pub(crate) fn quic_tokens(&self) -> Arc<dyn quinn::TokenStore> {
        Arc::clone(&self.quic.tokens)
    }

    /// Returns whether data may be sent before a handshake is complete.
    #[cfg(feature = "quic")]
    pub(crate) fn early_data(&self) -> bool {
        self.quic.early_data
    }

    #[cfg(feature = "quic")]
    pub(crate) fn quic_sockets(&self) -> &QuicSockets {
        &self.quic.sockets
    }

    #[cfg(feature = "quic")]
    pub(crate) fn network(&self) -> &CurrentNetwork {
        &self.quic.network
    }

    #[cfg(feature = "sctp")]
    pub(crate) fn sctp(&self) -> &SctpConnector {
        &self.sctp
    }

    /// Returns what DTLS sessions use.
    #[cfg(feature = "sctp")]
    pub(crate) fn dtls(&self) -> Result<DtlsConnector, Error> {
        Ok(DtlsConnector {
            verifier: Arc::clone(&self.verifier),
            identity: self.security.dtls_identity()?,
            has_certificate: self.security.has_client_certificate(),
        })
    }

    /// Sets what opens SCTP associations.
    #[cfg(feature = "sctp")]
    pub(crate) fn with_sctp(mut self, sctp: SctpConnector) -> Self {
        self.sctp = sctp;
        self
    }

    /// Returns whether MPTCP is used if TCP was planned.
    pub(crate) fn mptcp(&self) -> bool {
        self.mptcp
    }

    /// Returns the local addresses of connections.
    pub(crate) fn local_addresses(&self) -> &LocalAddresses {
        &self.local_addresses
    }

    pub(crate) fn fast_open(&self) -> bool {
        self.fast_open
    }
}

fn with_alpn(config: &ClientConfig, alpn: &[AlpnName]) -> ClientConfig {
    let mut config = config.clone();
    config.alpn_protocols = alpn.iter().map(|name| name.clone().into_bytes()).collect();
    config
}

#[cfg(feature = "quic")]
impl fmt::Debug for QuicConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicConnector").field("sockets", &self.sockets).finish_non_exhaustive()
    }
}

/// Configurations by the protocols that they offer, each created once.
struct ConfigCache<T>(Mutex<Vec<(Vec<AlpnName>, T)>>);

impl<T> Default for ConfigCache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> ConfigCache<T> {
    fn get(&self, alpn: &[AlpnName], create: impl FnOnce() -> T) -> T {
        match self.try_get(alpn, || Ok::<_, std::convert::Infallible>(create())) {
            Ok(config) => config,
            Err(never) => match never {},
        }
    }

    fn try_get<E>(&self, alpn: &[AlpnName], create: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut configs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, config)) = configs.iter().find(|(offered, _)| offered == alpn) {
            return Ok(config.clone());
        }
        let config = create()?;
        if configs.len() >= MAX_CONFIGS {
            configs.remove(0);
        }
        configs.push((alpn.to_vec(), config.clone()));
        Ok(config)
    }
}

impl<T> fmt::Debug for ConfigCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let configs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(configs.iter().map(|(offered, _)| offered)).finish()
    }
}
