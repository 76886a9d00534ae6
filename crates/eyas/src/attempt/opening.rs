//! The opening: bytes sent to every peer whose transport is up, so that the first one to respond
//! wins the race.
//!
//! It may be supplied while the race is running, because a proxy receives it from its client only
//! after it has told that client that it is connected. Each attempt connects as usual, reports
//! `Transport`, waits here for the opening, sends it, and is ready at `FirstByte`, once the peer
//! has replied. If there is nothing that may be sent to several peers (`Initiation::open_without`),
//! it is ready at once.
//!
//! The race knows nothing of openings: when the winner reached the first byte, an earlier loser
//! that was answered but sent nothing gets the time normally allowed for silence, and is then
//! remembered.

use std::time::Instant;

use bytes::Bytes;
use eyas_race::candidate::Security;
use eyas_race::evidence::{AttemptFailure, EvidenceLevel};
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;

use super::first_byte::read_some;
use super::{AttemptReporter, EstablishedTransport};
use crate::byte_stream::ReadWrite;
use crate::failure::io_failure;

/// The first bytes of the caller.
#[derive(Clone, Debug, Default)]
pub(crate) enum OpeningBytes {
    /// Not known yet.
    #[default]
    Pending,
    /// These bytes, which are safe to send to several peers.
    Send(Bytes),
    /// Nothing can be sent to several peers: the first established transport wins.
    None,
}

/// The opening of a race, as its attempts see it.
#[derive(Clone, Debug)]
pub(crate) struct RaceOpening {
    pub(crate) opening: watch::Receiver<OpeningBytes>,
    /// Whether the transport of any attempt is established.
    pub(crate) is_up: watch::Sender<bool>,
}

/// The result of an exchange.
#[derive(Default)]
struct OpeningExchange {
    /// When the opening was sent.
    opened: Option<Instant>,
    /// The first bytes of the peer.
    response: Option<Bytes>,
}

impl RaceOpening {
    /// Waits for the opening, sends it, and waits for the response, unless there is nothing to
    /// send. A peer that sends something before that needs no opening.
    pub(super) async fn exchange(
        mut self,
        established: &mut EstablishedTransport,
        origin: Instant,
        reporter: &AttemptReporter,
    ) -> Result<(), AttemptFailure> {
        let reached = match established.info.security {
            Security::None => EvidenceLevel::Transport,
            Security::Tls | Security::Dtls => EvidenceLevel::Security,
        };
        reporter.progress(reached, established.info.rtt).await;
        self.is_up.send_replace(true);
        let opening = &mut self.opening;
        let exchange = exchange(established.transport.bytes(), opening, reached).await?;
        let timings = &mut established.info.timings;
        timings.opened = exchange.opened.map(|at| at.saturating_duration_since(origin));
        if let Some(response) = exchange.response {
            timings.spoke = Some(origin.elapsed());
            established.read_ahead = response;
            reporter.progress(EvidenceLevel::FirstByte, established.info.rtt).await;
        }
        Ok(())
    }
}

async fn exchange(
    stream: &mut dyn ReadWrite,
    opening: &mut watch::Receiver<OpeningBytes>,
    reached: EvidenceLevel,
) -> Result<OpeningExchange, AttemptFailure> {
    let opening = tokio::select! {
        biased;
        opening = decided(opening) => opening,
        response = read_some(stream, reached) => {
            return Ok(OpeningExchange { opened: None, response: Some(response?) });
        }
    };
    let Some(opening) = opening else { return Ok(OpeningExchange::default()) };
    let failed = |error| io_failure(&error, reached);
    stream.write_all(&opening).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    let opened = Some(Instant::now());
    Ok(OpeningExchange { opened, response: Some(read_some(stream, reached).await?) })
}

/// Waits until the opening is decided. If the sender is dropped, there is none.
async fn decided(opening: &mut watch::Receiver<OpeningBytes>) -> Option<Bytes> {
    match opening.wait_for(|opening| !matches!(opening, OpeningBytes::Pending)).await.as_deref() {
        Ok(OpeningBytes::Send(bytes)) => Some(bytes.clone()),
        Ok(OpeningBytes::Pending | OpeningBytes::None) | Err(_) => None,
    }
}
