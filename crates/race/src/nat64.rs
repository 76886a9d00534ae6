//! IPv4 addresses embedded in IPv6 addresses, for networks with NAT64.
//!
//! RFC 6052 §2.2 specifies the position of the 32 bits for each prefix length: directly after the
//! prefix, skipping bits 64 to 71, which are zero.

use core::net::{Ipv4Addr, Ipv6Addr};

#[cfg(test)]
mod tests;

/// The valid lengths of a PREF64, in bits (RFC 6052 §2.2).
pub const PREFIX_LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];

/// `64:ff9b::/96`, the Well-Known Prefix (RFC 6052 §2.1).
pub const WELL_KNOWN_PREFIX: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// The octet that is zero in every IPv4-embedded address (RFC 6052 §2.2, "u").
const RESERVED_OCTET: usize = 8;

/// Returns the octets of an IPv6 address that contain the IPv4 address after a prefix of `len`
/// bits.
fn positions(len: u8) -> Option<[usize; 4]> {
    if !PREFIX_LENGTHS.contains(&len) {
        return None;
    }
    let mut next = usize::from(len / 8);
    Some(core::array::from_fn(|_| {
        if next == RESERVED_OCTET {
            next += 1;
        }
        next += 1;
        next - 1
    }))
}

/// Embeds an IPv4 address in a PREF64. Returns `None` if it must not be translated: addresses that
/// are not routed beyond the host or link (HEv3 §8.3), private addresses with the Well-Known Prefix
/// (RFC 6052 §3.1), and invalid prefix lengths.
pub fn synthesise((prefix, len): (Ipv6Addr, u8), address: Ipv4Addr) -> Option<Ipv6Addr> {
    let is_local = address.octets()[0] == 0
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast();
    if is_local || ((prefix, len) == WELL_KNOWN_PREFIX && address.is_private()) {
        return None;
    }
    let positions = positions(len)?;
    let mut octets = prefix.octets();
    octets[usize::from(len / 8)..].fill(0);
    for (position, octet) in positions.into_iter().zip(address.octets()) {
        octets[position] = octet;
    }
    Some(octets.into())
}

/// Extracts the IPv4 address embedded in an IPv6 address under the PREF64, whether it was embedded
/// by this host or by a DNS64 (HEv3 §8.2).
pub fn extract((prefix, len): (Ipv6Addr, u8), address: Ipv6Addr) -> Option<Ipv4Addr> {
    let positions = positions(len)?;
    let octets = address.octets();
    let before = usize::from(len / 8);
    let under_prefix = octets[..before] == prefix.octets()[..before];
    (under_prefix && octets[RESERVED_OCTET] == 0)
        .then(|| Ipv4Addr::from(positions.map(|position| octets[position])))
}
