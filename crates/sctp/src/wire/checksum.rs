//! CRC32c of a packet.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-6.8>,
//! <https://www.rfc-editor.org/rfc/rfc9260#appendix-A>
//!
//! The checksum covers the whole packet with zeros in the checksum field. Nothing is copied or
//! changed to verify one: the common header is processed separately.

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
        match packet.get(AT).and_then(|field| field.first_chunk::<4>()) {
            Some(&[0, 0, 0, 0]) if self == Self::Zero => true,
            Some(field) => *field == crc32c_of(packet).to_le_bytes(),
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

/// Returns the CRC32c of `packet` with its checksum field as zero, to be written in little-endian
/// order.
fn crc32c_of(packet: &[u8]) -> u32 {
    let Some((head, chunks)) = packet.split_first_chunk::<PACKET_HEADER>() else { return 0 };
    let mut head = *head;
    head[AT].fill(0);
    append(whole(&head), chunks)
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
