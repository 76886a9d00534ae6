//! ECNE: the peer received a congestion mark (RFC 9260 appendix A).

use core::time::Duration;

use super::AssociationSender;
use super::outstanding::RecoveryPeriod;
use crate::identifier::PathId;
use crate::path::AssociationPaths;
use crate::serial::Tsn;

impl AssociationSender {
    /// Returns the path that an outstanding chunk was last sent on.
    #[must_use]
    pub fn path_of(&self, tsn: Tsn) -> Option<PathId> {
        self.outstanding.path_of(self.outstanding.get(tsn)?.flight)
    }

    /// Processes an ECNE for `tsn`, the lowest one of a packet that was marked: reduces the window
    /// of the path that carried it, once per window of data. Returns the TSN for the CWR, which is
    /// always sent; `None` if `tsn` was never sent.
    pub fn handle_ecne(
        &mut self,
        now: Duration,
        tsn: Tsn,
        arrived_on: PathId,
        paths: &mut AssociationPaths,
    ) -> Option<Tsn> {
        let (next, exit) = (self.outstanding.next(), self.outstanding.last());
        if tsn.is_after(exit) {
            return None;
        }
        if self.congestion_echoed.is_some_and(|until| tsn.is_at_or_before(until)) {
            return Some(tsn);
        }
        self.congestion_echoed = Some(exit);
        let id = self.path_of(tsn).unwrap_or(arrived_on);
        let Some(number) = self.outstanding.number_for(id) else { return Some(tsn) };
        let flight = self.outstanding.flight_mut(number);
        if flight.recovery.is_none()
            && let Some(packet) = paths.get(id).map(crate::path::Path::next_packet)
        {
            flight.recovery = Some(RecoveryPeriod { exit, packet, by_timeout: false, suspects: 0 });
            paths.on_ecne(now, id, tsn, next);
        }
        self.end_recoveries(now, self.cumulative_tsn_acked(), paths);
        Some(tsn)
    }
}
