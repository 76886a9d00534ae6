//! The DTLS sessions of a client from each of its addresses to each of the server's. SCTP at the
//! client may use few of them, but the server can send to an address only in a session that the
//! client has opened from there.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use eyas_sctp::endpoint::{AssociationState, Status};

use super::carrier::Wire;
use super::shared_endpoint::SharedEndpoint;

/// When missing sessions are tried again: after the longest pause that one has after a failure.
const RETRY: Duration = Duration::from_secs(16);

/// Opens sessions that are missing.
#[derive(Debug, Default)]
pub(super) struct PathSessions {
    due: Option<Instant>,
}

impl PathSessions {
    /// Returns `None` if these sockets do not open sessions for paths.
    pub(super) fn from_wires(wires: &[Wire]) -> Option<Self> {
        wires.iter().any(Wire::opens_sessions).then(Self::default)
    }

    /// Schedules a check, because addresses or paths have changed.
    pub(super) fn schedule(&mut self, now: Instant) {
        self.due = Some(now);
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Opens the sessions between these addresses of this host and those of the peers, if a check
    /// is due.
    pub(super) fn open(&mut self, now: Instant, shared: &SharedEndpoint, locals: &[IpAddr]) {
        if self.due.is_none_or(|time| time > now) {
            return;
        }
        let statuses = shared.statuses();
        let mut are_all_up = true;
        for status in statuses.iter().filter(|status| is_open(status)) {
            let Some(peer) = status.peer else { continue };
            for remote in status.paths.iter().map(|path| path.remote) {
                for local in locals.iter().filter(|local| can_reach(**local, remote)) {
                    let wire = shared.wires.iter().find(|wire| wire.sends_from(*local, remote));
                    are_all_up &= wire.is_none_or(|wire| wire.open_session(*local, remote, peer));
                }
            }
        }
        self.due = (!are_all_up).then(|| now + RETRY);
    }
}

fn is_open(status: &Status) -> bool {
    status.state == AssociationState::Established
}

/// Returns whether packets from `local` can arrive at `remote` at all.
fn can_reach(local: IpAddr, remote: SocketAddr) -> bool {
    let remote = remote.ip();
    local.is_ipv4() == remote.is_ipv4() && local.is_loopback() == remote.is_loopback()
}
