//! QUIC (RFC 9000), implemented by quinn.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyas_host::fault::SocketCall;
use eyas_race::candidate::Security;
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use quinn::crypto::rustls::HandshakeData;
use rustls_pki_types::CertificateDer;

use super::client_hello::{HandshakeFailure, HelloLength};
use super::handshakes::{self, Handshake};
use super::tls::explained_by_ech;
use super::{AttemptReporter, CandidateAttempt, EstablishedTransport, quic_failure};
use crate::byte_stream::ByteTransport;
use crate::connection_info::ConnectionInfo;
use crate::connector::EndpointConnector;
use crate::failure::{failure, open_failure, send_failure};
use crate::quic_sockets::SharedSocket;
use crate::quic_sockets::unanswered::PendingAttempt;
use crate::quic_stream::{QuicStream, StreamRole};
use crate::quic_tls::{ObservedClientConfig, QuicObservation};

/// Lower bound of the initial round-trip estimate: below it the probe timer (RFC 9002 §6.2) would
/// expire before a busy peer has had time to respond.
const MIN_INITIAL_RTT: Duration = Duration::from_millis(5);
/// Silence after which an established connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Silence after which a keep-alive packet is sent (RFC 9114 §5.1 asks for it while responses are
/// outstanding), so that a connection is closed only after several of them were not answered.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(10);

/// The peer's credit for all streams together, in bytes: no limit, as each stream has one, and yet
/// less than the largest, so that it can be extended.
const RECEIVE_WINDOW: u64 = 1 << 61;

/// The code with which a connection is closed if its peer cannot be reached; nothing reads it.
const PEER_UNREACHABLE: quinn::VarInt = quinn::VarInt::from_u32(0);

pub(super) async fn run(
    attempt: &CandidateAttempt,
    connector: &EndpointConnector,
    reporter: &AttemptReporter,
) -> Result<EstablishedTransport, AttemptFailure> {
    if attempt.quic_config.is_some() || !connector.may_shorten_hello() {
        attempt.forget_short_hello();
        return alone(attempt, connector, reporter, HelloLength::Long).await;
    }
    if attempt.has_short_hello() {
        return alone(attempt, connector, reporter, HelloLength::Short).await;
    }
    let (long_answered, short_answered) = (AtomicBool::new(false), AtomicBool::new(false));
    let run =
        async |length, answered| handshake(attempt, connector, reporter, length, answered).await;
    let long = async || run(HelloLength::Long, &long_answered).await;
    let short = async || run(HelloLength::Short, &short_answered).await;
    let long = Handshake { begin: long, answered: &long_answered };
    let short = Handshake { begin: short, answered: &short_answered };
    // quinn does not tell what has been acknowledged before the server has answered.
    handshakes::run(attempt, reporter, attempt.initial_rtt, long, short, || false).await
}

/// Connects with this ClientHello and no other.
async fn alone(
    attempt: &CandidateAttempt,
    connector: &EndpointConnector,
    reporter: &AttemptReporter,
    hello: HelloLength,
) -> Result<EstablishedTransport, AttemptFailure> {
    let answered = AtomicBool::new(false);
    let established = Box::pin(handshake(attempt, connector, reporter, hello, &answered)).await;
    established.map_err(|HandshakeFailure { failure, .. }| failure)
}

/// Connects with this ClientHello, and notes in `answered` once the server has answered it.
async fn handshake(
    attempt: &CandidateAttempt,
    connector: &EndpointConnector,
    reporter: &AttemptReporter,
    hello: HelloLength,
    answered: &AtomicBool,
) -> Result<EstablishedTransport, HandshakeFailure> {
    let start_time = Instant::now();
    let StartedQuic { mut connecting, mut info, socket, mut pending, observation } =
        start(attempt, connector, hello, false).await?;
    let failed = |error: &quinn::ConnectionError, reached| {
        let failure = quic_failure::handshake_failure(error, reached, &observation);
        observation.error().into_iter().for_each(|error| attempt.ech.observe(error));
        HandshakeFailure {
            failure: explained_by_ech(
                failure,
                attempt.server_name.as_ref().ok(),
                observation.rejection(),
            ),
            fault: quic_failure::length_fault(error),
        }
    };
    let data = pending.unless_failed(connecting.handshake_data()).await?;
    data.map_err(|error| failed(&error, EvidenceLevel::Started))?;
    answered.store(true, Ordering::Relaxed);
    drop(pending);
    info.timings.answered = Some(attempt.origin.elapsed());
    info.timings.transport = info.timings.answered;
    reporter.progress(EvidenceLevel::Transport, Some(start_time.elapsed())).await;
    let connection = connecting.await.map_err(|error| failed(&error, EvidenceLevel::Transport))?;
    socket.mark_connected();
    Ok(established(connection, info, attempt.origin, &observation))
}

/// An attempt whose first packet has been sent.
struct StartedQuic<'a> {
    connecting: quinn::Connecting,
    /// What is known so far.
    info: ConnectionInfo,
    socket: &'a SharedSocket,
    pending: PendingAttempt,
    observation: QuicObservation,
}

/// Sends the first packet.
async fn start<'a>(
    attempt: &CandidateAttempt,
    connector: &'a EndpointConnector,
    hello: HelloLength,
    early_data: bool,
) -> Result<StartedQuic<'a>, AttemptFailure> {
    let mut info = attempt.info();
    let peer = attempt.candidate.address;
    // Without a route, fail before a packet is sent.
    let routed = connector.network().source_address_for(peer);
    let routed = routed.map_err(|error| send_failure(&error, SocketCall::Connect, peer))?;
    let local = connector.local_addresses().first_for(peer);
    let socket = connector.quic_sockets().for_peer(peer, local).await;
    let socket = socket.map_err(|error| open_failure(&error, SocketCall::Bind))?;
    let source = local.unwrap_or(routed);
    let endpoint = &socket.endpoint;
    info.local = endpoint.local_addr().ok().map(|bound| SocketAddr::new(source, bound.port()));
    let name = attempt.server_name.as_ref().map_err(|error| {
        failure(FailureCause::Certificate, EvidenceLevel::Started, error.to_string())
    })?;
    let observation = QuicObservation::default();
    let config = client_config(attempt, connector, hello, early_data, &observation)?;
    let pending = socket.unanswered.register(peer);
    let connecting = endpoint
        .connect_with(config, peer, &name.to_str())
        .map_err(|error| quic_failure::start_failure(&error, &observation))?;
    Ok(StartedQuic { connecting, info, socket, pending, observation })
}

/// Returns the result once the handshake is complete.
fn established(
    connection: quinn::Connection,
    mut info: ConnectionInfo,
    origin: Instant,
    observation: &QuicObservation,
) -> EstablishedTransport {
    info.timings.security = Some(origin.elapsed());
    info.rtt = Some(connection.rtt());
    info.security = Security::Tls;
    info.protocol = Some("TLSv1.3");
    info.key_exchange = observation.group().and_then(|group| group.as_str());
    describe(&mut info, &connection);
    let transport = ByteTransport::Quic(Box::new(QuicStream::new(connection, StreamRole::Client)));
    EstablishedTransport { transport, info, read_ahead: Bytes::new() }
}

/// A connection on which data can be sent before its handshake is complete (RFC 9001 §4.6).
pub(crate) struct EarlyQuic {
    pub(crate) connection: quinn::Connection,
    pub(crate) info: ConnectionInfo,
    accepted: quinn::ZeroRttAccepted,
    origin: Instant,
    pending: PendingAttempt,
    observation: QuicObservation,
}

/// Resumes a session with 0-RTT, if there is one that allows it.
pub(crate) async fn early(
    attempt: &CandidateAttempt,
    connector: &EndpointConnector,
) -> Option<EarlyQuic> {
    if !connector.early_data() {
        return None;
    }
    let hello = if attempt.has_short_hello() { HelloLength::Short } else { HelloLength::Long };
    let StartedQuic { connecting, mut info, socket, pending, observation } =
        start(attempt, connector, hello, true).await.ok()?;
    let (connection, accepted) = connecting.into_0rtt().ok()?;
    socket.mark_connected();
    info.security = Security::Tls;
    info.protocol = Some("TLSv1.3");
    info.alpn = attempt.candidate.alpn.first().cloned();
    info.ech = attempt.ech.outcome();
    Some(EarlyQuic { connection, info, accepted, origin: attempt.origin, pending, observation })
}

impl EarlyQuic {
    /// Waits for the handshake, and returns whether the peer accepted the early data.
    pub(crate) async fn confirmed(
        mut self,
    ) -> Result<(EstablishedTransport, bool), AttemptFailure> {
        let accepted = match self.pending.unless_failed(self.accepted).await {
            Ok(accepted) => accepted,
            Err(failure) => {
                // Callers that already send on the connection must be notified of the failure.
                self.connection.close(PEER_UNREACHABLE, &[]);
                return Err(failure);
            }
        };
        if let Some(error) = self.connection.close_reason() {
            let observation = &self.observation;
            return Err(quic_failure::handshake_failure(
                &error,
                EvidenceLevel::Started,
                observation,
            ));
        }
        Ok((established(self.connection, self.info, self.origin, &self.observation), accepted))
    }
}

fn client_config(
    attempt: &CandidateAttempt,
    connector: &EndpointConnector,
    hello: HelloLength,
    early_data: bool,
    observation: &QuicObservation,
) -> Result<quinn::ClientConfig, AttemptFailure> {
    if let Some(config) = &attempt.quic_config {
        return Ok(config.clone());
    }
    let (alpn, ech) = (&attempt.candidate.alpn, attempt.ech.offer());
    let tls = connector.quic_tls(alpn, ech, early_data, hello);
    let tls = tls.map_err(|error| {
        failure(FailureCause::Unsupported, EvidenceLevel::Started, error.to_string())
    })?;
    let tls = ObservedClientConfig::new(tls, observation.clone());
    let mut config = quinn::ClientConfig::new(Arc::new(tls));
    config.token_store(connector.quic_tokens());
    let mut transport = transport();
    if let Some(rtt) = attempt.initial_rtt {
        transport.initial_rtt(rtt.max(MIN_INITIAL_RTT));
    }
    if attempt.without_keep_alive {
        transport.keep_alive_interval(None);
    }
    config.transport_config(Arc::new(transport));
    Ok(config)
}

fn transport() -> quinn::TransportConfig {
    let mut transport = quinn::TransportConfig::default();
    transport.max_idle_timeout(quinn::IdleTimeout::try_from(IDLE_TIMEOUT).ok());
    transport.keep_alive_interval(Some(KEEP_ALIVE_AFTER));
    transport.receive_window(quinn::VarInt::from_u64(RECEIVE_WINDOW).unwrap_or(quinn::VarInt::MAX));
    transport
}

/// Sends a frame that the peer has to acknowledge (RFC 9000 §13.2.1), on a connection whose
/// configuration is the endpoint's: quinn offers no PING, so this extends the peer's credit for the
/// whole connection, which is no limit, by one byte.
pub fn probe_quic(connection: &quinn::Connection) {
    static PROBES: AtomicU32 = AtomicU32::new(0);
    let probes = u64::from(PROBES.fetch_add(1, Ordering::Relaxed)) + 1;
    if let Ok(window) = quinn::VarInt::from_u64(RECEIVE_WINDOW + probes) {
        connection.set_receive_window(window);
    }
}

/// Writes the results of the handshake into `info`.
pub(crate) fn describe(info: &mut ConnectionInfo, connection: &quinn::Connection) {
    let data = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
    info.alpn =
        data.and_then(|data| data.protocol).map(|name| String::from_utf8_lossy(&name).into_owned());
    info.peer_certificates = connection
        .peer_identity()
        .and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok())
        .map(|chain| *chain)
        .unwrap_or_default();
}
