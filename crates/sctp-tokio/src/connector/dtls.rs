//! Opens associations inside DTLS (RFC 8261).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use eyas_sctp::config::{AssociationConfig, EndpointConfig};
use eyas_sctp::io::{Ecn, Fragmentation, Marking, Transmit};
use rustls_pki_types::CertificateDer;

use super::{
    PendingAssociation, SctpConnectError, SctpConnector, SctpPeer, first_timeout, init_options,
    start, udp_wires,
};
use crate::SctpAssociation;
use crate::carrier::{DtlsSessions, SourceCache, Wire};
use crate::dtls::{
    DtlsEndReason, DtlsIdentity, DtlsTrust, MAX_OVERHEAD, Opening, SessionPath, State,
};
use crate::shared_endpoint::EndpointHandle;
use crate::task::{self, Homing};

impl SctpConnector {
    /// Opens a DTLS session and sends an INIT through it (RFC 8261). Each session has its own UDP
    /// socket, because DTLS distinguishes sessions by their addresses. The association, which has one
    /// path, then waits at its INIT ACK. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the handshake fails, or a socket cannot be opened.
    pub async fn open_dtls(
        &self,
        peer: impl Into<SctpPeer>,
        identity: &DtlsIdentity,
        trust: DtlsTrust,
    ) -> Result<PendingDtlsAssociation, SctpConnectError> {
        let peer = peer.into();
        let mut remote = peer.address;
        remote.set_port(self.udp_port(&peer));
        let wire = Wire::dtls(SocketAddr::new(self.local_for(remote), 0))?;
        let sessions = wire.sessions().map(Arc::clone);
        let sessions = sessions.ok_or(io::Error::from(io::ErrorKind::Unsupported))?;
        let endpoint = task::start(EndpointConfig::default(), vec![wire], Homing::Single, None)?;
        sessions.open(remote, identity, trust, peer.rtt.map(first_timeout));
        let session = FirstSession { sessions, path: remote.into(), is_mutual: false };
        self.connect_over(&endpoint, session, &peer).await
    }

    /// Opens an association inside DTLS that has several paths: a session for each, in which both
    /// ends show certificates. The sessions of further paths are opened when something is first
    /// sent there. The association then waits at its INIT ACK. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the first handshake fails, or a socket cannot be opened.
    pub async fn open_dtls_paths(
        &self,
        peer: impl Into<SctpPeer>,
        identity: DtlsIdentity,
        trust: DtlsTrust,
    ) -> Result<PendingDtlsAssociation, SctpConnectError> {
        let peer = peer.into();
        let mut remote = peer.address;
        remote.set_port(self.udp_port(&peer));
        let opening = Opening { identity, trust, initial_rto: peer.rtt.map(first_timeout) };
        let wires =
            udp_wires(&self.local_addresses, |local| Wire::dtls_paths(local, opening.clone()))?;
        let endpoint = start(wires)?;
        let session = FirstSession::open(&endpoint.0.wires, remote)?;
        self.connect_over(&endpoint, session, &peer).await
    }

    /// Sends an INIT once the session is up.
    async fn connect_over(
        &self,
        endpoint: &EndpointHandle,
        session: FirstSession,
        peer: &SctpPeer,
    ) -> Result<PendingDtlsAssociation, SctpConnectError> {
        let version = match session.sessions.handshake_ended(session.path).await {
            State::Up(version) => version,
            State::Handshake => return Err(DtlsEndReason::TimedOut.into()),
            State::Over(ending) => return Err(ending.into()),
        };
        let mut options = init_options(peer, self.udp_port(peer));
        options.association = match session.is_mutual {
            false => over_dtls(&self.association),
            true => over_dtls_paths(&self.association),
        };
        if let Some(rto) = peer.rtt.map(first_timeout) {
            options.association.rto_initial = rto;
        }
        let association = self.init(endpoint, options)?;
        Ok(PendingDtlsAssociation { association, version, session })
    }
}

/// The session that the INIT of an association is sent in.
#[derive(Debug)]
struct FirstSession {
    sessions: Arc<DtlsSessions>,
    path: SessionPath,
    is_mutual: bool,
}

impl FirstSession {
    /// Opens a session from the address that the routing chooses.
    fn open(wires: &[Wire], remote: SocketAddr) -> io::Result<Self> {
        let mut sources = SourceCache::default();
        let transmit = Transmit {
            local: None,
            remote,
            ecn: Ecn::NotCapable,
            marking: Marking::default(),
            fragmentation: Fragmentation::Avoided,
            contents: Bytes::new(),
            segment_size: 1,
            peer: None,
        };
        let wire = sources.choose(wires, &transmit).and_then(|index| wires.get(index));
        let wire = wire.ok_or(io::ErrorKind::NetworkUnreachable)?;
        let sessions = wire.sessions().ok_or(io::ErrorKind::Unsupported)?;
        let local = wire.source_for(sources.source(remote));
        let path = SessionPath { remote, local };
        sessions.open_first(path);
        Ok(Self { sessions: Arc::clone(sessions), path, is_mutual: true })
    }
}

/// An association inside DTLS that waits at its INIT ACK. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct PendingDtlsAssociation {
    association: PendingAssociation,
    version: &'static str,
    session: FirstSession,
}

impl PendingDtlsAssociation {
    /// Returns the version of the session: `DTLSv1.2` or `DTLSv1.3`.
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// Returns the verified certificate of the server.
    pub fn peer_certificate(&self) -> Option<CertificateDer<'static>> {
        self.session.sessions.certificate_on(self.session.path)
    }

    /// Waits until the session is over. A server that refuses the certificate of a client ends it,
    /// when the client has already completed the handshake. Sessions without certificates on both
    /// sides are not watched. Cancel-safe.
    pub async fn session_ended(&self) {
        if !self.session.is_mutual {
            return std::future::pending().await;
        }
        self.session.sessions.session_ended(self.session.path).await;
    }

    /// Returns the association, for callers that watch the session themselves.
    pub fn association(&self) -> &PendingAssociation {
        &self.association
    }

    /// Continues with the COOKIE ECHO, and waits until the association is established.
    ///
    /// # Errors
    /// If the session ends or the association is lost before that.
    pub async fn established(&self) -> Result<SctpAssociation, SctpConnectError> {
        tokio::select! {
            established = self.association.established() => Ok(established?),
            () = self.session_ended() => Err(DtlsEndReason::Closed.into()),
        }
    }
}

/// Returns the configuration of an association inside DTLS (RFC 8261 §5, §6): records add to its
/// packets, which need no checksum of their own (RFC 9653). There is one path: its ECN marks are
/// hidden by DTLS, and it fails when the association does.
pub(crate) fn over_dtls(config: &AssociationConfig) -> AssociationConfig {
    let mut config = over_dtls_paths(config);
    config.path_max_retrans = config.association_max_retrans;
    config.extensions.dynamic_addresses = false;
    config.max_peer_addresses = 0;
    config
}

/// Returns the configuration of an association inside DTLS with a session for each path: as without
/// DTLS, except for the size of its packets, which need no checksum of their own, and for the marks
/// of ECN, which DTLS hides.
pub(crate) fn over_dtls_paths(config: &AssociationConfig) -> AssociationConfig {
    let mut config = config.clone();
    config.packet_overhead = MAX_OVERHEAD;
    config.extensions.zero_checksum = true;
    config.extensions.ecn = false;
    config
}
