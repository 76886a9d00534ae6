//! TLS over TCP with a ClientHello that may be [too long](super::client_hello) for a device on the path, or for the
//! server.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::client_hello::HandshakeFailure;
use super::handshakes::{self, Handshake};
use super::{AttemptReporter, CandidateAttempt, tls};
use crate::connector::{EndpointConnector, StreamTls};
use crate::tcp_status::TcpGuard;

/// Secures a connected stream; `reopen` connects another one to the same address.
pub(super) async fn secure<F: Future<Output = Result<TcpStream, AttemptFailure>>>(
    stream: TcpStream,
    attempt: &CandidateAttempt,
    reporter: &AttemptReporter,
    connector: &EndpointConnector,
    reached: EvidenceLevel,
    rtt: Option<Duration>,
    reopen: impl FnOnce() -> F,
) -> Result<TlsStream<TcpStream>, AttemptFailure> {
    let (alpn, ech) = (&attempt.candidate.alpn, attempt.ech.offer());
    let StreamTls { tls: long, short } = connector.stream_tls(alpn, ech).map_err(|error| {
        AttemptFailure::new(FailureCause::Unsupported, reached, error.to_string())
    })?;
    let short = match short {
        Some(short) if attempt.has_short_hello() => {
            return tls::connect(stream, short, attempt, reached).await;
        }
        Some(short) => short,
        None => {
            attempt.forget_short_hello();
            return tls::connect(stream, long, attempt, reached).await;
        }
    };
    let guard = TcpGuard::new(&stream);
    let has_arrived = || {
        let reading = guard.as_ref().and_then(|guard| guard.status().read());
        !reading.is_some_and(|reading| reading.has_unacknowledged)
    };
    let (long_answered, short_answered) = (AtomicBool::new(false), AtomicBool::new(false));
    let connect =
        async || tls::connect_observed(stream, long, attempt, reached, &long_answered).await;
    let again = async || {
        let stream = reopen().await.map_err(HandshakeFailure::from)?;
        tls::connect_observed(stream, short, attempt, reached, &short_answered).await
    };
    let long = Handshake { begin: connect, answered: &long_answered };
    let short = Handshake { begin: again, answered: &short_answered };
    handshakes::run(attempt, reporter, rtt, long, short, has_arrived).await
}
