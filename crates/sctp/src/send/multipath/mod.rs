//! All paths at once (CMT-SCTP): what the sending half does beyond one path at a time.
//!
//! | file | job | source |
//! | --- | --- | --- |
//! | `order` | which path sends next | |
//! | `mapping` | which streams may send on a path | Dreibholz et al., PFLDNeT 2010 §4 |
//! | `automatic` | the same, by estimates | |
//! | `splitting` | how much of the buffers a path may take | Dreibholz et al., GLOBECOM 2010 |
//! | `pseudo_cumulative` | when the window of a path may grow (CUC) | Iyengar et al. 2006 §3.2 |
//! | `missing_reports` | what a SACK counts for a chunk (SFR, DAC) | Iyengar et al. 2006 §3.1, §3.3 |
//! | `retransmission_path` | where lost chunks go (RTX policies) | Iyengar et al. 2006 §4 |
//! | `rescheduling` | a chunk that holds up all others | Dreibholz et al., GLOBECOM 2010 |
//! | `burst` | how much may leave at once | RFC 9260 §6.1 rule D |

use alloc::boxed::Box;
use core::time::Duration;

use super::Sender;
use crate::config::{AssociationConfig, Multipath, StreamMapping};
use crate::identifier::PathId;
use crate::path::{PathState, Paths};
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

use automatic::Automatic;
use burst::Burst;
pub(super) use mapping::Mapping;
pub(super) use missing_reports::{reports_for, splits_reports};
pub(super) use pseudo_cumulative::Lowest;
pub(super) use retransmission_path::{path_for_lost, path_instead_of};

/// What there is only with CMT.
#[derive(Debug)]
pub(super) struct Concurrent {
    pub(super) choices: Multipath,
    burst: Burst,
    /// The path that sent last.
    last: Option<PathId>,
    /// For how many packets the SACK that is being taken in is (DAC).
    pub(super) dac_count: u8,
    automatic: Automatic,
    /// The last chunk that was sent on another path because it held up all others.
    rescheduled: Option<Tsn>,
    /// Whether nothing happened since there was nothing to send: half of all associations only
    /// receive.
    is_idle: bool,
    /// The path that was found last, if it is new data that may go there.
    found: Option<PathId>,
}

impl Concurrent {
    /// If several paths are to be used at once.
    pub(super) fn new(config: &AssociationConfig) -> Option<Box<Self>> {
        let mut choices = config.multipath.clone()?;
        if let StreamMapping::Table(table) = &mut choices.mapping {
            table.sort_by_key(|(stream, _)| *stream);
        }
        let burst = Burst::new(choices.burst, config.max_burst);
        Some(Box::new(Self {
            choices,
            burst,
            last: None,
            dac_count: 0,
            automatic: Automatic::default(),
            rescheduled: None,
            is_idle: false,
            found: None,
        }))
    }
}

impl Sender {
    /// Something happened after which more may be sent: a packet came in, a message was handed in,
    /// or a timer ran out.
    #[inline]
    pub(super) fn note_event(&mut self) {
        if let Some(concurrent) = &mut self.multipath {
            concurrent.burst.on_event();
            concurrent.is_idle = false;
            concurrent.found = None;
        }
    }

    /// A packet with data leaves on a path.
    #[inline]
    pub(super) fn note_turn_of(&mut self, path: PathId, now: Duration) {
        if let Some(concurrent) = &mut self.multipath {
            concurrent.last = Some(path);
            concurrent.burst.on_sent(path, now);
        }
    }
}

/// Whether new data may go on a path: all that are active are used, or the best of the others
/// if there is none.
fn is_used(path: PathId, paths: &Paths) -> bool {
    paths.get(path).is_some_and(|path| path.state() == PathState::Active)
        || paths.for_data(None) == Some(path)
}

#[cfg(test)]
mod tests;
