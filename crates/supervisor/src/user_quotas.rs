//! How many connections each user may have, so that nobody takes those of others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, geteuid, getrlimit};

/// The share of this process's descriptors that the connections of another user may take, and that those of all
/// other users together leave.
const SHARE: u64 = 4;

/// The user of a program that the kernel does not name.
pub(crate) const NOBODY: u32 = 65_534;

/// Counts the connections of the users who are neither root nor the one who runs this.
///
/// A user may also have no more than there are places left for all of them, so that those who take all that they
/// can leave some to the next: half of what the ones before have left (the dynamic thresholds of Choudhury and Hahne,
/// 1998).
#[derive(Debug)]
pub(crate) struct UserQuotas {
    /// The maximum of one user.
    limit: usize,
    /// The maximum of all of them together.
    total: usize,
    counts: Mutex<HashMap<u32, usize>>,
}

/// One connection of a user, until it is dropped.
#[derive(Debug)]
pub(crate) struct UserPlace {
    /// `None` for users who are not counted.
    counted: Option<(Arc<UserQuotas>, u32)>,
}

impl UserQuotas {
    /// Creates quotas that follow this process's limit of descriptors.
    pub(crate) fn from_this_process() -> Self {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let share = usize::try_from(descriptors / SHARE).unwrap_or(usize::MAX / 4);
        Self::new(share, 3 * share)
    }

    fn new(limit: usize, total: usize) -> Self {
        Self { limit, total, counts: Mutex::default() }
    }

    /// Counts a connection, unless the user has too many.
    pub(crate) fn acquire(self: &Arc<Self>, user: u32) -> Option<UserPlace> {
        if is_ours(user) {
            return Some(UserPlace { counted: None });
        }
        let mut counts = self.lock();
        let left = self.total - counts.values().sum::<usize>();
        let count = counts.get(&user).copied().unwrap_or(0);
        if count >= self.limit.min(left) {
            return None;
        }
        counts.insert(user, count + 1);
        Some(UserPlace { counted: Some((Arc::clone(self), user)) })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UserPlace {
    fn drop(&mut self) {
        let Some((quotas, user)) = &self.counted else { return };
        let mut counts = quotas.lock();
        if let Some(count) = counts.get_mut(user) {
            *count -= 1;
            if *count == 0 {
                counts.remove(user);
            }
        }
    }
}

/// Returns whether this is the user who runs this, or root.
pub(crate) fn is_ours(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    //= hostile sctp-run
    //# a user who takes all places
    //= bound: `SHARE`
    #[test]
    fn a_user_takes_no_places_of_others() {
        let quotas = Arc::new(UserQuotas::new(2, 6));
        let (first, second) = (geteuid().as_raw() + 1, geteuid().as_raw() + 2);
        let mut places: Vec<_> = (0..5).filter_map(|_| quotas.acquire(first)).collect();
        assert_eq!(places.len(), 2);
        assert!(quotas.acquire(second).is_some());
        assert!((0..5).all(|_| quotas.acquire(geteuid().as_raw()).is_some()));
        places.pop();
        assert!(quotas.acquire(first).is_some());
        drop(places);
        assert!(quotas.lock().is_empty());
    }

    //= hostile sctp-run
    //# many users who take all places together
    //= bound: `SHARE`, for root and the owner
    #[test]
    fn many_users_leave_places_to_the_next_and_to_the_owner() {
        let quotas = Arc::new(UserQuotas::new(64, 192));
        let owner = geteuid().as_raw();
        let mut places = Vec::new();
        let taken: Vec<usize> = (1..=7)
            .map(|user| {
                let before = places.len();
                places.extend((0..256).map_while(|_| quotas.acquire(owner + user)));
                places.len() - before
            })
            .collect();
        assert_eq!(taken, [64, 64, 32, 16, 8, 4, 2]);
        assert!((0..64).all(|_| quotas.acquire(owner).is_some()));
    }
}
