//! Verification of addresses listed by the peer (RFC 9260 §5.4): a few at a time, less often once
//! many have not answered, and only as often as the endpoint permits over all associations. A peer
//! can list any host's address.

use core::time::Duration;

use super::paths::VerificationPermit;
use super::{AssociationPaths, PathState};
use crate::config::AssociationConfig;
use crate::congestion::nanoseconds;

/// The number of unanswered verifications of an association up to which the usual rate applies.
const MAX_UNANSWERED: u8 = 16;

/// The interval after that, in nanoseconds.
const SLOW_INTERVAL: u64 = 30_000_000_000;

/// The delay after a permit was denied, in nanoseconds.
const DENIED_DELAY: u64 = 1_000_000_000;

impl AssociationPaths {
    /// Requires a permit for each verification from now on.
    pub fn require_permit(&mut self) {
        self.permit = VerificationPermit::Needed;
    }

    /// Returns whether an address is ready to be verified and waits for
    /// [`Self::permit_verification`].
    #[must_use]
    pub fn wants_permit(&self, now: Duration, config: &AssociationConfig) -> bool {
        let time = nanoseconds(now);
        self.permit == VerificationPermit::Needed
            && self.is_due(now)
            && (time >= self.verify_after || self.verifications < verification_burst(config))
            && self.paths.iter().any(|path| path.wants_verification(time))
    }

    /// Permits the verification of one address, or postpones it.
    pub fn permit_verification(&mut self, now: Duration, permitted: bool) {
        if permitted {
            self.permit = VerificationPermit::Given;
            return;
        }
        self.verifications = u16::MAX;
        self.verify_after = nanoseconds(now).saturating_add(DENIED_DELAY);
    }

    /// Returns the number of addresses verified since the last call.
    pub fn take_verified(&mut self) -> u8 {
        core::mem::take(&mut self.verified)
    }

    /// Returns whether another address may be verified now: `HB.Max.Burst` within a timeout, or
    /// [`crate::config::MultipathConfig::verification_burst`].
    pub(super) fn may_verify(&mut self, now: u64, config: &AssociationConfig) -> bool {
        if now >= self.verify_after {
            let rto = self.get(self.primary()).map_or(0, |path| nanoseconds(path.rto.current()));
            let pace = if self.unanswered_verifications < MAX_UNANSWERED {
                rto
            } else {
                rto.max(SLOW_INTERVAL)
            };
            self.verify_after = now.saturating_add(pace);
            self.verifications = 0;
        }
        let burst = if self.unanswered_verifications < MAX_UNANSWERED {
            verification_burst(config)
        } else {
            1
        };
        if self.verifications >= burst || self.permit == VerificationPermit::Needed {
            return false;
        }
        if self.permit == VerificationPermit::Given {
            self.permit = VerificationPermit::Needed;
        }
        self.verifications += 1;
        self.unanswered_verifications = self.unanswered_verifications.saturating_add(1);
        true
    }
}

/// How many addresses may be verified within a timeout.
pub(super) fn verification_burst(config: &AssociationConfig) -> u16 {
    let at_once = config.multipath.as_ref().map_or(1, |multipath| multipath.verification_burst);
    u16::try_from(config.hb_max_burst.max(at_once).max(1)).unwrap_or(u16::MAX)
}

/// Whether the path has an address to verify.
impl super::Path {
    fn wants_verification(&self, now: u64) -> bool {
        self.state() == PathState::Unconfirmed && self.heartbeats.is_wanted(now)
    }
}
