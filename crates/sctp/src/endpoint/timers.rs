//! The timers of all associations, in one queue.

use alloc::collections::BTreeSet;
use core::time::Duration;

/// The deadlines of all associations, by time and then by slot.
#[derive(Debug, Default)]
pub(crate) struct AssociationTimers {
    deadlines: BTreeSet<(Duration, u32)>,
}

impl AssociationTimers {
    /// Schedules a call of `slot` at `wanted` at the latest. `scheduled` stores the current
    /// schedule of the slot. A deadline that moves to a later time is left as it is: calling too
    /// early is harmless and rare, while timers restart with each packet.
    pub(crate) fn schedule(
        &mut self,
        slot: u32,
        scheduled: &mut Option<Duration>,
        wanted: Option<Duration>,
    ) {
        let Some(wanted) = wanted else { return };
        match *scheduled {
            Some(at) if at <= wanted => {}
            earlier => {
                if let Some(at) = earlier {
                    self.deadlines.remove(&(at, slot));
                }
                self.deadlines.insert((wanted, slot));
                *scheduled = Some(wanted);
            }
        }
    }

    pub(crate) fn cancel(&mut self, slot: u32, scheduled: &mut Option<Duration>) {
        if let Some(at) = scheduled.take() {
            self.deadlines.remove(&(at, slot));
        }
    }

    /// Returns a slot whose deadline has passed and removes the deadline; the caller clears its
    /// `scheduled`.
    pub(crate) fn expired(&mut self, now: Duration) -> Option<u32> {
        let &(at, slot) = self.deadlines.first()?;
        if at > now {
            return None;
        }
        self.deadlines.pop_first();
        Some(slot)
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.deadlines.first().map(|&(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::AssociationTimers;
    use core::time::Duration;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_earliest_comes_first_whatever_the_order_of_arrival() {
        let mut timers = AssociationTimers::default();
        let mut scheduled = [None; 3];
        timers.schedule(0, &mut scheduled[0], Some(ms(30)));
        timers.schedule(1, &mut scheduled[1], Some(ms(10)));
        timers.schedule(2, &mut scheduled[2], Some(ms(20)));
        assert_eq!(timers.next(), Some(ms(10)));
        assert_eq!(timers.expired(ms(9)), None);
        assert_eq!(timers.expired(ms(25)), Some(1));
        assert_eq!(timers.expired(ms(25)), Some(2));
        assert_eq!(timers.expired(ms(25)), None);
        assert_eq!(timers.next(), Some(ms(30)));
    }

    #[test]
    fn an_earlier_deadline_replaces_and_a_later_one_waits() {
        let mut timers = AssociationTimers::default();
        let mut scheduled = None;
        timers.schedule(4, &mut scheduled, Some(ms(20)));
        timers.schedule(4, &mut scheduled, Some(ms(50)));
        assert_eq!((timers.next(), scheduled), (Some(ms(20)), Some(ms(20))));
        timers.schedule(4, &mut scheduled, Some(ms(5)));
        assert_eq!((timers.next(), scheduled), (Some(ms(5)), Some(ms(5))));
        timers.cancel(4, &mut scheduled);
        assert_eq!((timers.next(), scheduled), (None, None));
    }
}
