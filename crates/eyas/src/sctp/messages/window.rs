//! The anti-replay window: which numbers have arrived (RFC 4303 §3.4.3); pure.

/// The number of values below the highest one that are tracked: as many packets of 64 bytes as 100
/// Mbit/s carry in a third of a second. Anything older counts as a replay.
pub(super) const WIDTH: u64 = 1 << 16;
const BITS: u64 = u64::BITS as u64;

/// The numbers that have arrived.
#[derive(Debug)]
pub(super) struct Window {
    /// One more than the highest; 0 before the first.
    next: u64,
    /// One bit for each number, at its value modulo [`WIDTH`].
    received: Vec<u64>,
}

impl Default for Window {
    fn default() -> Self {
        Self { next: 0, received: vec![0; (WIDTH / BITS) as usize] }
    }
}

impl Window {
    /// Returns whether this number has not arrived, and is not too old to tell.
    pub(super) fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            return number < u64::MAX;
        }
        let is_within = self.next - number <= WIDTH;
        is_within && self.word(number) & bit(number) == 0
    }

    /// Records the arrival of this number, which must be new.
    pub(super) fn record(&mut self, number: u64) {
        if number >= self.next {
            let passed = (number - self.next).min(WIDTH);
            (number - passed..number).for_each(|skipped| self.set(skipped, false));
            self.next = number.saturating_add(1);
        }
        self.set(number, true);
    }

    fn word(&self, number: u64) -> u64 {
        self.received.get(word_index(number)).copied().unwrap_or(0)
    }

    fn set(&mut self, number: u64, has_arrived: bool) {
        if let Some(word) = self.received.get_mut(word_index(number)) {
            *word = if has_arrived { *word | bit(number) } else { *word & !bit(number) };
        }
    }
}

fn word_index(number: u64) -> usize {
    (number % WIDTH / BITS) as usize
}

fn bit(number: u64) -> u64 {
    1 << (number % BITS)
}
