//! Streams that take turns, in lines that run through the streams themselves: to join one, to leave
//! it and to go to its end costs the same however many there are.

use alloc::vec::Vec;

use super::StreamSlot;

/// No stream: slots are fewer than numbers.
const NONE: u16 = u16::MAX;

/// Where a stream stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    before: u16,
    behind: u16,
    waits: bool,
}

impl Place {
    const NOWHERE: Self = Self { before: NONE, behind: NONE, waits: false };
}

/// By slot, the places of streams; each stands in one line at most, of however many there are.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<Place>);

impl Places {
    /// Whether the stream waits for a turn.
    pub(super) fn has(&self, stream: StreamSlot) -> bool {
        self.0.get(stream.index()).is_some_and(|place| place.waits)
    }

    fn at(&mut self, slot: u16) -> Option<&mut Place> {
        self.0.get_mut(usize::from(slot))
    }
}

/// Streams with something to send, the next one first, each once.
#[derive(Debug)]
pub(super) struct Line {
    first: u16,
    last: u16,
}

impl Default for Line {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

impl Line {
    /// Puts a stream at the end, unless it waits already.
    pub(super) fn join(&mut self, stream: StreamSlot, places: &mut Places) {
        if places.0.len() <= stream.index() {
            places.0.resize(stream.index() + 1, Place::NOWHERE);
        }
        let before = self.last;
        let Some(place) = places.at(stream.0).filter(|place| !place.waits) else { return };
        *place = Place { before, behind: NONE, waits: true };
        match places.at(before) {
            Some(last) => last.behind = stream.0,
            None => self.first = stream.0,
        }
        self.last = stream.0;
    }

    /// The first one that may.
    pub(super) fn first(
        &self,
        places: &Places,
        eligible: &mut dyn FnMut(StreamSlot) -> bool,
    ) -> Option<StreamSlot> {
        let mut slot = self.first;
        while let Some(place) = places.0.get(usize::from(slot)) {
            if eligible(StreamSlot(slot)) {
                return Some(StreamSlot(slot));
            }
            slot = place.behind;
        }
        None
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// The stream had its turn: it goes to the end.
    pub(super) fn rotate(&mut self, stream: StreamSlot, places: &mut Places) {
        if places.has(stream) {
            self.leave(stream, places);
            self.join(stream, places);
        }
    }

    /// The stream has nothing more to send.
    pub(super) fn leave(&mut self, stream: StreamSlot, places: &mut Places) {
        let Some(place) = places.at(stream.0).filter(|place| place.waits) else { return };
        let Place { before, behind, .. } = core::mem::replace(place, Place::NOWHERE);
        match places.at(before) {
            Some(other) => other.behind = behind,
            None => self.first = behind,
        }
        match places.at(behind) {
            Some(other) => other.before = before,
            None => self.last = before,
        }
    }
}

/// One line of streams.
#[derive(Debug, Default)]
pub(super) struct Turns {
    line: Line,
    places: Places,
}

impl Turns {
    /// Puts a stream at the end, unless it waits already.
    pub(super) fn join(&mut self, stream: StreamSlot) {
        self.line.join(stream, &mut self.places);
    }

    /// The first one that may.
    pub(super) fn first(&self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        self.line.first(&self.places, eligible)
    }

    /// Whether the stream waits for a turn.
    pub(super) fn has(&self, stream: StreamSlot) -> bool {
        self.places.has(stream)
    }

    /// The stream had its turn: it goes to the end.
    pub(super) fn rotate(&mut self, stream: StreamSlot) {
        self.line.rotate(stream, &mut self.places);
    }

    /// The stream has nothing more to send.
    pub(super) fn leave(&mut self, stream: StreamSlot) {
        self.line.leave(stream, &mut self.places);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{Line, Places};
    use crate::scheduler::StreamSlot;

    /// Streams of a line as they would come.
    fn order(line: &Line, places: &Places) -> Vec<u16> {
        let mut seen = Vec::new();
        line.first(places, &mut |stream| {
            seen.push(stream.0);
            false
        });
        seen
    }

    #[test]
    fn two_lines_through_the_same_places_do_what_two_lists_do() {
        let (mut places, mut lines) = (Places::default(), [Line::default(), Line::default()]);
        let mut lists = [Vec::new(), Vec::new()];
        let mut draw = 1_u32;
        for _ in 0..10_000 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (stream, which) = ((draw >> 8) as u16 % 20, (draw >> 16) as usize % 2);
            let slot = StreamSlot(stream);
            let at = lists[which].iter().position(|other| *other == stream);
            match (draw >> 24 & 3, at) {
                (0, Some(at)) => {
                    lines[which].rotate(slot, &mut places);
                    lists[which].remove(at);
                    lists[which].push(stream);
                }
                (1, Some(at)) => {
                    lines[which].leave(slot, &mut places);
                    lists[which].remove(at);
                }
                _ => {
                    lines[which].join(slot, &mut places);
                    if !lists.iter().flatten().any(|other| *other == stream) {
                        lists[which].push(stream);
                    }
                }
            }
            for (line, list) in lines.iter().zip(&lists) {
                assert_eq!(order(line, &places), *list);
                assert_eq!(line.is_empty(), list.is_empty());
            }
            assert_eq!(places.has(slot), lists.iter().flatten().any(|other| *other == stream));
        }
    }
}
