//! TLS of a QUIC client.
//!
//! It does what quinn's own does, and tells what that keeps to itself: the error that ended a handshake, of which quinn
//! passes on the alert and a text, and the key exchange. And where quinn's panics, because rustls cannot encrypt a
//! ClientHello with the key in a server's record, it fails.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use quinn::crypto::rustls::{HandshakeData, QuicClientConfig};
use quinn::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
};
use quinn::{ConnectError, ConnectionId, Side, TransportErrorCode};
use quinn_proto::TransportError;
use quinn_proto::transport_parameters::TransportParameters;
use rustls::quic::{ClientConnection, Connection, KeyChange, Secrets, Suite, Version};
use rustls::{CipherSuite, NamedGroup};
use rustls_pki_types::{CertificateDer, ServerName};

use crate::Error;
use crate::security::{CertificateRejection, observed_call};

/// QUIC version 1 (RFC 9000 §15).
const VERSION_1: u32 = 1;

/// The TLS configuration of QUIC connections.
pub(crate) struct QuicClientTls {
    config: Arc<rustls::ClientConfig>,
    /// That of Initial packets (RFC 9001 §5.2).
    suite: Suite,
    /// Checks Retry packets.
    quinn: Arc<QuicClientConfig>,
}

impl QuicClientTls {
    /// Returns the configuration of connections with this one of TLS.
    pub(crate) fn new(config: rustls::ClientConfig) -> Result<Self, Error> {
        let config = Arc::new(config);
        let initial = config.crypto_provider().cipher_suites.iter().find_map(|suite| {
            let is_initial = suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256;
            suite.tls13().filter(|_| is_initial)?.quic_suite()
        });
        let lacking = || Error::Security("QUIC needs TLS13_AES_128_GCM_SHA256".to_owned());
        let quinn = QuicClientConfig::try_from(Arc::clone(&config)).map_err(|_| lacking())?;
        Ok(Self { config, suite: initial.ok_or_else(lacking)?, quinn: Arc::new(quinn) })
    }
}

/// What the handshake of one connection has shown so far, which quinn does not tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuicObservation(Arc<ObservedHandshake>);

#[derive(Debug, Default)]
struct ObservedHandshake {
    error: OnceLock<rustls::Error>,
    rejection: OnceLock<CertificateRejection>,
    group: OnceLock<NamedGroup>,
}

impl QuicObservation {
    #[cfg(test)]
    pub(crate) fn from_rejection(rejection: CertificateRejection) -> Self {
        Self(Arc::new(ObservedHandshake { rejection: rejection.into(), ..Default::default() }))
    }

    /// Returns what ended the handshake at this end, if TLS did.
    pub(crate) fn error(&self) -> Option<&rustls::Error> {
        self.0.error.get()
    }

    /// Returns why the certificate was rejected, once it was.
    pub(crate) fn rejection(&self) -> Option<&CertificateRejection> {
        self.0.rejection.get()
    }

    /// Returns the group of the key exchange, once it is complete.
    pub(crate) fn group(&self) -> Option<NamedGroup> {
        self.0.group.get().copied()
    }
}

/// The TLS configuration of one connection.
pub(crate) struct ObservedClientConfig {
    tls: Arc<QuicClientTls>,
    observation: QuicObservation,
}

impl ObservedClientConfig {
    pub(crate) fn new(tls: Arc<QuicClientTls>, observation: QuicObservation) -> Self {
        Self { tls, observation }
    }
}

impl ClientConfig for ObservedClientConfig {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        if version != VERSION_1 {
            return Err(ConnectError::UnsupportedVersion);
        }
        let invalid = || ConnectError::InvalidServerName(server_name.to_owned());
        let name = ServerName::try_from(server_name).map_err(|_| invalid())?.to_owned();
        let mut encoded = Vec::new();
        params.write(&mut encoded);
        let config = Arc::clone(&self.tls.config);
        let tls = ClientConnection::new(config, Version::V1, name, encoded);
        let tls = tls.map_err(|error| {
            // quinn's error has no room for it: whoever gets that looks here first.
            let _ = self.observation.0.error.set(error);
            ConnectError::UnsupportedVersion
        })?;
        let (name, params) = (server_name.to_owned(), *params);
        let tls = Connection::Client(tls);
        Ok(Box::new(QuicClientSession {
            tls,
            secrets: None,
            has_data: false,
            name,
            params,
            config: self,
        }))
    }
}

/// TLS of one connection.
struct QuicClientSession {
    /// That of a client: the one of rustls for either side can export key material, too.
    tls: Connection,
    /// What the keys of later updates are made from (RFC 9001 §6).
    secrets: Option<Secrets>,
    /// Whether quinn was told that there is [`HandshakeData`].
    has_data: bool,
    name: String,
    params: TransportParameters,
    config: Arc<ObservedClientConfig>,
}

impl QuicClientSession {
    fn read(&mut self, buf: &[u8]) -> Result<(), TransportError> {
        let observation = &self.config.observation.0;
        let (result, rejection) = observed_call(|| self.tls.read_hs(buf));
        let Err(error) = result else { return Ok(()) };
        // The first one ends the handshake.
        if let Some(rejection) = rejection {
            let _ = observation.rejection.set(rejection);
        }
        let reason = error.to_string();
        let _ = observation.error.set(error);
        Err(match self.tls.alert() {
            Some(alert) => TransportError {
                code: TransportErrorCode::crypto(alert.into()),
                frame: None,
                reason,
            },
            None => TransportError {
                code: TransportErrorCode::PROTOCOL_VIOLATION,
                frame: None,
                reason: format!("TLS: {reason}"),
            },
        })
    }
}

impl Session for QuicClientSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        keys(self.config.tls.suite.keys(dst_cid, side, Version::V1))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let protocol = self.tls.alpn_protocol().map(<[u8]>::to_vec);
        self.has_data.then(|| Box::new(HandshakeData { protocol, server_name: None }) as _)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let chain: Vec<CertificateDer<'static>> =
            self.tls.peer_certificates()?.iter().map(|one| one.clone().into_owned()).collect();
        Some(Box::new(chain))
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.tls.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.tls {
            Connection::Client(tls) => Some(tls.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.read(buf)?;
        if let Some(group) = self.tls.negotiated_key_exchange_group() {
            // There is one exchange in a handshake.
            let _ = self.config.observation.0.group.set(group.name());
        }
        let had_data = self.has_data;
        self.has_data |= self.tls.alpn_protocol().is_some() || !self.is_handshaking();
        Ok(self.has_data && !had_data)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(encoded) = self.tls.quic_transport_parameters() else { return Ok(None) };
        Ok(Some(TransportParameters::read(Side::Client, &mut &encoded[..])?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        Some(keys(match self.tls.write_hs(buf)? {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                self.secrets = Some(next);
                keys
            }
        }))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.secrets.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        // The keys of Retry packets are constants (RFC 9001 §5.8), which a session of quinn's has.
        let quinn = Arc::clone(&self.config.tls.quinn);
        let session = quinn.start_session(VERSION_1, &self.name, &self.params);
        session.is_ok_and(|session| session.is_valid_retry(orig_dst_cid, header, payload))
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let exported = self.tls.export_keying_material(output, label, Some(context));
        exported.map(|_| ()).map_err(|_| ExportKeyingMaterialError)
    }
}

fn keys(keys: rustls::quic::Keys) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(keys.local.header),
            remote: Box::new(keys.remote.header),
        },
        packet: KeyPair {
            local: Box::new(keys.local.packet),
            remote: Box::new(keys.remote.packet),
        },
    }
}
