//! Signs of life of a connection: what its peer's host has sent, at whatever layer.

use std::time::Duration;

use eyas::{TcpProbe, TcpStatus};
use quinn::ConnectionStats;
use tokio::time::Instant;

use crate::reuse::Sign;

/// How much the kernel's clock may be off: its tick on machines with the coarsest.
const TICK: Duration = Duration::from_millis(10);

/// Tells whether the peer's host still answers. Asking sends nothing.
#[derive(Clone)]
pub(crate) enum Life {
    /// Acknowledgements and all other frames.
    Quic(quinn::Connection),
    /// The kernel's view of acknowledgements, which arrive whether or not the service answers.
    Tcp(TcpStatus),
    /// Whoever acknowledges is not the peer, as behind the tunnel of a proxy, or cannot be asked. Such a
    /// connection is never in doubt; its transport notices by itself.
    Unknown,
}

/// A moment from which signs of life count.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    at: Instant,
    frames: u64,
    is_probe: bool,
}

impl Life {
    /// Returns the mark of this moment, and the current estimate of the round-trip time if that
    /// costs nothing.
    pub(crate) fn mark(&self) -> (Mark, Option<Duration>) {
        let (frames, rtt) = match self {
            Self::Quic(quic) => {
                let stats = quic.stats();
                (frames(&stats), Some(stats.path.rtt))
            }
            Self::Tcp(_) | Self::Unknown => (0, None),
        };
        (Mark { at: Instant::now(), frames, is_probe: false }, rtt)
    }

    /// Returns whether the peer can be asked without a request.
    pub(crate) const fn can_check(&self) -> bool {
        !matches!(self, Self::Unknown)
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
            Self::Unknown => (mark, None),
        }
    }

    /// Returns whether there has been a sign of life since.
    pub(crate) fn sign_since(&self, mark: &Mark) -> Sign {
        const CLOSED: Sign = Sign::NotWithin(Duration::ZERO);
        match self {
            Self::Quic(quic) if quic.close_reason().is_some() => CLOSED,
            Self::Quic(quic) => match frames(&quic.stats()) > mark.frames {
                true => Sign::Seen,
                false => CLOSED,
            },
            Self::Tcp(status) => {
                let Some(reading) = status.read() else { return CLOSED };
                let (since, elapsed) = (reading.since_acknowledgement, mark.at.elapsed());
                let is_seen = match mark.is_probe {
                    // Whatever was acknowledged before was so long before.
                    true => since <= elapsed + TICK,
                    false => !reading.has_unacknowledged || since + TICK < elapsed,
                };
                if is_seen { Sign::Seen } else { Sign::NotWithin(reading.patience) }
            }
            Self::Unknown => Sign::Seen,
        }
    }
}

/// Returns the number of frames received, whose packets were authenticated.
fn frames(stats: &ConnectionStats) -> u64 {
    let frames = &stats.frame_rx;
    frames.acks
        + frames.stream
        + frames.datagram
        + frames.ping
        + frames.max_data
        + frames.max_stream_data
        + frames.max_streams_bidi
        + frames.max_streams_uni
        + frames.new_connection_id
        + frames.reset_stream
        + frames.stop_sending
}
