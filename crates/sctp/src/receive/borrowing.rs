//! Sharing of memory between stored data and the packet that it arrived in.
//!
//! Sharing saves a copy, but a stored piece of one byte keeps the whole buffer of its packet alive,
//! which may be a train of packets of 64 KB. So data is copied if much memory would be kept for
//! little data: when little of the recent packets was kept, and, for fragments, which the peer can
//! leave incomplete for as long as it likes, when many are shared already.

use bytes::Bytes;

/// The maximum number of fragments that share memory with packets at a time.
pub(crate) const MAX_BORROWED_FRAGMENTS: usize = 256;

/// The ratio of packet size to kept data up to which packets are shared.
pub(crate) const MAX_WASTE: usize = 4;

/// The amount of recent packets over which that is measured, in bytes.
const MEASURED_BYTES: usize = 1 << 16;

#[derive(Debug, Default)]
pub(crate) struct BorrowedPackets {
    fragments: usize,
    packets: usize,
    kept: usize,
}

impl BorrowedPackets {
    /// Records a received packet of `bytes`.
    #[inline]
    pub(crate) fn on_packet(&mut self, bytes: usize) {
        self.packets += bytes;
        if self.packets > MEASURED_BYTES {
            self.packets /= 2;
            self.kept /= 2;
        }
    }

    fn is_sharing_efficient(&self) -> bool {
        self.kept * MAX_WASTE >= self.packets
    }

    /// Returns the data of a complete message, to be kept until the application reads it.
    #[inline]
    pub(crate) fn whole(&mut self, data: Bytes) -> Bytes {
        let data = if self.is_sharing_efficient() { data } else { Bytes::copy_from_slice(&data) };
        self.kept += data.len();
        data
    }

    /// Returns the data of a fragment, to be kept for an indefinite time, and whether it shares
    /// memory with its packet.
    pub(crate) fn fragment(&mut self, data: Bytes) -> (Bytes, bool) {
        self.kept += data.len();
        if self.fragments < MAX_BORROWED_FRAGMENTS && self.is_sharing_efficient() {
            self.fragments += 1;
            (data, true)
        } else {
            (Bytes::copy_from_slice(&data), false)
        }
    }

    /// Releases `count` fragments that shared memory with packets.
    #[inline]
    pub(crate) fn release(&mut self, count: usize) {
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
        let mut borrowing = BorrowedPackets::default();
        let packet = Bytes::from(alloc::vec![7; 1452]);
        for _ in 0..1000 {
            assert!(shares(&borrowing.whole(packet.slice(28..)), &packet));
            borrowing.on_packet(packet.len());
        }
    }

    #[test]
    fn little_data_in_large_packets_is_copied() {
        let mut borrowing = BorrowedPackets::default();
        let packet = Bytes::from(alloc::vec![7; 1452]);
        let mut shared = 0;
        for _ in 0..1000 {
            shared += usize::from(shares(&borrowing.whole(packet.slice(28..29)), &packet));
            borrowing.on_packet(packet.len());
        }
        assert_eq!(shared, 1, "the first one could not be verified");
    }

    #[test]
    fn few_fragments_share() {
        let mut borrowing = BorrowedPackets::default();
        let packet = Bytes::from(alloc::vec![7; 1452]);
        let shared = (0..1000).filter(|_| borrowing.fragment(packet.slice(28..)).1).count();
        assert_eq!(shared, MAX_BORROWED_FRAGMENTS);
        borrowing.release(1);
        assert!(borrowing.fragment(packet.slice(28..)).1);
    }
}
