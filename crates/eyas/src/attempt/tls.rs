//! TLS 1.3 and 1.2 over a byte stream (RFC 8446, RFC 5246).

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use eyas_race::candidate::Security;
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use rustls::{AlertDescription, ClientConfig, CommonState, ProtocolVersion};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::CandidateAttempt;
use super::client_hello::{HandshakeFailure, HelloFault};
use crate::connection_info::ConnectionInfo;
use crate::ech::EchAttempt;
use crate::failure::{failure, io_failure};
use crate::security::{CertificateRejection, explained, observed, recorded_call};

pub(super) async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    config: Arc<ClientConfig>,
    attempt: &CandidateAttempt,
    reached: EvidenceLevel,
) -> Result<tokio_rustls::client::TlsStream<S>, AttemptFailure> {
    let answered = AtomicBool::new(false);
    let connecting = connect_observed(stream, config, attempt, reached, &answered);
    connecting.await.map_err(|HandshakeFailure { failure, .. }| failure)
}

/// The same, and notes in `answered` once the server has answered the ClientHello.
pub(super) async fn connect_observed<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    config: Arc<ClientConfig>,
    attempt: &CandidateAttempt,
    reached: EvidenceLevel,
    answered: &AtomicBool,
) -> Result<tokio_rustls::client::TlsStream<S>, HandshakeFailure> {
    let name = attempt
        .server_name
        .clone()
        .map_err(|error| failure(FailureCause::Certificate, reached, error.to_string()))?;
    let mut connecting = pin!(observed(TlsConnector::from(config).connect(name, stream)));
    let (result, rejection) = poll_fn(|context| {
        // With the server's share in its first message the exchange is complete.
        let (polled, group) = recorded_call(|| connecting.as_mut().poll(context));
        answered.fetch_or(group.is_some(), Ordering::Relaxed);
        polled
    })
    .await;
    result.map_err(|error| HandshakeFailure {
        fault: length_fault(&error),
        failure: attempt.failed_handshake(&error, reached, rejection),
    })
}

/// Returns the failure of a handshake over a stream with a server of this name.
pub(crate) fn handshake_failure(
    error: &io::Error,
    reached: EvidenceLevel,
    ech: &EchAttempt,
    own: Option<&ServerName<'_>>,
    rejection: Option<CertificateRejection>,
) -> AttemptFailure {
    tls_error(error).into_iter().for_each(|error| ech.observe(error));
    let failure = explained_by_ech(io_failure(error, reached), own, rejection.as_ref());
    explained(failure, rejection)
}

/// Returns a failure whose cause is ECH, if a certificate was rejected that is for its public name: then something else
/// than the server of this name has answered (RFC 9849 §6.1.7).
pub(super) fn explained_by_ech(
    failure: AttemptFailure,
    own: Option<&ServerName<'_>>,
    rejection: Option<&CertificateRejection>,
) -> AttemptFailure {
    match rejection.zip(own) {
        Some((rejection, own)) if !rejection.is_of(own) => rejection.explain_broken_ech(failure),
        _ => failure,
    }
}

/// Returns whether a server that takes the first packet of a ClientHello for all of it may have caused this error: it
/// closes or resets the connection, or sends one of the alerts about messages that cannot be parsed.
fn length_fault(error: &io::Error) -> HelloFault {
    let is_explained = match tls_error(error) {
        Some(rustls::Error::AlertReceived(alert)) => is_of_parser(*alert),
        Some(_) => false,
        None => matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
        ),
    };
    if is_explained { HelloFault::MaybeLength } else { HelloFault::Other }
}

/// Returns whether an alert is about a message that cannot be parsed.
pub(super) const fn is_of_parser(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::DecodeError
            | AlertDescription::IllegalParameter
            | AlertDescription::UnexpectedMessage
            | AlertDescription::RecordOverflow
            | AlertDescription::InternalError
    )
}

/// Returns the error of rustls in one of a stream.
pub(super) fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

/// Writes the results of the handshake into `info`.
pub(crate) fn describe(info: &mut ConnectionInfo, session: &CommonState) {
    info.security = Security::Tls;
    info.protocol = session.protocol_version().map(|version| match version {
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        _ => "TLS",
    });
    info.cipher_suite = session
        .negotiated_cipher_suite()
        .and_then(|suite| suite.suite().as_str())
        .map(str::to_owned);
    info.key_exchange =
        session.negotiated_key_exchange_group().and_then(|group| group.name().as_str());
    info.alpn = session.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
    info.peer_certificates = session.peer_certificates().unwrap_or_default().to_vec();
}
