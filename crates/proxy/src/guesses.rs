//! Slows down whoever guesses passwords; pure.
//!
//! An address may be wrong [`BURST`] times at once, and then once a second. A user who has authenticated from an
//! address has an account of their own there: whoever guesses behind the same NAT does not lock them out.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

use eyas::sockets::subscriber;

/// The wrong passwords that are checked without a pause.
pub(crate) const BURST: u32 = 20;
/// The time that one wrong password costs.
const COST: Duration = Duration::from_secs(1);
/// The limit on entries of each table. Beyond it, those that owe least are forgotten.
const MAX_ENTRIES: usize = 4096;

/// The wrong passwords of all clients.
#[derive(Debug, Default)]
pub(crate) struct GuessBrake {
    by_client: HashMap<IpAddr, GuessDebt>,
    /// Users who have authenticated from an address.
    known: HashMap<(IpAddr, Vec<u8>), GuessDebt>,
}

/// When all wrong passwords are paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct GuessDebt(Duration);

impl GuessDebt {
    /// Returns for how long no further password is checked.
    fn wait(self, now: Duration) -> Option<Duration> {
        let owed = self.0.saturating_sub(now);
        let wait = (owed + COST).saturating_sub(COST * BURST);
        (wait > Duration::ZERO).then_some(wait)
    }

    fn add(&mut self, now: Duration) {
        self.0 = self.0.max(now) + COST;
    }
}

impl GuessBrake {
    /// Returns for how long no password of this client for this user is checked, neither a wrong one nor the right
    /// one: else the answer would tell which it is.
    pub(crate) fn wait(&self, now: Duration, client: IpAddr, user: &[u8]) -> Option<Duration> {
        let client = subscriber(client);
        let known = self.known.get(&(client, user.to_vec()));
        known.or_else(|| self.by_client.get(&client)).and_then(|debt| debt.wait(now))
    }

    /// Notes whether a password was right.
    pub(crate) fn note(&mut self, now: Duration, client: IpAddr, user: &[u8], is_right: bool) {
        let client = subscriber(client);
        let key = (client, user.to_vec());
        match (self.known.get_mut(&key), is_right) {
            (Some(_), true) => {}
            (Some(debt), false) => debt.add(now),
            (None, true) => {
                make_room(&mut self.known);
                self.known.insert(key, GuessDebt::default());
            }
            (None, false) => {
                if !self.by_client.contains_key(&client) {
                    make_room(&mut self.by_client);
                }
                self.by_client.entry(client).or_default().add(now);
            }
        }
    }
}

fn make_room<K: Clone + Eq + Hash>(debts: &mut HashMap<K, GuessDebt>) {
    if debts.len() < MAX_ENTRIES {
        return;
    }
    let least = debts.iter().min_by_key(|(_, debt)| **debt).map(|(key, _)| key.clone());
    least.map(|key| debts.remove(&key));
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn client(host: u16) -> IpAddr {
        let [high, low] = host.to_be_bytes();
        IpAddr::from([10, 9, high, low])
    }

    /// Returns how many of these guesses are checked, one each `pause`.
    fn checked(brake: &mut GuessBrake, from: IpAddr, guesses: u32, pause: Duration) -> u32 {
        let mut checked = 0;
        for number in 0..guesses {
            let (now, user) = (NOW + pause * number, number.to_be_bytes());
            if brake.wait(now, from, &user).is_none() {
                brake.note(now, from, &user, false);
                checked += 1;
            }
        }
        checked
    }

    #[test]
    fn guesses_are_slowed_down_whatever_the_user() {
        let mut brake = GuessBrake::default();
        let milliseconds = Duration::from_millis;
        assert_eq!(checked(&mut brake, client(1), 1000, milliseconds(10)), BURST + 9);
        assert_eq!(checked(&mut brake, client(2), 100, milliseconds(1100)), 100);
        assert_eq!(brake.wait(NOW, client(3), b"ada"), None);
    }

    #[test]
    fn whoever_has_authenticated_is_not_locked_out_by_others_behind_the_same_address() {
        let mut brake = GuessBrake::default();
        brake.note(NOW, client(1), b"ada", true);
        checked(&mut brake, client(1), 100, Duration::ZERO);
        assert_eq!(brake.wait(NOW, client(1), b"ada"), None);
        assert_eq!(brake.wait(NOW, client(1), b"bob"), Some(Duration::from_secs(1)));
        assert_eq!(brake.wait(NOW + Duration::from_secs(1), client(1), b"bob"), None);
        (0..BURST).for_each(|_| brake.note(NOW, client(1), b"ada", false));
        assert!(brake.wait(NOW, client(1), b"ada").is_some(), "ada's password is guessed, too");
    }

    #[test]
    fn the_tables_are_bounded_and_keep_those_who_owe_most() {
        let mut brake = GuessBrake::default();
        (0..BURST).for_each(|_| brake.note(NOW, client(0), b"a", false));
        for host in 1..6000 {
            brake.note(NOW, client(host), b"a", false);
            brake.note(NOW, client(host), b"b", true);
        }
        assert_eq!((brake.by_client.len(), brake.known.len()), (MAX_ENTRIES, MAX_ENTRIES));
        assert!(brake.wait(NOW, client(0), b"a").is_some());
    }
}
