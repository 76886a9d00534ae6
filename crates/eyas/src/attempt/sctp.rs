//! SCTP (RFC 9260), directly over IP or inside UDP (RFC 6951), as one byte stream on stream 0.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use eyas_race::candidate::{Security, Transport};
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use eyas_sctp_tokio::protocol::identifier::StreamId;
use eyas_sctp_tokio::{PendingAssociation, SctpAssociation, SctpCarrier, SctpStream};
use tokio_rustls::TlsStream;

use super::{AttemptReporter, CandidateAttempt, EstablishedTransport, tls};
use crate::byte_stream::ByteTransport;
use crate::connection_info::ConnectionInfo;
use crate::connector::EndpointConnector;
use crate::failure::failure;
use crate::sctp::secured::{Role, Secured};
use crate::sctp::{association_failure, attempt_failure};

/// The pair of streams that carries the bytes of a connection.
pub(super) const STREAM: StreamId = StreamId(0);

pub(super) async fn run(
    attempt: &mut CandidateAttempt,
    connector: &EndpointConnector,
    reporter: &AttemptReporter,
) -> Result<EstablishedTransport, AttemptFailure> {
    let mut info = attempt.info();
    let association = open(attempt, connector, reporter, &mut info).await?;
    let stream = association
        .stream(STREAM)
        .map_err(|error| attempt_failure(&error, EvidenceLevel::Transport))?;
    secure(stream, attempt, connector, info).await
}

/// Opens the association. At the INIT ACK it waits until the race decides to proceed.
async fn open(
    attempt: &mut CandidateAttempt,
    connector: &EndpointConnector,
    reporter: &AttemptReporter,
    info: &mut ConnectionInfo,
) -> Result<SctpAssociation, AttemptFailure> {
    let start = Instant::now();
    let (peer, carrier) = (attempt.sctp_peer(), carrier(attempt.candidate.transport));
    let opened = connector.sctp().open(carrier, peer).await;
    let pending = opened.map_err(|error| association_failure(&error, peer.address))?;
    if !pending.is_established() {
        return establish(&pending, start, attempt, reporter, info).await;
    }
    // The kernel's SCTP, which does not report the INIT ACK.
    let association = pending
        .established()
        .await
        .map_err(|error| attempt_failure(&error, EvidenceLevel::Answered))?;
    info.rtt = Some(start.elapsed());
    info.timings.answered = Some(attempt.origin.elapsed());
    info.timings.transport = info.timings.answered;
    info.local = association.local_address();
    reporter.progress(EvidenceLevel::Transport, info.rtt).await;
    Ok(association)
}

/// Returns what carries the packets of this transport.
fn carrier(transport: Transport) -> SctpCarrier {
    match transport {
        Transport::SctpUdp => SctpCarrier::Udp,
        _ => SctpCarrier::Ip,
    }
}

/// Waits for the INIT ACK, for the race, and for the end of the handshake.
pub(super) async fn establish(
    pending: &PendingAssociation,
    start: Instant,
    attempt: &mut CandidateAttempt,
    reporter: &AttemptReporter,
    info: &mut ConnectionInfo,
) -> Result<SctpAssociation, AttemptFailure> {
    pending.answered().await.map_err(|error| attempt_failure(&error, EvidenceLevel::Started))?;
    let rtt = start.elapsed();
    info.rtt = Some(rtt);
    info.timings.answered = Some(attempt.origin.elapsed());
    reporter.progress(EvidenceLevel::Answered, Some(rtt)).await;
    if let Some(proceed) = attempt.proceed.take()
        && proceed.await.is_err()
    {
        // The race has ended, so the attempt is no longer needed.
        return Err(failure(FailureCause::Local, EvidenceLevel::Answered, "the race has ended"));
    }
    let association = pending
        .established()
        .await
        .map_err(|error| attempt_failure(&error, EvidenceLevel::Answered))?;
    info.timings.transport = Some(attempt.origin.elapsed());
    info.local = association.local_address();
    reporter.progress(EvidenceLevel::Transport, Some(rtt)).await;
    Ok(association)
}

async fn secure(
    stream: SctpStream,
    attempt: &CandidateAttempt,
    connector: &EndpointConnector,
    mut info: ConnectionInfo,
) -> Result<EstablishedTransport, AttemptFailure> {
    if attempt.candidate.security == Security::None {
        let transport = ByteTransport::Sctp(Box::new(stream));
        return Ok(EstablishedTransport { transport, info, read_ahead: Bytes::new() });
    }
    let reached = EvidenceLevel::Transport;
    let config = connector.stream_tls(&attempt.candidate.alpn, attempt.ech.offer());
    let config =
        config.map_err(|error| failure(FailureCause::Unsupported, reached, error.to_string()))?.tls;
    let name = attempt
        .server_name
        .clone()
        .map_err(|error| failure(FailureCause::Certificate, reached, error.to_string()))?;
    let tls = tls::connect(stream, Arc::clone(&config), attempt, reached).await?;
    let tls = TlsStream::from(tls);
    let role = Role::Client(config.into(), name);
    info.timings.security = Some(attempt.origin.elapsed());
    tls::describe(&mut info, tls.get_ref().1);
    let transport = ByteTransport::SctpTls(Box::new(Secured::new(tls, role)));
    Ok(EstablishedTransport { transport, info, read_ahead: Bytes::new() })
}
