//! The sums of the send queue, recomputed from the messages.

use alloc::vec;

use super::{AbandonLimit, SendQueue};

impl SendQueue {
    /// Checks every sum, given the bytes of the send buffer that are in chunks.
    pub(in crate::send) fn check_sums(&self, in_chunks: usize) {
        let mut unsent = vec![0; self.streams.len()];
        let (mut count, mut timed, mut prioritised) = (0, 0, 0);
        for (_, message) in self.messages.iter() {
            unsent[message.stream.index()] += message.unsent();
            count += 1;
            timed += usize::from(matches!(message.limit, AbandonLimit::Deadline(_)));
            prioritised += usize::from(matches!(message.limit, AbandonLimit::Priority(_)));
        }
        assert_eq!(count, self.messages.len(), "messages");
        assert_eq!(timed, self.lifetimes.count(), "messages with a lifetime");
        assert_eq!(prioritised, self.prioritised.get(), "messages with a priority");
        let mut stream_sum = 0;
        for (slot, stream) in self.streams.slots() {
            assert_eq!(unsent[slot.index()], stream.unsent(), "unsent bytes of {:?}", stream.id);
            stream_sum += stream.unacknowledged();
        }
        assert_eq!(stream_sum, in_chunks, "bytes in chunks, by stream");
        let unsent: usize = unsent.iter().sum();
        assert_eq!(unsent, self.buffer.unsent(), "unsent bytes");
        assert_eq!(unsent + in_chunks, self.buffer.queued(), "bytes in the send buffer");
    }
}
