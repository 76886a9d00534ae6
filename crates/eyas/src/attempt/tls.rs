//! TLS 1.3 and 1.2 over a byte stream (RFC 8446, RFC 5246).

use std::sync::Arc;

use eyas_race::candidate::Security;
use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use rustls::{ClientConfig, CommonState, ProtocolVersion};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::CandidateAttempt;
use crate::connection_info::ConnectionInfo;
use crate::failure::{failure, io_failure};
use crate::security::{explained, observed};

/// The note on a connection for which DNS returned an ECH configuration (RFC 9848).
pub(super) const ECH_NOT_USED: &str = "DNS offers Encrypted ClientHello, but the cryptography of \
     this build (ring) has no HPKE: the server name went out in clear";

pub(super) async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    config: Arc<ClientConfig>,
    attempt: &CandidateAttempt,
    reached: EvidenceLevel,
) -> Result<tokio_rustls::client::TlsStream<S>, AttemptFailure> {
    let name = attempt
        .server_name
        .clone()
        .map_err(|error| failure(FailureCause::Certificate, reached, error.to_string()))?;
    handshake(&TlsConnector::from(config), name, stream, reached).await
}

/// Establishes TLS over a stream with a server of this name.
pub(crate) async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
    connector: &TlsConnector,
    name: ServerName<'static>,
    stream: S,
    reached: EvidenceLevel,
) -> Result<tokio_rustls::client::TlsStream<S>, AttemptFailure> {
    let (result, rejection) = observed(connector.connect(name, stream)).await;
    result.map_err(|error| explained(io_failure(&error, reached), rejection))
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
    info.alpn = session.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
    info.peer_certificates = session.peer_certificates().unwrap_or_default().to_vec();
}
