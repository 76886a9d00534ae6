//! Whether data that is held shares the memory of the packet it came in.
//!
//! Sharing saves a copy, but a piece of one byte that is held keeps the whole buffer of its packet,
//! which may be a train of packets of 64 KB. So data is copied where much memory would be kept for
//! little data: when lately little of what came in packets was kept, and, for fragments, which may
//! lie here as long as the peer likes, when many share already.

use bytes::Bytes;

/// The most fragments that share memory with packets at a time.
pub(crate) const MAX_BORROWED_FRAGMENTS: usize = 256;

/// Packets are shared while they are at most this many times as large as what is kept of them.
pub(crate) const MAX_WASTE: usize = 4;

/// Bytes of packets over which that is judged.
const JUDGED_BYTES: usize = 1 << 16;

#[derive(Debug, Default)]
pub(crate) struct Borrowing {
    fragments: usize,
    packets: usize,
    kept: usize,
}

impl Borrowing {
    /// A packet of `bytes` has been taken in.
    #[inline]
    pub(crate) fn on_packet(&mut self, bytes: usize) {
        self.packets += bytes;
        if self.packets > JUDGED_BYTES {
            self.packets /= 2;
            self.kept /= 2;
        }
    }

    fn is_thrifty(&self) -> bool {
        self.kept * MAX_WASTE >= self.packets
    }

    /// The data of a whole message, to be kept until the application takes it.
    #[inline]
    pub(crate) fn whole(&mut self, data: Bytes) -> Bytes {
        let data = if self.is_thrifty() { data } else { Bytes::copy_from_slice(&data) };
        self.kept += data.len();
        data
    }

    /// The data of a fragment, to be kept for as long as the peer likes, and whether it shares
    /// memory with its packet.
    pub(crate) fn fragment(&mut self, data: Bytes) -> (Bytes, bool) {
        self.kept += data.len();
        if self.fragments < MAX_BORROWED_FRAGMENTS && self.is_thrifty() {
            self.fragments += 1;
            (data, true)
        } else {
            (Bytes::copy_from_slice(&data), false)
        }
    }

    /// `count` fragments that shared memory with packets are no longer held.
    #[inline]
    pub(crate) fn give_back(&mut self, count: usize) {
        self.fragments = self.fragments.saturating_sub(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(kept: &Bytes, packet: &Bytes) -> bool {
        packet.as_ptr_range().contains(&kept.as_ptr())
    }

    #[test]
    fn packets_that_are_mostly_kept_are_shared() {
        let mut borrowing = Borrowing::default();
        let packet = Bytes::from(alloc::vec![7; 1452]);
        for _ in 0..1000 {
            assert!(shares(&borrowing.whole(packet.slice(28..)), &packet));
            borrowing.on_packet(packet.len());
        }
    }

    #[test]
    fn little_data_in_large_packets_is_copied() {
        let mut borrowing = Borrowing::default();
        let packet = Bytes::from(alloc::vec![7; 1452]);
        let mut shared = 0;
        for _ in 0..1000 {
            shared += usize::from(shares(&borrowing.whole(packet.slice(28..29)), &packet));
            borrowing.on_packet(packet.len());
        }
        assert_eq!(shared, 1, "the first one could not be judged");
    }

    #[test]
    fn few_fragments_share() {
        let mut borrowing = Borrowing::default();
        let packet = Bytes::from(alloc::vec![7; 1452]);
        let shared = (0..1000).filter(|_| borrowing.fragment(packet.slice(28..)).1).count();
        assert_eq!(shared, MAX_BORROWED_FRAGMENTS);
        borrowing.give_back(1);
        assert!(borrowing.fragment(packet.slice(28..)).1);
    }
}
