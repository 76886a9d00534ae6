//! What all attempts of an endpoint share: TLS configurations and UDP sockets.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use eyas_race::candidate::Alpn;
use rustls::ClientConfig;
#[cfg(feature = "sctp")]
use rustls::client::danger::ServerCertVerifier;

use crate::local_addresses::LocalAddresses;
#[cfg(feature = "quic")]
use crate::network::Network;
#[cfg(feature = "quic")]
use crate::quic_sockets::Sockets;
#[cfg(feature = "sctp")]
use crate::sctp::dtls::Identity;
use crate::security::Refusals;
use crate::{Error, SecurityParameters};

/// Configurations kept of one kind: a program offers few lists of protocols.
const MAX_OFFERS: usize = 8;

#[derive(Debug)]
pub(crate) struct Connector {
    stream_tls: ClientConfig,
    stream_offers: Offers<Arc<ClientConfig>>,
    #[cfg(feature = "quic")]
    quic: Quic,
    #[cfg(feature = "sctp")]
    sctp: crate::sctp::client::Clients,
    /// The one that all the configurations have, too.
    #[cfg(feature = "sctp")]
    verifier: Arc<dyn ServerCertVerifier>,
    #[cfg(feature = "sctp")]
    security: SecurityParameters,
    refusals: Arc<Refusals>,
    fast_open: bool,
    mptcp: bool,
    local_addresses: LocalAddresses,
}

/// What all QUIC attempts share.
#[cfg(feature = "quic")]
struct Quic {
    tls: ClientConfig,
    /// By whether data may go out before the handshake is complete.
    offers: [Offers<quinn::ClientConfig>; 2],
    tokens: Arc<dyn quinn::TokenStore>,
    early_data: bool,
    sockets: Sockets,
    network: Network,
}

impl Connector {
    pub(crate) fn new(
        security: &SecurityParameters,
        #[cfg(feature = "quic")] network: Network,
        fast_open: bool,
        mptcp: bool,
        local_addresses: LocalAddresses,
    ) -> Result<Self, Error> {
        let verifier = security.server_verifier()?;
        Ok(Self {
            stream_tls: security.stream_config(Arc::clone(&verifier))?,
            stream_offers: Offers::default(),
            #[cfg(feature = "quic")]
            quic: Quic {
                // Of its own, for a session of TLS over TCP must not be resumed over QUIC.
                tls: security.client_config(Arc::clone(&verifier))?,
                offers: Default::default(),
                tokens: security.quic_tokens(),
                early_data: security.allows_early_data(),
                sockets: Sockets::default(),
                network,
            },
            #[cfg(feature = "sctp")]
            sctp: crate::sctp::client::Clients::default(),
            #[cfg(feature = "sctp")]
            verifier,
            #[cfg(feature = "sctp")]
            security: security.clone(),
            refusals: security.refusals(),
            fast_open,
            mptcp,
            local_addresses,
        })
    }

    /// Returns what was wrong with certificates that were not accepted.
    pub(crate) fn refusals(&self) -> &Arc<Refusals> {
        &self.refusals
    }

    pub(crate) fn stream_tls(&self, alpn: &[Alpn]) -> Arc<ClientConfig> {
        self.stream_offers.get(alpn, || Arc::new(offering(&self.stream_tls, alpn)))
    }

    /// Returns the configuration of QUIC attempts that offer these protocols, except the round-trip
    /// estimate. `make` creates one without tokens.
    #[cfg(feature = "quic")]
    pub(crate) fn quic_config<E>(
        &self,
        alpn: &[Alpn],
        early_data: bool,
        make: impl FnOnce(ClientConfig) -> Result<quinn::ClientConfig, E>,
    ) -> Result<quinn::ClientConfig, E> {
        self.quic.offers[usize::from(early_data)].try_get(alpn, || {
            let mut tls = offering(&self.quic.tls, alpn);
            tls.enable_early_data = early_data;
            let mut config = make(tls)?;
            config.token_store(Arc::clone(&self.quic.tokens));
            Ok(config)
        })
    }

    /// Returns whether data may be sent before a handshake is complete.
    #[cfg(feature = "quic")]
    pub(crate) fn early_data(&self) -> bool {
        self.quic.early_data
    }

    #[cfg(feature = "quic")]
    pub(crate) fn quic_sockets(&self) -> &Sockets {
        &self.quic.sockets
    }

    #[cfg(feature = "quic")]
    pub(crate) fn network(&self) -> &Network {
        &self.quic.network
    }

    #[cfg(feature = "sctp")]
    pub(crate) fn sctp(&self) -> &crate::sctp::client::Clients {
        &self.sctp
    }

    /// Returns the verifier of server certificates for DTLS, and the identity for servers that
    /// request one.
    #[cfg(feature = "sctp")]
    pub(crate) fn dtls(&self) -> Result<(Arc<dyn ServerCertVerifier>, Identity), Error> {
        Ok((Arc::clone(&self.verifier), self.security.dtls_identity()?))
    }

    /// Opens associations in this way.
    #[cfg(feature = "sctp")]
    pub(crate) fn with_sctp(mut self, clients: crate::sctp::client::Clients) -> Self {
        self.sctp = clients;
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

fn offering(config: &ClientConfig, alpn: &[Alpn]) -> ClientConfig {
    let mut config = config.clone();
    config.alpn_protocols = alpn.iter().map(|name| name.clone().into_bytes()).collect();
    config
}

#[cfg(feature = "quic")]
impl fmt::Debug for Quic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quic").field("sockets", &self.sockets).finish_non_exhaustive()
    }
}

/// Configurations by the protocols that they offer, each made once.
struct Offers<T>(Mutex<Vec<(Vec<Alpn>, T)>>);

impl<T> Default for Offers<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Offers<T> {
    fn get(&self, alpn: &[Alpn], make: impl FnOnce() -> T) -> T {
        match self.try_get(alpn, || Ok::<_, std::convert::Infallible>(make())) {
            Ok(made) => made,
            Err(never) => match never {},
        }
    }

    fn try_get<E>(&self, alpn: &[Alpn], make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, one)) = made.iter().find(|(offered, _)| offered == alpn) {
            return Ok(one.clone());
        }
        let one = make()?;
        if made.len() >= MAX_OFFERS {
            made.remove(0);
        }
        made.push((alpn.to_vec(), one.clone()));
        Ok(one)
    }
}

impl<T> fmt::Debug for Offers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(made.iter().map(|(offered, _)| offered)).finish()
    }
}
