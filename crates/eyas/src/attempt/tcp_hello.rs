//! TLS over TCP with a ClientHello that may be too large for a device on the path, or for the server.
//!
//! With a share of X25519MLKEM768 a ClientHello takes two packets. Some devices drop the second one, and some servers
//! do not put the two together. What would have passed with one packet must not be lost for that: if the server ends
//! the connection instead of answering, or does not answer for a while, a second connection offers X25519 alone. The
//! first one that is secured is used.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eyas_race::evidence::{AttemptFailure, EvidenceLevel, FailureCause};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::CandidateAttempt;
use super::tls::{self, HandshakeFailure};
use crate::connector::{EndpointConnector, StreamTls};
use crate::tcp_status::TcpGuard;

/// How long the server's host may leave a ClientHello unacknowledged, at least, and in round trips: what was lost is sent
/// again after a few.
const MIN_PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_ROUND_TRIPS: u32 = 4;
/// How long a server may take to answer one that has arrived, or of which the system does not tell. It may be busy.
const SERVER_PATIENCE: Duration = Duration::from_secs(5);

/// The note on a connection that was not secured with the larger ClientHello.
const SHORTENED: &str = "a ClientHello of two packets, with X25519MLKEM768, did not get through to this server, and \
     one with X25519 alone did: a quantum computer could read what was recorded";

/// A secured stream.
pub(super) struct SecuredTcp {
    pub(super) stream: TlsStream<TcpStream>,
    /// What is worth knowing about it.
    pub(super) note: Option<&'static str>,
}

/// Secures a connected stream; `reopen` connects another one to the same address.
pub(super) async fn secure<F: Future<Output = Result<TcpStream, AttemptFailure>>>(
    stream: TcpStream,
    attempt: &CandidateAttempt,
    connector: &EndpointConnector,
    reached: EvidenceLevel,
    rtt: Option<Duration>,
    reopen: impl FnOnce() -> F,
) -> Result<SecuredTcp, AttemptFailure> {
    let (alpn, ech) = (&attempt.candidate.alpn, attempt.ech.offer());
    let StreamTls { tls: long, short } = connector.stream_tls(alpn, ech).map_err(|error| {
        AttemptFailure::new(FailureCause::Unsupported, reached, error.to_string())
    })?;
    let peer = attempt.candidate.address.ip();
    let peers = connector.short_hello_peers();
    if let Some(short) = &short
        && peers.contains(peer, Instant::now())
    {
        let stream = tls::connect(stream, Arc::clone(short), attempt, reached).await?;
        return Ok(SecuredTcp { stream, note: Some(SHORTENED) });
    }
    let patience = rtt.map_or(MIN_PATIENCE, |rtt| MIN_PATIENCE.max(rtt * PATIENCE_ROUND_TRIPS));
    let again =
        short.map(|config| async { tls::connect(reopen().await?, config, attempt, reached).await });
    let (stream, is_short) =
        with_second_hello(stream, long, attempt, reached, patience, again).await?;
    if is_short {
        peers.insert(peer, Instant::now());
    }
    Ok(SecuredTcp { stream, note: is_short.then_some(SHORTENED) })
}

/// Returns the stream that was secured first, and whether that is one for a short ClientHello whose peer did not
/// answer the long one.
async fn with_second_hello(
    stream: TcpStream,
    long: Arc<ClientConfig>,
    attempt: &CandidateAttempt,
    reached: EvidenceLevel,
    patience: Duration,
    again: Option<impl Future<Output = Result<TlsStream<TcpStream>, AttemptFailure>>>,
) -> Result<(TlsStream<TcpStream>, bool), AttemptFailure> {
    let guard = TcpGuard::new(&stream);
    let answered = AtomicBool::new(false);
    let is_answered = || answered.load(Ordering::Relaxed);
    let mut first = pin!(tls::connect_observed(stream, long, attempt, reached, &answered));
    let Some(again) = again else {
        return Ok((first.await.map_err(HandshakeFailure::into_failure)?, false));
    };
    let ended = tokio::select! {
        result = &mut first => Some(result),
        () = out_of_patience(guard, patience) => None,
    };
    let mut second = pin!(again);
    let ended = match ended {
        Some(result) => result,
        None if is_answered() => first.await,
        None => tokio::select! {
            result = &mut first => result,
            result = &mut second => return match result {
                Ok(stream) => Ok((stream, !is_answered())),
                Err(_) => Ok((first.await.map_err(HandshakeFailure::into_failure)?, false)),
            },
        },
    };
    match ended {
        Ok(stream) => Ok((stream, false)),
        Err(failed) if failed.may_be_due_to_size && !is_answered() => {
            // What the first one met says more, should both fail.
            Ok((second.await.map_err(|_| failed.into_failure())?, true))
        }
        Err(failed) => Err(failed.into_failure()),
    }
}

/// Waits until a server has had time to answer. The stream that the guard is for must not be closed before.
async fn out_of_patience(guard: Option<TcpGuard>, patience: Duration) {
    tokio::time::sleep(patience).await;
    let reading = guard.and_then(|guard| guard.status().read());
    if !reading.is_some_and(|reading| reading.has_unacknowledged) {
        tokio::time::sleep(SERVER_PATIENCE.saturating_sub(patience)).await;
    }
}
