//! The fragmentation of messages (RFC 9260 §6.9, RFC 8260 §2).
//!
//! A message that fits into one packet is not fragmented. A larger one fills the packet that it
//! starts in, and its tail shares the last one with what follows: then packets are of equal size,
//! as trains of packets (GSO) require.

/// The minimum length of a fragment other than the last: smaller ones are not worth a chunk, and
/// multiples keep chunks aligned.
const MIN_FRAGMENT: usize = 4;

/// The state of a message when its next chunk is created.
#[derive(Clone, Copy, Debug)]
pub(super) struct FragmentCut {
    /// Bytes of the message that are not yet in a chunk.
    pub(super) rest: usize,
    /// Whether none of it is in a chunk yet.
    pub(super) is_first: bool,
    /// Bytes of data that still fit into the packet.
    pub(super) room: usize,
    /// Bytes of data that fit into an otherwise empty packet of this path.
    pub(super) capacity: usize,
    /// Whether the packet is empty.
    pub(super) is_packet_empty: bool,
}

impl FragmentCut {
    /// Returns the length of the next chunk, at most `max_segment`; `None` if it is better to wait
    /// for another packet.
    #[inline]
    pub(super) fn length(self, max_segment: usize) -> Option<usize> {
        let max_payload = self.room.min(max_segment);
        if self.rest <= max_payload {
            return Some(self.rest);
        }
        let fits_elsewhere = self.is_first && self.rest <= self.capacity.min(max_segment);
        if fits_elsewhere && !self.is_packet_empty {
            return None;
        }
        let fragment = max_payload & !(MIN_FRAGMENT - 1);
        (fragment >= MIN_FRAGMENT).then_some(fragment)
    }
}

#[cfg(test)]
mod tests {
    use super::FragmentCut;

    const EMPTY: FragmentCut =
        FragmentCut { rest: 0, is_first: true, room: 1444, capacity: 1444, is_packet_empty: true };

    #[test]
    fn a_message_that_fits_is_not_fragmented() {
        assert_eq!(FragmentCut { rest: 1444, ..EMPTY }.length(usize::MAX), Some(1444));
        assert_eq!(FragmentCut { rest: 1, ..EMPTY }.length(usize::MAX), Some(1));
    }

    #[test]
    fn a_message_that_fits_into_the_next_packet_waits_for_it() {
        let filled = FragmentCut { room: 700, is_packet_empty: false, ..EMPTY };
        assert_eq!(FragmentCut { rest: 701, ..filled }.length(usize::MAX), None);
        assert_eq!(FragmentCut { rest: 1444, ..filled }.length(usize::MAX), None);
        assert_eq!(FragmentCut { rest: 1445, ..filled }.length(usize::MAX), Some(700));
        let tail = FragmentCut { rest: 1444, is_first: false, ..filled };
        assert_eq!(tail.length(usize::MAX), Some(700));
    }

    #[test]
    fn fragments_keep_chunks_aligned() {
        assert_eq!(FragmentCut { rest: 5000, room: 1443, ..EMPTY }.length(usize::MAX), Some(1440));
        assert_eq!(FragmentCut { rest: 5000, room: 3, ..EMPTY }.length(usize::MAX), None);
        assert_eq!(FragmentCut { rest: 3, room: 3, ..EMPTY }.length(usize::MAX), Some(3));
    }

    #[test]
    fn segments_can_be_smaller_than_packets() {
        assert_eq!(FragmentCut { rest: 1000, ..EMPTY }.length(402), Some(400));
        assert_eq!(FragmentCut { rest: 402, ..EMPTY }.length(402), Some(402));
    }

    #[test]
    fn an_empty_packet_smaller_than_usual_is_used() {
        assert_eq!(FragmentCut { rest: 1444, room: 500, ..EMPTY }.length(usize::MAX), Some(500));
    }
}
