//! What a target has to reach, and whether it has: `cargo xtask ci` fails where something is never
//! reached, for a target that stays outside of what it is about finds nothing there.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// Things to be reached, by name.
pub struct Reach<const N: usize> {
    names: [&'static str; N],
    counts: [AtomicU64; N],
    told: Once,
}

impl<const N: usize> Reach<N> {
    /// Nothing reached yet.
    pub const fn new(names: [&'static str; N]) -> Self {
        Self { names, counts: [const { AtomicU64::new(0) }; N], told: Once::new() }
    }

    /// Says once what there is to reach.
    pub fn begin(&self) {
        self.told.call_once(|| {
            for name in self.names {
                eprintln!("to reach: {name}");
            }
        });
    }

    /// Counts that this was reached, and says so each time that there were ten times as many.
    pub fn hit(&self, name: &str) {
        let index = self.names.iter().position(|known| *known == name).expect("a name of the list");
        let count = self.counts[index].fetch_add(1, Ordering::Relaxed) + 1;
        if count.ilog10() != (count - 1).checked_ilog10().unwrap_or(u32::MAX) {
            eprintln!("reached: {name}: {count}");
        }
    }
}
