//! What a congestion controller is told and asked (RFC 9260 §7.2). Volumes are in bytes of user data, times count
//! from whatever moment the driver's do (see [`crate::io`]).

use alloc::boxed::Box;
use core::any::Any;
use core::fmt;
use core::time::Duration;

use super::{DeliveryRate, SentState, Siblings};
use crate::config::AssociationConfig;

/// Makes the controllers of an association, one for each path.
pub trait CongestionControlFactory: fmt::Debug + Send + Sync {
    /// A controller for a new path of which nothing is known but its MTU, in bytes of IP packet.
    /// `config` is the association's, of which [`AssociationConfig::initial_window`] and
    /// [`AssociationConfig::idle_window`] are wishes to a controller.
    fn build(&self, config: &AssociationConfig, mtu: usize) -> Box<dyn CongestionControl>;
}

/// Decides how much may be under way on one path, and how fast it is sent. Reads no clock: `now` is
/// in what it is told.
pub trait CongestionControl: Any + fmt::Debug + Send + Sync {
    /// The congestion window (`cwnd`), in bytes of user data. While less is under way, a whole packet
    /// may leave (RFC 9260 §6.1, rule B); at 0 nothing leaves but what timers ask for.
    fn window(&self) -> usize;

    /// The slow-start threshold (`ssthresh`), in bytes; `usize::MAX` while there is none, or if it is
    /// no concept of the controller.
    fn slow_start_threshold(&self) -> usize {
        usize::MAX
    }

    /// The rate at which packets are to leave, in bytes of user data a second; `None` sends by
    /// window and Max.Burst alone.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// A packet with user data was sent.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// A SACK acknowledged data that was sent on this path.
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged);

    /// A packet, or a part of one, was found to be lost. Told for each one, also within a recovery;
    /// those who react once per window use [`Self::on_congestion`].
    fn on_lost(&mut self, _lost: &Lost) {}

    /// The path is congested: once for each recovery (RFC 9260 §7.2.4), of which the end is told by
    /// [`Self::on_recovered`], or for each window of data with marks (ECNE), of which it is not.
    fn on_congestion(&mut self, event: &CongestionEvent);

    /// The recovery that began with [`Self::on_congestion`] has ended.
    fn on_recovered(&mut self, _now: Duration) {}

    /// T3 ran out (RFC 9260 §6.3.3, rule E1).
    fn on_timeout(&mut self, event: &CongestionEvent);

    /// The loss that led to the last [`Self::on_congestion`] or [`Self::on_timeout`] was none: all
    /// of it arrived.
    fn on_spurious(&mut self, _now: Duration) {}

    /// Nothing was sent for one more retransmission timeout (RFC 9260 §7.2.1).
    fn on_idle(&mut self, _now: Duration) {}

    /// The path's MTU changed, in bytes of IP packet.
    fn on_mtu(&mut self, _mtu: usize) {}

    /// Slow start is to end here at the latest, in bytes, if nothing is known of the path yet.
    fn begin_with_threshold(&mut self, _bytes: usize) {}

    /// Whether it asks what the other paths of the association do: only then [`Siblings`] say it.
    fn is_coupled(&self) -> bool {
        false
    }

    /// Bytes acknowledged between two losses, if that is counted, for the coupled controllers of the
    /// other paths ([`Siblings::collected`]).
    fn loss_interval(&self) -> u64 {
        0
    }
}

/// A packet with user data that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Duration,
    /// Its bytes of user data.
    pub bytes: usize,
    /// Bytes under way on the path, this packet included.
    pub outstanding: usize,
    /// Whether there was nothing more to send.
    pub app_limited: bool,
}

/// What one SACK acknowledged on a path.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// When it came.
    pub now: Duration,
    /// Bytes acknowledged for the first time, by the cumulative TSN or by gap blocks.
    pub bytes: usize,
    /// Whether the cumulative TSN advanced; on several paths, the path's own one.
    pub cumulative_advanced: bool,
    /// Whether the window was in full use before the SACK came.
    pub window_was_full: bool,
    /// A new measurement of the round trip, if this SACK gave one.
    pub rtt: Option<Duration>,
    /// The smoothed round trip, once there is one.
    pub smoothed_rtt: Option<Duration>,
    /// Bytes still under way on the path.
    pub outstanding: usize,
    /// How fast the path delivered, if this SACK tells.
    pub delivery: Option<DeliveryRate>,
    /// The association's paths together, for coupled controllers; the others are told nothing.
    pub siblings: Siblings,
}

/// Data that was found to be lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// When it was found.
    pub now: Duration,
    /// Its bytes.
    pub bytes: usize,
    /// What was known when its packet was sent, if that is still known.
    pub sent: Option<SentState>,
    /// All bytes that were ever found lost on the path, these included.
    pub total_lost: u64,
    /// All bytes that were ever delivered on the path.
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

/// The path is congested.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// When it was found.
    pub now: Duration,
    /// By what.
    pub kind: CongestionKind,
    /// Bytes under way on the path, without those that were lost.
    pub outstanding: usize,
    /// The association's paths together, for coupled controllers; the others are told nothing.
    pub siblings: Siblings,
}
