//! The messages of a channel in each direction, as its label states, and their reception.

use std::collections::BTreeSet;

/// Messages of one channel, both ways: `ordered:SIZE:COUNT` or `unordered:SIZE:COUNT`.
#[derive(Debug)]
pub struct Traffic {
    pub is_ordered: bool,
    size: usize,
    count: u32,
    sent: u32,
    /// The message after those, if it has been asked for: made once, however often a channel has no room.
    next: Option<Vec<u8>>,
    received: BTreeSet<u32>,
    bad: u32,
    disordered: u32,
}

/// The received messages of all channels.
#[derive(Debug, Default)]
pub struct Totals {
    pub messages: usize,
    pub bytes: usize,
    pub bad: u32,
    pub disordered: u32,
}

impl Traffic {
    pub fn of(label: &str) -> Option<Self> {
        let mut parts = label.split(':');
        let is_ordered = match parts.next()? {
            "ordered" => true,
            "unordered" => false,
            _ => return None,
        };
        let size = parts.next()?.parse().ok().filter(|size| *size >= 4)?;
        let count = parts.next()?.parse().ok()?;
        let received = BTreeSet::new();
        Some(Self { is_ordered, size, count, sent: 0, next: None, received, bad: 0, disordered: 0 })
    }

    /// Returns the next message to be sent.
    pub fn next(&mut self) -> Option<&[u8]> {
        if self.sent == self.count {
            return None;
        }
        Some(self.next.get_or_insert_with(|| message(self.sent, self.size)))
    }

    pub fn note_sent(&mut self) {
        self.sent += 1;
        self.next = None;
    }

    pub fn receive(&mut self, data: &[u8]) {
        let number = data.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        let Some(number) =
            number.filter(|number| *number < self.count && data == message(*number, self.size))
        else {
            self.bad += 1;
            return;
        };
        if self.is_ordered && self.received.last().is_some_and(|last| *last > number) {
            self.disordered += 1;
        }
        if !self.received.insert(number) {
            self.bad += 1;
        }
    }

    /// Returns whether all messages were sent and received.
    pub fn is_complete(&self) -> bool {
        self.sent == self.count && self.received.len() == self.count as usize
    }

    pub fn add_to(&self, totals: &mut Totals) {
        totals.messages += self.received.len();
        totals.bytes += self.received.len() * self.size;
        totals.bad += self.bad;
        totals.disordered += self.disordered;
    }
}

/// Returns a message, which begins with its number; byte `i` of the rest is the number plus `7 i` plus `i / 256`.
fn message(number: u32, size: usize) -> Vec<u8> {
    let mut data: Vec<u8> =
        (0..size as u32).map(|i| number.wrapping_add(7 * i).wrapping_add(i >> 8) as u8).collect();
    data[..4].copy_from_slice(&number.to_be_bytes());
    data
}
