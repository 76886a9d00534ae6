//! Congestion control: one trait, [`CongestionControl`], and one file for each algorithm. The
//! built-in ones are listed in [`CongestionControlKind`](crate::config::CongestionControlKind);
//! callers can supply another one as a [`CongestionControlFactory`] in
//! [`AssociationConfig::congestion_control`](crate::config::AssociationConfig::congestion_control).
//!
//! | module | purpose | source |
//! | --- | --- | --- |
//! | `new_reno` | loss-based, the standard of SCTP | RFC 9260 §7.2 |
//! | `cmt_rp_v1` | coupled by slow-start thresholds | Dreibholz et al., AINA 2010 |
//! | `cmt_rp_v2` | coupled by bandwidth | Dreibholz et al., ICC 2012 |
//! | `lia` | coupled, as in Multipath TCP | RFC 6356 |
//! | `olia` | coupled, and moved to the best paths | Khalili et al., CoNEXT 2012 |
//! | `linked` | growth with every SACK, for LIA and OLIA | |
//! | `reno` | what these five have in common | RFC 9260 §7.2 |
//! | `loss_window` | what all loss-based controllers have in common | RFC 9260 §7.2 |
//! | `siblings` | what coupled controllers know about the other paths | |
//! | `cubic` | loss- and time-based, for long fast paths | RFC 9438 |
//! | `bbr` | model-based and paced: single losses do not matter | draft-ietf-ccwg-bbr |
//! | `slow_start` | when slow start should end | RFC 9406 |
//! | `delivery_rate` | samples of the delivery rate of a path | draft-ietf-ccwg-bbr §4.1 |
//!
//! A controller belongs to one path. It counts bytes of user data, and is notified of every packet
//! sent and of every SACK that acknowledged something on its path. [`SiblingPaths`] contains what
//! coupled controllers need to know about the other paths.

use crate::config::InitialWindow;

mod bbr;
mod cmt_rp_v1;
mod cmt_rp_v2;
mod control;
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

use bbr::Bbr;
use cmt_rp_v1::CmtRpV1;
use cmt_rp_v2::CmtRpV2;
pub use control::{
    AcknowledgedData, CongestionControl, CongestionControlFactory, CongestionEvent, CongestionKind,
    LostData, SentData,
};
use cubic::Cubic;
pub(crate) use delivery_rate::nanoseconds;
pub use delivery_rate::{DeliveryRate, SentState};
#[cfg(feature = "internals")]
pub use delivery_rate::{DeliveryRateEstimator, PacketNumber};
#[cfg(not(feature = "internals"))]
pub(crate) use delivery_rate::{DeliveryRateEstimator, PacketNumber};
use lia::Lia;
use loss_window::WindowRules;
use new_reno::NewReno;
use olia::Olia;
pub(crate) use siblings::SiblingPath;
pub use siblings::{PathStanding, SiblingPaths};

/// The built-in ones, public in [`crate::config`].
pub(crate) mod kind {
    use alloc::boxed::Box;

    use super::{
        Bbr, CmtRpV1, CmtRpV2, CongestionControl, CongestionControlFactory, Cubic, Lia, NewReno,
        Olia, WindowRules,
    };
    use crate::built_in::built_in;
    use crate::config::AssociationConfig;

    built_in! {
        /// The congestion control of each path.
        ///
        /// If several paths are used concurrently and may share a bottleneck, [`Self::Olia`] takes
        /// about the share of one flow there and still fills separate paths; the first three take
        /// one share per path. The plan `cmt-coupling` of `eyas-lab` compares them.
        pub enum CongestionControlKind: CongestionControlFactory {
            fn build(config: &AssociationConfig, mtu: usize) -> Box<dyn CongestionControl>;

            /// As in RFC 9260 §7.2.
            NewReno("new-reno", "As in RFC 9260, each path for itself")
                => Box::new(NewReno::new(mtu, WindowRules::from_config(config)));
            /// RFC 9438.
            #[default]
            Cubic("cubic", "RFC 9438, each path for itself")
                => Box::new(Cubic::new(mtu, WindowRules::from_config(config)));
            /// Based on bandwidth and round-trip time, paced (draft-ietf-ccwg-bbr).
            Bbr("bbr", "By bandwidth and round trip, paced, each path for itself")
                => Box::new(Bbr::new(mtu));
            /// CMT/RP, version 1: coupled by slow-start thresholds (Dreibholz et al., AINA 2010).
            CmtRpV1("cmt-rp-v1", "Coupled by slow-start thresholds (CMT/RP, version 1)")
                => Box::new(CmtRpV1::new(mtu, WindowRules::from_config(config)));
            /// CMT/RP, version 2: coupled by bandwidth (Dreibholz et al., ICC 2012).
            CmtRpV2("cmt-rp-v2", "Coupled by bandwidth (CMT/RP, version 2)")
                => Box::new(CmtRpV2::new(mtu, WindowRules::from_config(config)));
            /// Linked increases (RFC 6356).
            Lia("lia", "Coupled by linked increases (RFC 6356)")
                => Box::new(Lia::new(mtu, WindowRules::from_config(config)));
            /// Opportunistic linked increases (Khalili et al., CoNEXT 2012;
            /// draft-khalili-mptcp-congestion-control).
            Olia("olia", "Coupled by opportunistic linked increases")
                => Box::new(Olia::new(mtu, WindowRules::from_config(config)));
        }
    }
}

/// Returns the initial window (RFC 9260 §7.2.1) in bytes, for an MTU in bytes.
#[must_use]
fn initial_window(mtu: usize) -> usize {
    InitialWindow::Rfc9260.bytes(mtu)
}

#[cfg(test)]
mod tests;
