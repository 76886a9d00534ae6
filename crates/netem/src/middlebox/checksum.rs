//! The Internet checksum (RFC 1071), and how a change of one field changes it (RFC 1624).

use core::net::IpAddr;

use crate::packet::Packet;

/// A sum of 16-bit words in ones' complement, not yet folded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OnesComplementSum(u32);

impl OnesComplementSum {
    /// Adds bytes as 16-bit words; an odd byte at the end is a high byte.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        for pair in bytes.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            self = self.word(u16::from_be_bytes([pair[0], low]));
        }
        self
    }

    /// Adds one word.
    pub(crate) const fn word(self, word: u16) -> Self {
        // Folding at each step keeps the sum below 2^17.
        let sum = self.0 + word as u32;
        Self((sum & 0xffff) + (sum >> 16))
    }

    /// Subtracts one word.
    const fn without(self, word: u16) -> Self {
        self.word(!word)
    }

    fn address(self, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => self.bytes(&address.octets()),
            IpAddr::V6(address) => self.bytes(&address.octets()),
        }
    }

    fn without_address(self, address: IpAddr) -> Self {
        let subtract = |sum: Self, bytes: &[u8]| {
            let words = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            words.fold(sum, Self::without)
        };
        match address {
            IpAddr::V4(address) => subtract(self, &address.octets()),
            IpAddr::V6(address) => subtract(self, &address.octets()),
        }
    }

    /// Returns the checksum.
    pub(crate) const fn finish(self) -> u16 {
        !(self.0 as u16)
    }

    /// The sum of addresses, protocol and length that TCP, UDP and ICMPv6 add to their own
    /// (RFC 9293 §3.1, RFC 8200 §8.1).
    pub(crate) fn pseudo_header(source: IpAddr, to: IpAddr, protocol: u8, length: usize) -> Self {
        let sum = Self::default().address(source).address(to).word(u16::from(protocol));
        sum.word((length >> 16) as u16).word(length as u16)
    }
}

/// The change of a checksum that covers an address and a port, when both change.
pub(super) fn updated(checksum: u16, old: (IpAddr, u16), new: (IpAddr, u16)) -> u16 {
    let sum = OnesComplementSum(u32::from(!checksum)).without_address(old.0).without(old.1);
    sum.address(new.0).word(new.1).finish()
}

/// The checksum over a whole TCP segment or ICMPv6 message whose own field is zero.
pub(super) fn of_transport(packet: &Packet) -> u16 {
    let (source, to) = (packet.source, packet.destination);
    let sum = OnesComplementSum::pseudo_header(source, to, packet.protocol, packet.payload.len());
    sum.bytes(&packet.payload).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let sum =
            OnesComplementSum::default().bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn an_incremental_update_equals_a_full_computation() {
        let to: IpAddr = [198, 51, 100, 7].into();
        let sum = |source: IpAddr, port: u16| {
            let sum =
                OnesComplementSum::pseudo_header(source, to, 17, 11).word(port).word(53).word(11);
            sum.bytes(b"abc").finish()
        };
        let old = ([10, 0, 0, 1].into(), 5000);
        let new = ([203, 0, 113, 9].into(), 61_234);
        assert_eq!(updated(sum(old.0, old.1), old, new), sum(new.0, new.1));
    }
}
