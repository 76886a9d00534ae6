//! The counters of the process and of the transport.

use std::time::Duration;

use eyas::host::limits::{self, CpuTime};
use eyas::{TcpStatus, quinn};
use eyas_sctp_tokio::SctpAssociation;
use eyas_sctp_tokio::protocol::endpoint::PathStatus;

use super::channel::{ChannelSource, TestChannel};

/// What the transport of a test tells about itself.
pub(crate) enum TransportGauge {
    /// A connection for each stream.
    Tcp(Vec<TcpStatus>),
    Quic(quinn::Connection),
    Sctp(SctpAssociation),
}

impl TransportGauge {
    /// Returns the gauge of these data channels.
    pub(crate) fn new(source: &ChannelSource, channels: &[TestChannel]) -> Self {
        match source {
            ChannelSource::Connections => {
                Self::Tcp(channels.iter().filter_map(|channel| channel.tcp.clone()).collect())
            }
            ChannelSource::Quic(quic) => Self::Quic(quic.clone()),
            ChannelSource::Sctp(_, association) => Self::Sctp(association.clone()),
        }
    }

    /// Returns the packets that were sent again, and the smoothed round-trip time.
    pub(crate) fn read(&self) -> (Option<u64>, Option<Duration>) {
        match self {
            Self::Tcp(all) => {
                let all: Vec<_> = all.iter().map_while(TcpStatus::read).collect();
                let sum = all.iter().map(|reading| reading.retransmitted).sum();
                let rtt = all.iter().map(|reading| reading.rtt).max();
                (rtt.map(|_| sum), rtt)
            }
            Self::Quic(quic) => {
                let path = quic.stats().path;
                (Some(path.lost_packets), Some(path.rtt))
            }
            Self::Sctp(association) => {
                let Some(status) = association.status() else { return (None, None) };
                let primary = status.paths.iter().find(|path| path.id == status.primary);
                let lost = status.paths.iter().map(lost_packets).sum();
                (Some(lost), primary.and_then(|path| path.smoothed_rtt))
            }
        }
    }
}

/// SCTP counts bytes of data that were lost: here as packets that are full.
fn lost_packets(path: &PathStatus) -> u64 {
    path.lost.div_ceil((path.largest_message as u64).max(1))
}

/// Returns the CPU time of this process so far, in user and kernel mode.
pub(crate) fn cpu_time() -> Option<Duration> {
    let CpuTime { user, system } = limits::cpu_time()?;
    Some(user + system)
}
