//! How much may be under way on a path: one trait, [`CongestionControl`], and one file for each
//! answer to that. Those that are built in stand in one list,
//! [`CongestionControlKind`](crate::config::CongestionControlKind); a caller supplies another as a
//! [`CongestionControlFactory`] in
//! [`AssociationConfig::congestion_control`](crate::config::AssociationConfig::congestion_control).
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
    Acknowledged, CongestionControl, CongestionControlFactory, CongestionEvent, CongestionKind,
    Lost, Sent,
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
pub(crate) use siblings::Member;
pub use siblings::{Siblings, Standing};

/// Those that are built in, public in [`crate::config`].
pub(crate) mod kind {
    use alloc::boxed::Box;

    use super::{
        Bbr, CmtRpV1, CmtRpV2, CongestionControl, CongestionControlFactory, Cubic, Lia, NewReno,
        Olia, WindowRules,
    };
    use crate::built_in::built_in;
    use crate::config::AssociationConfig;

    built_in! {
        /// What decides how much may be under way on a path.
        ///
        /// Where several paths are used at once and may share a bottleneck, [`Self::Olia`] takes about one
        /// flow's share there and still fills paths of their own; the first three take a share for each
        /// path. The plan `cmt-coupling` of `eyas-lab` compares them.
        pub enum CongestionControlKind: CongestionControlFactory {
            fn build(config: &AssociationConfig, mtu: usize) -> Box<dyn CongestionControl>;

            /// As in RFC 9260 §7.2.
            NewReno("new-reno", "As in RFC 9260, each path for itself")
                => Box::new(NewReno::new(mtu, WindowRules::of(config)));
            /// RFC 9438.
            #[default]
            Cubic("cubic", "RFC 9438, each path for itself")
                => Box::new(Cubic::new(mtu, WindowRules::of(config)));
            /// By bandwidth and round trip, paced (draft-ietf-ccwg-bbr).
            Bbr("bbr", "By bandwidth and round trip, paced, each path for itself")
                => Box::new(Bbr::new(mtu));
            /// CMT/RP, version 1: coupled by slow-start thresholds (Dreibholz et al., AINA 2010).
            CmtRpV1("cmt-rp-v1", "Coupled by slow-start thresholds (CMT/RP, version 1)")
                => Box::new(CmtRpV1::new(mtu, WindowRules::of(config)));
            /// CMT/RP, version 2: coupled by bandwidth (Dreibholz et al., ICC 2012).
            CmtRpV2("cmt-rp-v2", "Coupled by bandwidth (CMT/RP, version 2)")
                => Box::new(CmtRpV2::new(mtu, WindowRules::of(config)));
            /// Linked increases (RFC 6356).
            Lia("lia", "Coupled by linked increases (RFC 6356)")
                => Box::new(Lia::new(mtu, WindowRules::of(config)));
            /// Opportunistic linked increases (Khalili et al., CoNEXT 2012;
            /// draft-khalili-mptcp-congestion-control).
            Olia("olia", "Coupled by opportunistic linked increases")
                => Box::new(Olia::new(mtu, WindowRules::of(config)));
        }
    }
}

/// The window to begin with (RFC 9260 §7.2.1), in bytes, for an MTU in bytes.
#[must_use]
fn initial_window(mtu: usize) -> usize {
    InitialWindow::Rfc9260.bytes(mtu)
}

#[cfg(test)]
mod tests;
