//! Chunk rescheduling (Dreibholz et al., GLOBECOM 2010): the chunk that blocks all others is
//! retransmitted on a path that has room and nothing else to send.

use core::time::Duration;

use super::super::AssociationSender;
use super::super::outstanding::ChunkState;
use super::super::retransmission::RetransmitReason;
use crate::identifier::PathId;
use crate::path::{AssociationPaths, Path};

impl AssociationSender {
    /// Moves the first unacknowledged chunk to one of the paths `with_room`, given by index, if
    /// only a full buffer holds back new data and the chunk would arrive sooner. Returns its new
    /// path. Each chunk moves once.
    pub(super) fn reschedule_first(
        &mut self,
        now: Duration,
        with_room: u64,
        paths: &mut AssociationPaths,
    ) -> Option<PathId> {
        let concurrent = self.multipath.as_ref()?;
        let rescheduling = concurrent.choices.rescheduling;
        let by_window =
            self.queue.unsent() > 0 && self.peer_window() < paths.iter().map(Path::mtu).max()?;
        let is_wanted = rescheduling.by_send_buffer() && self.queue.has_waiting_user()
            || rescheduling.by_peer_window() && by_window;
        let tsn = self.outstanding.first();
        if !is_wanted || concurrent.rescheduled.is_some_and(|last| tsn.is_at_or_before(last)) {
            return None;
        }
        let chunk = self.outstanding.get(tsn)?;
        let flight = self.outstanding.flights().get(usize::from(chunk.flight))?;
        let sent = flight.sent_at(chunk.packet)?;
        if chunk.state != ChunkState::InFlight {
            return None;
        }
        let from = flight.path.and_then(|id| paths.get(id))?;
        let due = sent.saturating_add(from.rto.smoothed()?);
        let places = paths.iter().enumerate().take(64).filter(|(at, _)| with_room >> at & 1 != 0);
        let others = places.map(|(_, path)| path).filter(|path| path.id != from.id);
        let fastest = others.min_by_key(|path| path.rto.smoothed().unwrap_or(Duration::MAX))?;
        let is_overdue = due < now;
        if !is_overdue && now.saturating_add(fastest.rto.smoothed()?) >= due {
            return None;
        }
        let to = fastest.id;
        if let Some(concurrent) = &mut self.multipath {
            concurrent.rescheduled = Some(tsn);
        }
        self.lose(tsn, to, RetransmitReason::NotLost, now, paths);
        Some(to)
    }
}
