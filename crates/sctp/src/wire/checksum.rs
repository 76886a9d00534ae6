//! CRC32c of a packet.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-6.8>,
//! <https://www.rfc-editor.org/rfc/rfc9260#appendix-A>
//!
//! The checksum covers the whole packet with zeros in the checksum field. Nothing is copied or
//! changed to verify one: the common header is processed separately, or for packets of one size in
//! a row only once.

#[cfg(any(test, not(feature = "std")))]
mod portable;

#[cfg(feature = "std")]
use crc_fast::{CrcAlgorithm, Digest};

use super::PACKET_HEADER;

/// Where the checksum is in a packet.
const AT: core::ops::Range<usize> = 8..12;

/// How packets are protected against corruption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChecksumKind {
    /// By CRC32c, always.
    #[default]
    Crc32c,
    /// By a lower layer: a checksum of zero is sent, and accepted as well as the correct one (RFC
    /// 9653 §5). Only if negotiated.
    Zero,
}

impl ChecksumKind {
    /// Returns whether the checksum of `packet` is acceptable.
    #[must_use]
    pub fn accepts(self, packet: &[u8]) -> bool {
        self.accepts_next(packet, &mut HeaderShare::default())
    }

    /// The same for a packet after others, given what is known from those.
    pub(super) fn accepts_next(self, packet: &[u8], share: &mut HeaderShare) -> bool {
        match packet.get(AT).and_then(|field| field.first_chunk::<4>()) {
            Some(&[0, 0, 0, 0]) if self == Self::Zero => true,
            Some(field) => *field == share.crc32c_of(packet).to_le_bytes(),
            None => false,
        }
    }

    /// Writes the checksum into `packet`; does nothing if it is shorter than a common header.
    pub fn patch(self, packet: &mut [u8]) {
        let Some(field) = packet.get_mut(AT) else { return };
        field.fill(0);
        if self == Self::Crc32c {
            let sum = whole(packet);
            packet[AT].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// What the common header contributes to the checksum of a packet. A CRC is linear: that is the
/// difference between the CRCs of the packet and of what follows its header, and depends on the header
/// and on how much follows, but not on what.
#[derive(Clone, Debug, Default)]
pub struct HeaderShare {
    header: [u8; 8],
    length: usize,
    /// Known from the second such packet on.
    share: Option<u32>,
}

impl HeaderShare {
    /// Returns the CRC32c of `packet` with its checksum field as zero, to be written in
    /// little-endian order.
    fn crc32c_of(&mut self, packet: &[u8]) -> u32 {
        let Some((head, chunks)) = packet.split_first_chunk::<PACKET_HEADER>() else { return 0 };
        let &[h0, h1, h2, h3, h4, h5, h6, h7, ..] = head;
        let header = [h0, h1, h2, h3, h4, h5, h6, h7];
        let is_repeated = self.header == header && self.length == packet.len();
        if let Some(share) = self.share.filter(|_| is_repeated) {
            return whole(chunks) ^ share;
        }
        let mut head = *head;
        head[AT].fill(0);
        let sum = append(whole(&head), chunks);
        let share = is_repeated.then(|| sum ^ whole(chunks));
        *self = Self { header, length: packet.len(), share };
        sum
    }
}

/// Extends `crc` by `bytes`, with the widest instructions that the processor has.
#[cfg(feature = "std")]
fn append(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, (!crc).into());
    digest.update(bytes);
    digest.finalize() as u32
}

/// CRC32c of `bytes`.
#[cfg(feature = "std")]
fn whole(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

#[cfg(not(feature = "std"))]
fn whole(bytes: &[u8]) -> u32 {
    append(0, bytes)
}

#[cfg(not(feature = "std"))]
fn append(crc: u32, bytes: &[u8]) -> u32 {
    portable::append(crc, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// A COOKIE ACK between ports 5001 and 5002; checksum by another implementation.
    const COOKIE_ACK: [u8; 16] =
        [0x13, 0x89, 0x13, 0x8a, 0x01, 0x02, 0x03, 0x04, 0, 0, 0, 0, 0x0b, 0x00, 0x00, 0x04];

    #[test]
    fn a_written_checksum_is_accepted() {
        let mut packet = COOKIE_ACK;
        ChecksumKind::Crc32c.patch(&mut packet);
        assert_ne!(packet[AT], [0; 4]);
        assert!(ChecksumKind::Crc32c.accepts(&packet));
        assert!(ChecksumKind::Zero.accepts(&packet), "a correct checksum is always accepted");
    }

    #[test]
    fn a_zero_checksum_is_valid_only_if_negotiated() {
        let mut packet = COOKIE_ACK;
        ChecksumKind::Zero.patch(&mut packet);
        assert!(ChecksumKind::Zero.accepts(&packet));
        assert!(!ChecksumKind::Crc32c.accepts(&packet));
    }

    #[test]
    fn short_packets_have_no_checksum() {
        assert!(!ChecksumKind::Crc32c.accepts(&[]));
        assert!(!ChecksumKind::Zero.accepts(&COOKIE_ACK[..11]));
        ChecksumKind::Crc32c.patch(&mut [1, 2, 3]);
    }

    #[test]
    fn the_check_value_of_the_algorithm() {
        assert_eq!(append(0, b"123456789"), 0xe306_9283);
    }

    proptest! {
        #[test]
        fn the_portable_implementation_agrees(head: Vec<u8>, tail: Vec<u8>) {
            let both = append(append(0, &head), &tail);
            prop_assert_eq!(portable::append(portable::append(0, &head), &tail), both);
            prop_assert_eq!(portable::append(0, &[head, tail].concat()), both);
        }

        #[test]
        fn what_is_known_from_earlier_packets_changes_no_sum(
            packets in proptest::collection::vec((0..2_u8, 12..16_usize, any::<[u8; 16]>()), 1..20),
        ) {
            let mut share = HeaderShare::default();
            for (port, length, mut packet) in packets {
                packet[..8].fill(port);
                let packet = &mut packet[..length];
                prop_assert_eq!(
                    ChecksumKind::Crc32c.accepts_next(packet, &mut share),
                    ChecksumKind::Crc32c.accepts(packet)
                );
                ChecksumKind::Crc32c.patch(packet);
                prop_assert!(ChecksumKind::Crc32c.accepts_next(packet, &mut share));
            }
        }

        //= rfc9260 §3.1, §6.8
        //# CRC32c, omitted only with RFC 9653; packets with a wrong one are discarded
        #[test]
        fn every_single_bit_counts(
            mut packet in proptest::collection::vec(any::<u8>(), 12..600),
            at: proptest::sample::Index,
            bit in 0_u32..8,
        ) {
            ChecksumKind::Crc32c.patch(&mut packet);
            prop_assert!(ChecksumKind::Crc32c.accepts(&packet));
            let at = at.index(packet.len());
            packet[at] ^= 1 << bit;
            prop_assert!(!ChecksumKind::Crc32c.accepts(&packet));
        }
    }
}
