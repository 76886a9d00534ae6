//! Signs of life of a connection: what its peer's host has sent, at whatever layer.

use std::time::Duration;

use eyas::{Connection, TcpProbe, TcpStatus};
#[cfg(feature = "sctp")]
use eyas_sctp_tokio::SctpAssociation;
use tokio::time::Instant;

use crate::{http3::frames_received, reuse::Sign};

/// How much the kernel's clock may be off: its tick on machines with the coarsest.
const TICK: Duration = Duration::from_millis(10);

/// The time for which a receiver may delay its acknowledgement (RFC 9260 §6.2).
#[cfg(feature = "sctp")]
const SACK_DELAY: Duration = Duration::from_millis(200);

/// Tells whether the host at the other end still answers. Asking sends nothing.
#[derive(Clone)]
pub(crate) enum Life {
    /// Acknowledgements and all other frames.
    Quic(quinn::Connection),
    /// The kernel's view of acknowledgements, which arrive whether or not the service answers.
    Tcp(TcpStatus),
    /// Acknowledgements of data.
    #[cfg(feature = "sctp")]
    Sctp(SctpAssociation),
    /// It cannot be asked. Such a connection is never in doubt; its transport notices by itself.
    Unknown,
}

/// A moment from which signs of life count.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    at: Instant,
    /// How many frames of QUIC have been received, or how many bytes SCTP has delivered.
    count: u64,
    is_probe: bool,
}

impl Mark {
    /// Returns whether the peer was asked for a sign of life at that moment.
    pub(crate) const fn is_probe(&self) -> bool {
        self.is_probe
    }
}

impl Life {
    /// Returns what tells of the host at the other end of a connection that carries a byte stream.
    pub(crate) fn of_stream(connection: &mut Connection) -> Self {
        #[cfg(feature = "sctp")]
        if let Some(association) = connection.sctp() {
            return Self::Sctp(association.clone());
        }
        connection.tcp_status().map_or(Self::Unknown, Self::Tcp)
    }

    /// Returns the mark of this moment, and the current estimate of the round-trip time if that
    /// costs nothing.
    pub(crate) fn mark(&self) -> (Mark, Option<Duration>) {
        let (count, rtt) = match self {
            Self::Quic(quic) => {
                let stats = quic.stats();
                (frames_received(&stats), Some(stats.path.rtt))
            }
            #[cfg(feature = "sctp")]
            Self::Sctp(association) => delivered(association).unwrap_or_default(),
            Self::Tcp(_) | Self::Unknown => (0, None),
        };
        (Mark { at: Instant::now(), count, is_probe: false }, rtt)
    }

    /// Returns whether the peer can be asked without a request.
    pub(crate) const fn can_check(&self) -> bool {
        matches!(self, Self::Quic(_) | Self::Tcp(_))
    }

    /// Asks the peer for a sign of life: by a keep-alive probe over TCP, and over QUIC by a frame
    /// that has to be acknowledged. Keep the probe until its answer has been looked for.
    pub(crate) fn probe(&self) -> (Mark, Option<TcpProbe>) {
        let mark = Mark { is_probe: true, ..self.mark().0 };
        match self {
            Self::Quic(quic) => {
                eyas::probe_quic(quic);
                (mark, None)
            }
            Self::Tcp(status) => (mark, Some(status.probe())),
            #[cfg(feature = "sctp")]
            Self::Sctp(_) => (mark, None),
            Self::Unknown => (mark, None),
        }
    }

    /// Returns whether there has been a sign of life since.
    pub(crate) fn sign_since(&self, mark: &Mark) -> Sign {
        const CLOSED: Sign = Sign::NotWithin(Duration::ZERO);
        match self {
            Self::Quic(quic) if quic.close_reason().is_some() => CLOSED,
            Self::Quic(quic) => match frames_received(&quic.stats()) > mark.count {
                true => Sign::Seen,
                false => CLOSED,
            },
            Self::Tcp(status) => {
                let Some(reading) = status.read() else { return CLOSED };
                let (since, elapsed) = (reading.since_acknowledgement, mark.at.elapsed());
                let is_seen = match mark.is_probe {
                    // Instead of a probe, the kernel sends again what is unacknowledged, or asks for
                    // the window, at times of its own.
                    true if reading.has_unacknowledged && reading.unanswered == 0 => true,
                    true => since <= elapsed + TcpStatus::PROBE_AFTER + TICK,
                    false => !reading.has_unacknowledged || since + TICK < elapsed,
                };
                if is_seen { Sign::Seen } else { Sign::NotWithin(reading.patience) }
            }
            #[cfg(feature = "sctp")]
            Self::Sctp(association) => match delivered(association) {
                None => CLOSED,
                Some((count, _)) if count > mark.count => Sign::Seen,
                Some((_, rtt)) => Sign::NotWithin(rtt.unwrap_or_default() + SACK_DELAY),
            },
            Self::Unknown => Sign::Seen,
        }
    }
}

/// Returns how many bytes the peer has acknowledged, and the round-trip time of the slowest path.
#[cfg(feature = "sctp")]
fn delivered(association: &SctpAssociation) -> Option<(u64, Option<Duration>)> {
    let status = association.status()?;
    let rtt = status.paths.iter().filter_map(|path| path.smoothed_rtt).max();
    Some((status.paths.iter().map(|path| path.delivered).sum(), rtt))
}
