//! SCTP inside DTLS inside UDP (RFC 8261), as one byte stream on stream 0. A client with a
//! certificate has a session for each path, others have one.

use std::time::Instant;

use bytes::Bytes;
use eyas_race::candidate::Security;
use eyas_race::evidence::{
    AttemptFailure, CertificateFailure, CertificateFault, EvidenceLevel, FailureCause,
};
use eyas_sctp_tokio::{DtlsEndReason, DtlsTrust, SctpConnectError};

use super::sctp::{STREAM, establish};
use super::{AttemptReporter, CandidateAttempt, EstablishedTransport};
use crate::byte_stream::ByteTransport;
use crate::connector::{DtlsConnector, EndpointConnector};
use crate::failure::{CERTIFICATE_REJECTED, failure};
use crate::sctp::{association_failure, attempt_failure};
use crate::security::{explained, keeping};

pub(super) async fn run(
    attempt: &mut CandidateAttempt,
    connector: &EndpointConnector,
    reporter: &AttemptReporter,
) -> Result<EstablishedTransport, AttemptFailure> {
    let name = attempt.server_name.clone().map_err(|error| {
        failure(FailureCause::Certificate, EvidenceLevel::Started, error.to_string())
    })?;
    let DtlsConnector { verifier, identity, has_certificate } = connector
        .dtls()
        .map_err(|error| failure(FailureCause::Local, EvidenceLevel::Started, error.to_string()))?;
    let start = Instant::now();
    let peer = attempt.sctp_peer();
    // The session is carried on by a task of its own.
    let (verifier, rejected) = keeping(verifier);
    let trust = DtlsTrust { verifier, name };
    let opened = match has_certificate {
        false => connector.sctp().open_dtls(peer, &identity, trust).await,
        true => connector.sctp().open_dtls_paths(peer, identity, trust).await,
    };
    let pending = opened.map_err(|error| match error {
        // The peer verifies our certificate last, when the handshake is already complete here.
        SctpConnectError::Dtls(DtlsEndReason::Closed) if has_certificate => rejected_by_peer(),
        error => explained(association_failure(&error, peer.address), rejected.get().cloned()),
    })?;
    let mut info = attempt.info();
    info.timings.security = Some(attempt.origin.elapsed());
    info.security = Security::Dtls;
    info.protocol = Some(pending.version());
    info.peer_certificates.extend(pending.peer_certificate());
    let waiting = pending.association();
    let association = tokio::select! {
        established = establish(waiting, start, attempt, reporter, &mut info) => established?,
        () = pending.session_ended() => return Err(rejected_by_peer()),
    };
    let stream = association
        .stream(STREAM)
        .map_err(|error| attempt_failure(&error, EvidenceLevel::Transport))?;
    Ok(EstablishedTransport {
        transport: ByteTransport::Sctp(Box::new(stream)),
        info,
        read_ahead: Bytes::new(),
    })
}

fn rejected_by_peer() -> AttemptFailure {
    let detail = format!("the peer ended the DTLS session: {CERTIFICATE_REJECTED}");
    failure(FailureCause::Tls, EvidenceLevel::Answered, detail)
        .with_fault(CertificateFailure::OwnCertificate(CertificateFault::Other))
}
