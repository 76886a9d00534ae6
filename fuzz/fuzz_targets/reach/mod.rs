//! The goals of a target, and whether it has reached them: `cargo xtask ci` fails if a goal is never
//! reached, because a target finds nothing in code that it does not reach.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// The goals of a target, by name.
pub struct Reach<const N: usize> {
    names: [&'static str; N],
    counts: [AtomicU64; N],
    announced: Once,
}

impl<const N: usize> Reach<N> {
    /// Creates the goals, none of them reached.
    pub const fn new(names: [&'static str; N]) -> Self {
        Self { names, counts: [const { AtomicU64::new(0) }; N], announced: Once::new() }
    }

    /// Prints the goals once.
    pub fn begin(&self) {
        self.announced.call_once(|| {
            for name in self.names {
                eprintln!("to reach: {name}");
            }
        });
    }

    /// Counts a goal as reached, and prints the count at each power of ten.
    pub fn hit(&self, name: &str) {
        let index = self.names.iter().position(|known| *known == name).expect("a listed goal");
        let count = self.counts[index].fetch_add(1, Ordering::Relaxed) + 1;
        if count.ilog10() != (count - 1).checked_ilog10().unwrap_or(u32::MAX) {
            eprintln!("reached: {name}: {count}");
        }
    }
}
