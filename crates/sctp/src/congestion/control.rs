//! The interface of congestion controllers (RFC 9260 §7.2). Volumes are in bytes of user data,
//! times are relative to the driver's epoch (see [`crate::io`]).

use alloc::boxed::Box;
use core::any::Any;
use core::fmt;
use core::time::Duration;

use super::{DeliveryRate, SentState, SiblingPaths};
use crate::config::AssociationConfig;

/// Creates the controllers of an association, one for each path.
pub trait CongestionControlFactory: fmt::Debug + Send + Sync {
    /// Creates a controller for a new path with this MTU, in bytes of IP packet. `config` is the
    /// association's, of which [`AssociationConfig::initial_window`] and
    /// [`AssociationConfig::idle_window`] are hints to a controller.
    fn build(&self, config: &AssociationConfig, mtu: usize) -> Box<dyn CongestionControl>;
}

/// Decides how much may be in flight on one path, and how fast it is sent. Reads no clock: `now` is
/// passed in.
pub trait CongestionControl: Any + fmt::Debug + Send + Sync {
    /// Returns the congestion window (`cwnd`), in bytes of user data. While less is in flight, a
    /// whole packet may be sent (RFC 9260 §6.1, rule B); at 0, only timers send packets.
    fn window(&self) -> usize;

    /// Returns the slow-start threshold (`ssthresh`) in bytes; `usize::MAX` while there is none, or
    /// if the controller has no such concept.
    fn slow_start_threshold(&self) -> usize {
        usize::MAX
    }

    /// Returns the pacing rate in bytes of user data per second; `None` sends by window and
    /// Max.Burst alone.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// Called when a packet with user data was sent.
    fn on_sent(&mut self, _sent: &SentData) {}

    /// Called when a SACK acknowledged data that was sent on this path.
    fn on_acknowledged(&mut self, acknowledged: &AcknowledgedData);

    /// Called for each packet, or part of one, that was lost, also within a recovery; controllers
    /// that react once per window use [`Self::on_congestion`].
    fn on_lost(&mut self, _lost: &LostData) {}

    /// Called when the path is congested: once per recovery (RFC 9260 §7.2.4), whose end
    /// [`Self::on_recovered`] reports, or once per window of data with marks (ECNE), without such a
    /// report.
    fn on_congestion(&mut self, event: &CongestionEvent);

    /// Called when the recovery that started with [`Self::on_congestion`] has ended.
    fn on_recovered(&mut self, _now: Duration) {}

    /// Called when T3 expired (RFC 9260 §6.3.3, rule E1).
    fn on_timeout(&mut self, event: &CongestionEvent);

    /// Called when the loss that led to the last [`Self::on_congestion`] or [`Self::on_timeout`]
    /// was spurious: all of it arrived.
    fn on_spurious(&mut self, _now: Duration) {}

    /// Called when nothing was sent for another retransmission timeout (RFC 9260 §7.2.1).
    fn on_idle(&mut self, _now: Duration) {}

    /// Called when the path's MTU changed, in bytes of IP packet.
    fn on_mtu(&mut self, _mtu: usize) {}

    /// Sets the slow-start threshold in bytes, if nothing is known of the path yet.
    fn begin_with_threshold(&mut self, _bytes: usize) {}

    /// Returns whether it is coupled with the other paths of the association: only then
    /// [`SiblingPaths`] are filled in.
    fn is_coupled(&self) -> bool {
        false
    }

    /// Returns the bytes acknowledged between two losses, if counted, for the coupled controllers
    /// of the other paths ([`SiblingPaths::collected`]).
    fn loss_interval(&self) -> u64 {
        0
    }
}

/// A packet with user data that was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentData {
    /// The time.
    pub now: Duration,
    /// Its bytes of user data.
    pub bytes: usize,
    /// Bytes in flight on the path, including this packet.
    pub outstanding: usize,
    /// Whether there was nothing more to send.
    pub app_limited: bool,
}

/// What one SACK acknowledged on a path.
#[derive(Clone, Copy, Debug)]
pub struct AcknowledgedData {
    /// The time of its arrival.
    pub now: Duration,
    /// Newly acknowledged bytes, by the cumulative TSN ack or by gap ack blocks.
    pub bytes: usize,
    /// Whether the cumulative TSN ack advanced; with several paths, the path's pseudo-cumulative
    /// one.
    pub cumulative_advanced: bool,
    /// Whether the window was full before the SACK arrived.
    pub window_was_full: bool,
    /// A new RTT sample, if this SACK provided one.
    pub rtt: Option<Duration>,
    /// The smoothed RTT, once measured.
    pub smoothed_rtt: Option<Duration>,
    /// Bytes still in flight on the path.
    pub outstanding: usize,
    /// A delivery rate sample, if this SACK provided one.
    pub delivery: Option<DeliveryRate>,
    /// The association's paths together, for coupled controllers; empty for the others.
    pub siblings: SiblingPaths,
}

/// Data that was lost.
#[derive(Clone, Copy, Debug)]
pub struct LostData {
    /// The time of detection.
    pub now: Duration,
    /// Its bytes.
    pub bytes: usize,
    /// The state when its packet was sent, if still known.
    pub sent: Option<SentState>,
    /// The total bytes lost on the path, including these.
    pub total_lost: u64,
    /// The total bytes delivered on the path.
    pub total_delivered: u64,
}

/// Why a path counts as congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionKind {
    /// A packet was lost.
    Loss,
    /// The peer echoed a congestion mark (RFC 9260 appendix A).
    Ecn,
}

/// A congestion event of the path.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// The time of detection.
    pub now: Duration,
    /// The kind of event.
    pub kind: CongestionKind,
    /// Bytes in flight on the path, without those that were lost.
    pub outstanding: usize,
    /// The association's paths together, for coupled controllers; empty for the others.
    pub siblings: SiblingPaths,
}
