//! Addresses that a peer listed are asked whether they are the peer's (RFC 9260 §5.4): a few at a
//! time, less often once many have not answered, and only as often as the endpoint permits over all
//! associations. What a peer lists may be anybody's address.

use core::time::Duration;

use super::paths::Permit;
use super::{PathState, Paths};
use crate::config::AssociationConfig;
use crate::congestion::nanoseconds;

/// Verifications of an association that may go unanswered at the usual rate.
const MAX_UNANSWERED: u8 = 16;

/// How much time passes between two of them from then on, in nanoseconds.
const SLOWLY: u64 = 30_000_000_000;

/// How long an association waits if there is no permit, in nanoseconds.
const PUT_OFF: u64 = 1_000_000_000;

impl Paths {
    /// From now on verifications have to be permitted, one by one.
    pub fn ask_before_verifying(&mut self) {
        self.permit = Permit::Needed;
    }

    /// Whether an address is to be verified now and [`Self::permit_verification`] waited for.
    #[must_use]
    pub fn wants_permit(&self, now: Duration, config: &AssociationConfig) -> bool {
        let time = nanoseconds(now);
        self.permit == Permit::Needed
            && self.is_due(now)
            && (time >= self.verify_after || self.verifications < burst(config))
            && self.paths.iter().any(|path| path.wants_verification(time))
    }

    /// Says whether one address may be verified now; if not, it is put off.
    pub fn permit_verification(&mut self, now: Duration, permitted: bool) {
        if permitted {
            self.permit = Permit::Given;
            return;
        }
        self.verifications = u16::MAX;
        self.verify_after = nanoseconds(now).saturating_add(PUT_OFF);
    }

    /// How many addresses were verified since this was last asked.
    pub fn take_verified(&mut self) -> u8 {
        core::mem::take(&mut self.verified)
    }

    /// Whether one more address may be verified now: `HB.Max.Burst` within a timeout.
    pub(super) fn may_verify(&mut self, now: u64, config: &AssociationConfig) -> bool {
        if now >= self.verify_after {
            let rto = self.get(self.primary()).map_or(0, |path| nanoseconds(path.rto.current()));
            let pace = if self.unanswered < MAX_UNANSWERED { rto } else { rto.max(SLOWLY) };
            self.verify_after = now.saturating_add(pace);
            self.verifications = 0;
        }
        let burst = if self.unanswered < MAX_UNANSWERED { burst(config) } else { 1 };
        if self.verifications >= burst || self.permit == Permit::Needed {
            return false;
        }
        if self.permit == Permit::Given {
            self.permit = Permit::Needed;
        }
        self.verifications += 1;
        self.unanswered = self.unanswered.saturating_add(1);
        true
    }
}

fn burst(config: &AssociationConfig) -> u16 {
    u16::try_from(config.hb_max_burst.max(1)).unwrap_or(u16::MAX)
}

/// Whether the path is one of those that are verified, for who only counts.
impl super::Path {
    fn wants_verification(&self, now: u64) -> bool {
        self.state() == PathState::Unconfirmed && self.beat.is_wanted(now)
    }
}
