//! How much may be under way on a path: one trait, one file for each answer to that.
//!
//! | module | what | source |
//! | --- | --- | --- |
//! | `new_reno` | by loss, as SCTP's own standard has it | RFC 9260 §7.2 |
//! | `cmt_rp_v1` | coupled by slow-start thresholds | Dreibholz et al., AINA 2010 |
//! | `cmt_rp_v2` | coupled by bandwidth | Dreibholz et al., ICC 2012 |
//! | `lia` | coupled, as multipath TCP has it | RFC 6356 |
//! | `olia` | coupled, and moved to the best paths | Khalili et al., CoNEXT 2012 |
//! | `linked` | growth with every SACK, as LIA and OLIA have it | |
//! | `reno` | what these five have in common | RFC 9260 §7.2 |
//! | `loss_window` | what all controllers by loss have in common | RFC 9260 §7.2 |
//! | `siblings` | what coupled controllers know of the other paths | |
//! | `cubic` | by loss and time, for long fast paths | RFC 9438 |
//! | `bbr` | by a model of the path, paced: not deterred by single losses | draft-ietf-ccwg-bbr |
//! | `slow_start` | when slow start should end | RFC 9406 |
//! | `delivery_rate` | how fast the path delivers: samples for the controllers | draft-ietf-ccwg-bbr §4.1 |
//!
//! A controller belongs to one path. It counts bytes of user data and is told of every packet
//! sent and of every SACK that acknowledged something on its path. What coupled controllers have
//! to know of the other paths is in [`Siblings`].

use alloc::boxed::Box;
use core::time::Duration;

use crate::config::{AssociationConfig, CongestionControlKind, InitialWindow};

mod bbr;
mod cmt_rp_v1;
mod cmt_rp_v2;
mod cubic;
mod delivery_rate;
mod lia;
mod linked;
mod loss_window;
mod new_reno;
mod olia;
mod reno;
mod siblings;
mod slow_start;

pub use bbr::{Bbr, BbrState};
pub use cmt_rp_v1::CmtRpV1;
pub use cmt_rp_v2::CmtRpV2;
pub use cubic::Cubic;
pub(crate) use delivery_rate::nanoseconds;
pub use delivery_rate::{DeliveryRate, DeliveryRateEstimator, PacketNumber, SentState};
pub use lia::Lia;
pub use loss_window::{LossWindow, WindowRules};
pub use new_reno::NewReno;
pub use olia::Olia;
pub use reno::{Coupling, Reno};
pub use siblings::{Member, Siblings, Standing};

/// Decides how much may be under way on one path, and how fast it is sent.
pub trait CongestionControl {
    /// The congestion window (`cwnd`), in bytes of user data.
    fn window(&self) -> usize;

    /// The slow-start threshold (`ssthresh`), in bytes; `usize::MAX` while there is none.
    fn slow_start_threshold(&self) -> usize;

    /// The rate at which packets are to leave, in bytes of user data a second; `None` sends by
    /// window and Max.Burst alone.
    fn pacing_rate(&self) -> Option<u64>;

    /// A packet with user data was sent.
    fn on_sent(&mut self, sent: &Sent);

    /// A SACK acknowledged data that was sent on this path.
    fn on_acknowledged(&mut self, acknowledged: &Acknowledged);

    /// A packet, or a part of one, was found to be lost. Told for each one, also within a recovery;
    /// those who react once per window use [`Self::on_congestion`].
    fn on_lost(&mut self, lost: &Lost);

    /// The path is congested: once for each recovery (RFC 9260 §7.2.4), of which the end is told by
    /// [`Self::on_recovered`], or for each window of data with marks (ECNE), of which it is not.
    fn on_congestion(&mut self, event: &CongestionEvent);

    /// The recovery that began with [`Self::on_congestion`] has ended.
    fn on_recovered(&mut self, now: Duration);

    /// T3 ran out (RFC 9260 §6.3.3, rule E1).
    fn on_timeout(&mut self, event: &CongestionEvent);

    /// The loss that led to the last [`Self::on_congestion`] or [`Self::on_timeout`] was none: all
    /// of it arrived.
    fn on_spurious(&mut self, now: Duration);

    /// Nothing was sent for one more retransmission timeout (RFC 9260 §7.2.1).
    fn on_idle(&mut self, now: Duration);

    /// The path's MTU changed, in bytes of IP packet.
    fn on_mtu(&mut self, mtu: usize);
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

/// The controller of one path.
#[derive(Clone, Debug)]
pub enum Congestion {
    /// RFC 9260 §7.2.
    NewReno(NewReno),
    /// RFC 9438.
    Cubic(Box<Cubic>),
    /// draft-ietf-ccwg-bbr.
    Bbr(Box<Bbr>),
    /// Dreibholz et al., AINA 2010.
    CmtRpV1(Box<CmtRpV1>),
    /// Dreibholz et al., ICC 2012.
    CmtRpV2(Box<CmtRpV2>),
    /// RFC 6356.
    Lia(Box<Lia>),
    /// Khalili et al., CoNEXT 2012.
    Olia(Box<Olia>),
}

impl Congestion {
    /// A controller for a path of which nothing is known but its MTU, in bytes of IP packet.
    #[must_use]
    pub fn new(config: &AssociationConfig, mtu: usize) -> Self {
        let rules = WindowRules::of(config);
        match config.congestion_control {
            CongestionControlKind::NewReno => Self::NewReno(NewReno::new(mtu, rules)),
            CongestionControlKind::Cubic => Self::Cubic(Box::new(Cubic::new(mtu, rules))),
            CongestionControlKind::Bbr => Self::Bbr(Box::new(Bbr::new(mtu))),
            CongestionControlKind::CmtRpV1 => Self::CmtRpV1(Box::new(CmtRpV1::new(mtu, rules))),
            CongestionControlKind::CmtRpV2 => Self::CmtRpV2(Box::new(CmtRpV2::new(mtu, rules))),
            CongestionControlKind::Lia => Self::Lia(Box::new(Lia::new(mtu, rules))),
            CongestionControlKind::Olia => Self::Olia(Box::new(Olia::new(mtu, rules))),
        }
    }

    /// Slow start is to end here at the latest, in bytes, if nothing is known of the path yet.
    /// Controllers that do not go by losses pay no heed.
    pub fn begin_with_threshold(&mut self, bytes: usize) {
        match self {
            Self::NewReno(reno) => reno.base.begin_with_threshold(bytes),
            Self::Cubic(cubic) => cubic.base.begin_with_threshold(bytes),
            Self::Bbr(_) => {}
            Self::CmtRpV1(pooled) => pooled.base.begin_with_threshold(bytes),
            Self::CmtRpV2(pooled) => pooled.base.begin_with_threshold(bytes),
            Self::Lia(linked) => linked.base.begin_with_threshold(bytes),
            Self::Olia(linked) => linked.base.begin_with_threshold(bytes),
        }
    }

    /// Whether it asks what the other paths of the association do.
    #[must_use]
    pub fn is_coupled(&self) -> bool {
        matches!(self, Self::CmtRpV1(_) | Self::CmtRpV2(_) | Self::Lia(_) | Self::Olia(_))
    }

    /// Bytes acknowledged between two losses, if that is counted: only OLIA asks.
    #[must_use]
    pub fn loss_interval(&self) -> u64 {
        match self {
            Self::Olia(olia) => olia.loss_interval(),
            _ => 0,
        }
    }
}

/// Calls the same method on whichever controller it is.
macro_rules! of_any {
    ($self:ident, $controller:ident => $call:expr) => {
        match $self {
            Self::NewReno($controller) => $call,
            Self::Cubic($controller) => $call,
            Self::Bbr($controller) => $call,
            Self::CmtRpV1($controller) => $call,
            Self::CmtRpV2($controller) => $call,
            Self::Lia($controller) => $call,
            Self::Olia($controller) => $call,
        }
    };
}

impl CongestionControl for Congestion {
    fn window(&self) -> usize {
        of_any!(self, controller => controller.window())
    }

    fn slow_start_threshold(&self) -> usize {
        of_any!(self, controller => controller.slow_start_threshold())
    }

    fn pacing_rate(&self) -> Option<u64> {
        of_any!(self, controller => controller.pacing_rate())
    }

    fn on_sent(&mut self, sent: &Sent) {
        of_any!(self, controller => controller.on_sent(sent));
    }

    fn on_acknowledged(&mut self, acknowledged: &Acknowledged) {
        of_any!(self, controller => controller.on_acknowledged(acknowledged));
    }

    fn on_lost(&mut self, lost: &Lost) {
        of_any!(self, controller => controller.on_lost(lost));
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        of_any!(self, controller => controller.on_congestion(event));
    }

    fn on_recovered(&mut self, now: Duration) {
        of_any!(self, controller => controller.on_recovered(now));
    }

    fn on_timeout(&mut self, event: &CongestionEvent) {
        of_any!(self, controller => controller.on_timeout(event));
    }

    fn on_spurious(&mut self, now: Duration) {
        of_any!(self, controller => controller.on_spurious(now));
    }

    fn on_idle(&mut self, now: Duration) {
        of_any!(self, controller => controller.on_idle(now));
    }

    fn on_mtu(&mut self, mtu: usize) {
        of_any!(self, controller => controller.on_mtu(mtu));
    }
}

/// The window to begin with (RFC 9260 §7.2.1), in bytes, for an MTU in bytes.
#[must_use]
pub fn initial_window(mtu: usize) -> usize {
    InitialWindow::Rfc9260.bytes(mtu)
}

#[cfg(test)]
mod tests;
