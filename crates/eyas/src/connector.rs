//! What all attempts of an endpoint share: the TLS configurations and the UDP sockets.

use std::sync::Arc;

use eyas_race::candidate::Alpn;
use rustls::ClientConfig;

use crate::{Error, SecurityParameters};

#[derive(Debug)]
pub(crate) struct Connector {
    stream_tls: ClientConfig,
    #[cfg(feature = "quic")]
    quic_tls: ClientConfig,
    #[cfg(feature = "quic")]
    early_data: bool,
    #[cfg(feature = "quic")]
    quic_sockets: crate::attempt::quic_sockets::Sockets,
    fast_open: bool,
    mptcp: bool,
}

impl Connector {
    pub(crate) fn new(
        security: &SecurityParameters,
        fast_open: bool,
        mptcp: bool,
    ) -> Result<Self, Error> {
        Ok(Self {
            stream_tls: security.client_config()?,
            // Of its own, for a session of TLS over TCP must not be resumed over QUIC.
            #[cfg(feature = "quic")]
            quic_tls: security.client_config()?,
            #[cfg(feature = "quic")]
            early_data: security.allows_early_data(),
            #[cfg(feature = "quic")]
            quic_sockets: crate::attempt::quic_sockets::Sockets::default(),
            fast_open,
            mptcp,
        })
    }

    pub(crate) fn stream_tls(&self, alpn: &[Alpn]) -> Arc<ClientConfig> {
        Arc::new(offering(&self.stream_tls, alpn))
    }

    #[cfg(feature = "quic")]
    pub(crate) fn quic_tls(&self, alpn: &[Alpn]) -> ClientConfig {
        offering(&self.quic_tls, alpn)
    }

    /// Whether data may be sent before a handshake is complete.
    #[cfg(feature = "quic")]
    pub(crate) fn early_data(&self) -> bool {
        self.early_data
    }

    #[cfg(feature = "quic")]
    pub(crate) fn quic_sockets(&self) -> &crate::attempt::quic_sockets::Sockets {
        &self.quic_sockets
    }

    /// Whether MPTCP is spoken where TCP was planned.
    pub(crate) fn mptcp(&self) -> bool {
        self.mptcp
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
