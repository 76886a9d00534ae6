//! The peer as its paths show it: which address is its primary one, which are confirmed, and what a
//! round trip to it or its restart means for them.

use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use super::{AssociationPaths, Path, PathState};
use crate::config::AssociationConfig;
use crate::identifier::PathId;

impl AssociationPaths {
    /// Returns the peer's primary address.
    pub(crate) fn primary_address(&self) -> Option<IpAddr> {
        self.get(self.primary()).map(|path| path.remote.ip())
    }

    /// Returns whether chunks other than COOKIE ECHO may be sent on a path (RFC 9260 §5.4).
    pub(crate) fn is_confirmed(&self, id: PathId) -> bool {
        self.get(id).is_some_and(|path| path.state() != PathState::Unconfirmed)
    }

    /// Returns whether a refusal concerns a path that was never confirmed, while others were. If
    /// that path alone goes through a translator, as for IPv4 next to IPv6, the peer does not
    /// recognize the source address of our probe and treats it as out of the blue (RFC 9260 §8.4),
    /// although it has the association; and an address that the peer listed may belong to another
    /// host that does not support SCTP.
    pub(crate) fn is_unconfirmed_beside_others(
        &self,
        remote: SocketAddr,
        local: Option<IpAddr>,
    ) -> bool {
        let path = self.by_remote(remote, local).and_then(|path| self.get(path));
        let is_confirmed = |path: &Path| path.state() != PathState::Unconfirmed;
        path.is_some_and(|path| !is_confirmed(path)) && self.iter().any(is_confirmed)
    }

    /// Returns the retransmission timeout of a path.
    pub(crate) fn timeout_of(&self, id: PathId, config: &AssociationConfig) -> Duration {
        self.get(id).map_or(config.rto_initial, |path| path.rto.current())
    }

    /// Uses a round trip of the handshake as an RTT measurement, unless something in it may have
    /// been retransmitted.
    pub(crate) fn record_round_trip(
        &mut self,
        now: Duration,
        id: PathId,
        round_trip: Option<Duration>,
        config: &AssociationConfig,
    ) {
        if let Some(rtt) = round_trip.filter(|rtt| *rtt < config.rto_initial)
            && let Some(path) = self.get_mut(id)
        {
            path.on_round_trip(now, rtt);
        }
    }

    /// Forgets all measurements: they concern the peer before its restart.
    pub(crate) fn forget_measurements(&mut self, config: &AssociationConfig) {
        for path in self.iter_mut() {
            let confirmed = path.state() != PathState::Unconfirmed;
            *path = Path::new(path.id, path.remote, path.local, config);
            if confirmed {
                path.confirm();
            }
        }
    }
}
