//! Which numbers have come (RFC 4303 §3.4.3); pure.

/// Numbers behind the highest one that are still told apart: as many packets of 64 bytes as 100
/// Mbit/s carry in a third of a second. What is further behind is taken for a repetition.
pub(super) const WIDTH: u64 = 1 << 16;
const BITS: u64 = u64::BITS as u64;

/// The numbers that have come.
#[derive(Debug)]
pub(super) struct Window {
    /// One more than the highest; 0 before the first.
    next: u64,
    /// One bit for each, at its remainder.
    come: Vec<u64>,
}

impl Default for Window {
    fn default() -> Self {
        Self { next: 0, come: vec![0; (WIDTH / BITS) as usize] }
    }
}

impl Window {
    /// Whether this number has not come, and is not too far behind to tell.
    pub(super) fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            return number < u64::MAX;
        }
        let is_within = self.next - number <= WIDTH;
        is_within && self.word(number) & bit(number) == 0
    }

    /// This number, which is new, has come.
    pub(super) fn note(&mut self, number: u64) {
        if number >= self.next {
            let passed = (number - self.next).min(WIDTH);
            (number - passed..number).for_each(|one| self.set(one, false));
            self.next = number.saturating_add(1);
        }
        self.set(number, true);
    }

    fn word(&self, number: u64) -> u64 {
        self.come.get(place(number)).copied().unwrap_or(0)
    }

    fn set(&mut self, number: u64, has_come: bool) {
        if let Some(word) = self.come.get_mut(place(number)) {
            *word = if has_come { *word | bit(number) } else { *word & !bit(number) };
        }
    }
}

fn place(number: u64) -> usize {
    (number % WIDTH / BITS) as usize
}

fn bit(number: u64) -> u64 {
    1 << (number % BITS)
}
