//! Concurrent multipath transfer (CMT-SCTP): the sender's algorithms beyond one path at a time.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `order` | the order of the paths | |
//! | `mapping` | the mapping of streams to paths | Dreibholz et al., PFLDNeT 2010 §4 |
//! | `automatic` | the same, by estimates | |
//! | `splitting` | each path's share of the buffers | Dreibholz et al., GLOBECOM 2010 |
//! | `pseudo_cumulative` | congestion window updates (CUC) | Iyengar et al. 2006 §3.2 |
//! | `missing_reports` | missing reports (SFR, DAC) | Iyengar et al. 2006 §3.1, §3.3 |
//! | `retransmission_path` | the path for lost chunks (RTX policies) | Iyengar et al. 2006 §4 |
//! | `rescheduling` | retransmission of a blocking chunk | Dreibholz et al., GLOBECOM 2010 |
//! | `burst` | burst limits | RFC 9260 §6.1 rule D |

use alloc::boxed::Box;
use core::time::Duration;

use super::AssociationSender;
use crate::config::{AssociationConfig, MultipathConfig, StreamMapping};
use crate::identifier::PathId;
use crate::path::{AssociationPaths, PathState};
use crate::serial::Tsn;

mod automatic;
mod burst;
mod mapping;
mod missing_reports;
mod order;
mod pseudo_cumulative;
mod rescheduling;
mod retransmission_path;
mod splitting;

use automatic::AutomaticMapping;
use burst::PacketBurst;
pub(super) use mapping::PathMapping;
pub(super) use missing_reports::{reports_for, splits_reports};
pub(super) use order::NextPath;
pub(super) use pseudo_cumulative::LowestTsns;
pub(super) use retransmission_path::{path_for_lost, path_instead_of, sooner_path};

/// The state that is specific to CMT.
#[derive(Debug)]
pub(super) struct ConcurrentTransfer {
    pub(super) choices: MultipathConfig,
    burst: PacketBurst,
    /// The path of the last packet.
    last: Option<PathId>,
    /// The number of packets that the current SACK covers (DAC).
    pub(super) dac_count: u8,
    automatic: AutomaticMapping,
    /// The last chunk that was rescheduled to another path because it blocked all others.
    rescheduled: Option<Tsn>,
    /// Whether there was nothing to send and no event has occurred since: half of all associations
    /// only receive.
    is_idle: bool,
    /// The path that was selected last, if it may carry new data.
    found: Option<PathId>,
}

impl ConcurrentTransfer {
    /// Creates the state, if several paths are used at once.
    pub(super) fn new(config: &AssociationConfig) -> Option<Box<Self>> {
        let mut choices = config.multipath.clone()?;
        if let StreamMapping::Table(table) = &mut choices.mapping {
            table.sort_by_key(|(stream, _)| *stream);
        }
        let burst = PacketBurst::new(choices.burst, config.max_burst);
        Some(Box::new(Self {
            choices,
            burst,
            last: None,
            dac_count: 0,
            automatic: AutomaticMapping::default(),
            rescheduled: None,
            is_idle: false,
            found: None,
        }))
    }
}

impl AssociationSender {
    /// Records an event after which more may be sent: a packet arrived, a message was queued, or a
    /// timer expired.
    #[inline]
    pub(super) fn note_event(&mut self) {
        if let Some(concurrent) = &mut self.multipath {
            concurrent.burst.on_event();
            concurrent.is_idle = false;
            concurrent.found = None;
        }
    }

    /// Records a packet with data that is sent on a path.
    #[inline]
    pub(super) fn record_packet_sent(&mut self, path: PathId, now: Duration) {
        if let Some(concurrent) = &mut self.multipath {
            concurrent.last = Some(path);
            concurrent.burst.on_sent(path, now);
        }
    }
}

/// Returns whether new data may be sent on a path: on any active one, or on the best of the others
/// if none is active.
fn is_used(path: PathId, paths: &AssociationPaths) -> bool {
    paths.get(path).is_some_and(|path| path.state() == PathState::Active)
        || paths.for_data(None) == Some(path)
}

#[cfg(test)]
mod tests;
