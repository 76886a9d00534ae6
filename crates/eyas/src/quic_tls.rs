//! TLS of a QUIC client that tells its key exchange, and why it has rejected the server's certificate.
//!
//! quinn passes on the alert of a failed handshake and the text of rustls's error, but not the error
//! itself; several faults of a certificate share an alert, and some share theirs with faults of
//! other kinds.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use quinn::crypto::rustls::QuicClientConfig;
use quinn::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
};
use quinn::{ConnectError, ConnectionId, Side};
use quinn_proto::TransportError;
use quinn_proto::transport_parameters::TransportParameters;
use rustls::NamedGroup;

use crate::security::{CertificateRejection, observed_call, recorded_call};

/// What the handshake of one connection has shown so far, which quinn does not tell.
#[derive(Clone, Debug, Default)]
pub(super) struct QuicObservation(Arc<ObservedHandshake>);

#[derive(Debug, Default)]
struct ObservedHandshake {
    rejection: OnceLock<CertificateRejection>,
    group: OnceLock<NamedGroup>,
}

impl QuicObservation {
    #[cfg(test)]
    pub(super) fn from_rejection(rejection: CertificateRejection) -> Self {
        Self(Arc::new(ObservedHandshake { rejection: rejection.into(), ..Default::default() }))
    }

    /// Returns why the certificate was rejected, once it was.
    pub(super) fn rejection(&self) -> Option<&CertificateRejection> {
        self.0.rejection.get()
    }

    /// Returns the group of the key exchange, once it is complete.
    pub(super) fn group(&self) -> Option<NamedGroup> {
        self.0.group.get().copied()
    }
}

/// The TLS configuration of one connection.
pub(super) struct ObservedClientConfig {
    tls: Arc<QuicClientConfig>,
    observation: QuicObservation,
}

impl ObservedClientConfig {
    pub(super) fn new(tls: Arc<QuicClientConfig>, observation: QuicObservation) -> Self {
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
        let session = Arc::clone(&self.tls).start_session(version, server_name, params)?;
        Ok(Box::new(ObservedSession { session, observation: self.observation.clone() }))
    }
}

struct ObservedSession {
    session: Box<dyn Session>,
    observation: QuicObservation,
}

impl Session for ObservedSession {
    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let ((result, rejection), group) =
            recorded_call(|| observed_call(|| self.session.read_handshake(buf)));
        let seen = &self.observation.0;
        if let (Err(_), Some(rejection)) = (&result, rejection) {
            // The first one ends the handshake.
            let _ = seen.rejection.set(rejection);
        }
        if let Some(group) = group {
            // There is one exchange in a handshake.
            let _ = seen.group.set(group);
        }
        result
    }

    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.session.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.session.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.session.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.session.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.session.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.session.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        self.session.write_handshake(buf)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.session.next_1rtt_keys()
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.session.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.session.export_keying_material(output, label, context)
    }
}
