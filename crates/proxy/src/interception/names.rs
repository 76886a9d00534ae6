//! The names represented by addresses.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::addresses;

/// The maximum number of names with addresses.
pub(super) const MAX_NAMES: usize = 16_384;
/// How long a name keeps its addresses after it was queried or connected to, even if there are too
/// many names: programs use DNS answers beyond their lifetime.
pub(super) const KEPT: Duration = Duration::from_mins(10);
/// How long an unused name is kept.
pub(super) const FORGOTTEN: Duration = Duration::from_hours(24);

/// Names and the addresses that represent them, in both families.
#[derive(Debug, Default)]
pub struct RepresentedNames {
    numbers: HashMap<String, u32>,
    names: HashMap<u32, (String, Duration)>,
    /// By when they were last used.
    by_use: BTreeSet<(Duration, u32)>,
    next: u32,
}

impl RepresentedNames {
    /// Returns the addresses that represent this name from now on; `None` if all belong to names
    /// that were used recently.
    pub fn addresses(&mut self, now: Duration, name: &str) -> Option<(Ipv4Addr, Ipv6Addr)> {
        if let Some(&number) = self.numbers.get(name) {
            self.touch(now, number);
            return Some(addresses::of_name(number));
        }
        self.make_room(now)?;
        while self.names.contains_key(&self.next) {
            self.next = (self.next + 1) % addresses::RANGE;
        }
        // A freed address is not reused before all others have been used.
        let number = self.next;
        self.next = (self.next + 1) % addresses::RANGE;
        self.numbers.insert(name.to_owned(), number);
        self.names.insert(number, (name.to_owned(), now));
        self.by_use.insert((now, number));
        Some(addresses::of_name(number))
    }

    /// Returns the name that this address represents, and marks it as used.
    pub fn name(&mut self, now: Duration, ip: IpAddr) -> Option<String> {
        let number = addresses::number(ip)?;
        self.touch(now, number);
        self.names.get(&number).map(|(name, _)| name.clone())
    }

    fn touch(&mut self, now: Duration, number: u32) {
        if let Some((_, used)) = self.names.get_mut(&number) {
            self.by_use.remove(&(*used, number));
            self.by_use.insert((now, number));
            *used = now;
        }
    }

    fn make_room(&mut self, now: Duration) -> Option<()> {
        while let Some(&(used, number)) = self.by_use.first() {
            let unused = now.saturating_sub(used);
            let is_full = self.names.len() >= MAX_NAMES;
            if unused < KEPT || (!is_full && unused < FORGOTTEN) {
                return (!is_full).then_some(());
            }
            self.by_use.pop_first();
            if let Some((name, _)) = self.names.remove(&number) {
                self.numbers.remove(&name);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Duration = Duration::from_secs(1_000_000);

    #[test]
    fn a_name_keeps_its_addresses_while_it_is_used() {
        let mut names = RepresentedNames::default();
        let (v4, v6) = names.addresses(START, "a.test").expect("room");
        assert_eq!(names.addresses(START, "a.test"), Some((v4, v6)));
        let later = START + FORGOTTEN - KEPT;
        assert_eq!(names.name(later, v6.into()).as_deref(), Some("a.test"));
        assert_ne!(names.addresses(later + FORGOTTEN - KEPT, "b.test"), Some((v4, v6)));
        assert_eq!(names.name(later + FORGOTTEN - KEPT, v4.into()).as_deref(), Some("a.test"));
        let end = later + FORGOTTEN * 2;
        assert!(names.addresses(end, "c.test").is_some());
        assert_eq!((names.name(end, v4.into()), names.names.len()), (None, 1));
    }

    //= hostile proxy
    //# a command with `--all-traffic` and endless names or connections
    //= bound: `MAX_NAMES`, `MAX_FLOWS`
    #[test]
    fn names_are_bounded_and_new_ones_wait() {
        let mut names = RepresentedNames::default();
        for number in 0..MAX_NAMES {
            assert!(names.addresses(START, &format!("{number}.test")).is_some());
        }
        assert_eq!(names.addresses(START + KEPT / 2, "more.test"), None);
        let used = names.addresses(START + KEPT / 2, "0.test").expect("it has addresses");
        assert!(names.addresses(START + KEPT, "more.test").is_some());
        assert_eq!(names.names.len(), MAX_NAMES);
        assert_eq!(names.name(START + KEPT, used.0.into()).as_deref(), Some("0.test"));
    }

    proptest! {
        #[test]
        fn an_address_represents_one_name(queries in prop::collection::vec((0_u64..200_000, 0_u8..40), 1..200)) {
            let (mut names, mut now) = (RepresentedNames::default(), START);
            for (after, name) in queries {
                now += Duration::from_secs(after);
                let name = format!("{name}.test");
                let (v4, v6) = names.addresses(now, &name).expect("there is room for forty");
                prop_assert_eq!(names.name(now, v4.into()), Some(name.clone()));
                prop_assert_eq!(names.name(now, v6.into()), Some(name));
                prop_assert!(names.numbers.len() == names.names.len() && names.by_use.len() == names.names.len());
            }
        }
    }
}
