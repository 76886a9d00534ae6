//! SCTP inside DTLS inside UDP (RFC 8261), as one byte stream on stream 0. A client with a
//! certificate has a session for each path, others have one.

use std::time::Instant;

use bytes::Bytes;
use eyas_host::fault::{Call, HostFault};
use eyas_race::candidate::Security;
use eyas_race::evidence::{Cause, CertificateFault, Failure, Fault, Level};

use super::sctp::{STREAM, establish};
use super::{Attempt, Established, Reporter};
use crate::byte_stream::ByteTransport;
use crate::connector::{Connector, Dtls};
use crate::failure::{CERTIFICATE_REJECTED, failure, open_failure, tls_failure};
use crate::sctp::attempt_failure;
use crate::sctp::client::{DtlsAssociation, DtlsError, PeerHints};
use crate::sctp::dtls::{EndReason, Trust};
use crate::security::{explained, keeping};

pub(super) async fn run(
    mut attempt: Attempt,
    connector: &Connector,
    reporter: &Reporter,
) -> Result<Established, Failure> {
    let name = attempt
        .server_name
        .clone()
        .map_err(|detail| failure(Cause::Certificate, Level::Started, detail))?;
    let Dtls { verifier, identity, has_certificate } = connector
        .dtls()
        .map_err(|error| failure(Cause::Local, Level::Started, error.to_string()))?;
    let start = Instant::now();
    let hints =
        PeerHints { encapsulation_port: attempt.encapsulation_port, rtt: attempt.initial_rtt };
    let (clients, address) = (connector.sctp(), attempt.candidate.address);
    // The session is carried on by a task of its own.
    let (verifier, rejected) = keeping(verifier);
    let trust = Trust { verifier, name };
    let opened = match has_certificate {
        false => clients.open_dtls(address, hints, &identity, trust).await,
        true => clients.open_dtls_paths(address, hints, identity, trust).await,
    };
    let opened = opened.map_err(|error| match error {
        // The peer verifies our certificate last, when the handshake is already complete here.
        DtlsError::Session(EndReason::Closed) if has_certificate => rejected_by_peer(),
        error => explained(dtls_failure(&error), rejected.get().cloned()),
    })?;
    let DtlsAssociation { association, version, session } = opened;
    let mut info = attempt.info();
    info.timings.security = Some(attempt.origin.elapsed());
    info.security = Security::Dtls;
    info.protocol = Some(version);
    info.peer_certificates.extend(session.certificate());
    tokio::select! {
        established = establish(&association, start, &mut attempt, reporter, &mut info) => established?,
        () = session.ended() => return Err(rejected_by_peer()),
    }
    let stream =
        association.stream(STREAM).map_err(|error| attempt_failure(&error, Level::Transport))?;
    Ok(Established {
        transport: ByteTransport::Sctp(Box::new(stream)),
        info,
        read_ahead: Bytes::new(),
    })
}

fn rejected_by_peer() -> Failure {
    let detail = format!("the peer ended the DTLS session: {CERTIFICATE_REJECTED}");
    failure(Cause::Tls, Level::Answered, detail)
        .with_fault(Fault::OwnCertificate(CertificateFault::Other))
}

fn dtls_failure(error: &DtlsError) -> Failure {
    match error {
        DtlsError::Socket(error) => open_failure(error, Call::Bind),
        DtlsError::Session(EndReason::TimedOut) => {
            failure(Cause::Silent, Level::Started, "the DTLS handshake was not answered")
        }
        DtlsError::Session(EndReason::Refused) => {
            failure(Cause::Refused, Level::Started, "nothing is listening on the UDP port of SCTP")
        }
        DtlsError::Session(EndReason::NotSent) => {
            failure(Cause::Local, Level::Started, HostFault::Forbidden.to_string())
        }
        DtlsError::Session(EndReason::Closed) => {
            failure(Cause::Reset, Level::Answered, "the peer ended the DTLS handshake")
        }
        DtlsError::Session(EndReason::Failed(error)) => tls_failure(error, Level::Answered),
    }
}
