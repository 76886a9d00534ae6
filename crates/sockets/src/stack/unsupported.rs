//! Counts of options that programs use and that are not supported.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::abi::Errno;
use crate::status::UnknownOption;

/// The maximum number of options that are counted separately.
const MAX_UNKNOWN: usize = 256;

/// How often each unsupported option was used, by level and number.
#[derive(Debug, Default)]
pub(super) struct UnsupportedOptions {
    counts: BTreeMap<(i32, i32), u64>,
}

impl UnsupportedOptions {
    /// Counts an option if the call failed because it is not supported.
    pub(super) fn count<T>(&mut self, level: i32, name: i32, outcome: &Result<T, Errno>) {
        if !matches!(outcome, Err(Errno::ENOPROTOOPT)) {
            return;
        }
        // Programs choose the numbers.
        let has_room = self.counts.len() < MAX_UNKNOWN;
        if has_room || self.counts.contains_key(&(level, name)) {
            *self.counts.entry((level, name)).or_default() += 1;
        }
    }

    pub(super) fn status(&self) -> Vec<UnknownOption> {
        let counts = self.counts.iter();
        counts.map(|(&(level, name), &count)| UnknownOption { level, name, count }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_counted_options_is_bounded() {
        let mut options = UnsupportedOptions::default();
        for name in 0..1000 {
            options.count::<()>(1, name, &Err(Errno::ENOPROTOOPT));
        }
        options.count::<()>(1, 0, &Err(Errno::ENOPROTOOPT));
        options.count::<()>(1, 1, &Err(Errno::EINVAL));
        options.count(1, 2, &Ok(()));
        let status = options.status();
        assert_eq!(status.len(), MAX_UNKNOWN);
        assert_eq!((status[0].count, status[1].count, status[2].count), (2, 1, 1));
    }
}
