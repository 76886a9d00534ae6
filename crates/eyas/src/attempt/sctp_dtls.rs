//! SCTP inside DTLS inside UDP (RFC 8261), as one byte stream on stream 0.

use std::time::Instant;

use bytes::Bytes;
use eyas_race::candidate::Security;
use eyas_race::evidence::{Cause, Failure, Level};

use super::sctp::{STREAM, establish};
use super::{Attempt, Established, Reporter};
use crate::byte_stream::ByteTransport;
use crate::connector::Connector;
use crate::failure::{failure, io_failure, tls_failure};
use crate::sctp::attempt_failure;
use crate::sctp::client::{DtlsAssociation, DtlsError, PeerHints};
use crate::sctp::dtls::{EndReason, Trust};

pub(super) async fn run(
    mut attempt: Attempt,
    connector: &Connector,
    reporter: &Reporter,
) -> Result<Established, Failure> {
    let name = attempt
        .server_name
        .clone()
        .map_err(|detail| failure(Cause::Certificate, Level::Started, detail))?;
    let (verifier, identity) = connector
        .dtls()
        .map_err(|error| failure(Cause::Local, Level::Started, error.to_string()))?;
    let start = Instant::now();
    let hints =
        PeerHints { encapsulation_port: attempt.encapsulation_port, rtt: attempt.initial_rtt };
    let opened = connector
        .sctp()
        .open_dtls(attempt.candidate.address, hints, &identity, Trust { verifier, name })
        .await;
    let DtlsAssociation { association, version } = opened.map_err(|error| dtls_failure(&error))?;
    let mut info = attempt.info();
    info.timings.security = Some(attempt.origin.elapsed());
    info.security = Security::Dtls;
    info.protocol = Some(version);
    establish(&association, start, &mut attempt, reporter, &mut info).await?;
    let stream =
        association.stream(STREAM).map_err(|error| attempt_failure(&error, Level::Transport))?;
    Ok(Established {
        transport: ByteTransport::Sctp(Box::new(stream)),
        info,
        read_ahead: Bytes::new(),
    })
}

fn dtls_failure(error: &DtlsError) -> Failure {
    match error {
        DtlsError::Socket(error) => io_failure(error, Level::Started),
        DtlsError::Session(EndReason::TimedOut) => {
            failure(Cause::Silent, Level::Started, "the DTLS handshake was not answered")
        }
        DtlsError::Session(EndReason::Refused) => {
            failure(Cause::Refused, Level::Started, "nothing is listening on the UDP port of SCTP")
        }
        DtlsError::Session(EndReason::Closed) => {
            failure(Cause::Reset, Level::Answered, "the peer ended the DTLS handshake")
        }
        DtlsError::Session(EndReason::Failed(error)) => tls_failure(error, Level::Answered),
    }
}
