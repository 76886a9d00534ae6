//! ECNE: the peer saw a congestion mark (RFC 9260 appendix A).

use core::time::Duration;

use super::Sender;
use crate::congestion::CongestionKind;
use crate::path::Paths;
use crate::serial::Tsn;

impl Sender {
    /// Takes in an ECNE about `lowest`, the first TSN that was marked: the window of the path that
    /// it went on is cut, once for each window of data. Gives the TSN for the CWR, which is always
    /// due; `None` if the chunk speaks of what was never sent.
    pub fn handle_congestion_echo(
        &mut self,
        now: Duration,
        lowest: Tsn,
        paths: &mut Paths,
    ) -> Option<Tsn> {
        let last = self.next_tsn().previous();
        if lowest.is_after(last) {
            return None;
        }
        if self.congestion_echoed.is_some_and(|until| lowest.is_at_or_before(until)) {
            return Some(lowest);
        }
        self.congestion_echoed = Some(last);
        let chunk = self.outstanding.get(lowest).map(|chunk| usize::from(chunk.flight));
        let flight = chunk.and_then(|flight| self.flights.get(flight));
        let id = flight.and_then(|flight| flight.path).unwrap_or(paths.primary());
        let siblings = paths.siblings();
        let in_recovery = self.flight(id).is_some_and(|flight| flight.recovery.is_some());
        if let Some(path) = paths.get_mut(id)
            && !in_recovery
        {
            path.on_congestion(now, CongestionKind::Ecn, siblings);
            path.on_recovered(now);
        }
        Some(lowest)
    }
}
