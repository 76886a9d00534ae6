//! What an address leads to: the same place by other spellings, this machine, or a range that is not part of
//! the Internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use eyas::race::io::NetworkView;
use eyas::race::nat64::{extract, synthesise};

/// Returns an address with those that lead to the same place: the IPv4 addresses that it embeds, those in
/// which a NAT64 of this network embeds it, and the loopback addresses if one of them is unspecified.
pub(super) fn spellings(ip: IpAddr, network: &NetworkView) -> Vec<IpAddr> {
    let mut all = vec![ip];
    match ip {
        IpAddr::V4(four) => {
            let translated = network.pref64.iter().filter_map(|prefix| synthesise(*prefix, four));
            all.extend(translated.map(IpAddr::V6));
        }
        IpAddr::V6(six) => {
            all.extend(embedded(six).into_iter().map(IpAddr::V4));
            all.extend(translated(six, network));
        }
    }
    with_loopback(all)
}

/// Returns whether an address is out of reach from the Internet: one of this machine or its links, or of a
/// special-purpose range. One behind a NAT64 of this network is what its IPv4 address is, even if the prefix is
/// one of a site's own (RFC 8215).
pub(super) fn is_local(ip: IpAddr, network: &NetworkView) -> bool {
    let mut places = vec![ip];
    if let IpAddr::V6(six) = ip {
        match translated(six, network) {
            Some(four) => places = vec![four],
            None => places.extend(embedded(six).into_iter().map(IpAddr::V4)),
        }
    }
    with_loopback(places).into_iter().any(|ip| is_special(ip) || is_neighbour(ip, network))
}

/// Returns whether an address is one of this machine's.
pub(super) fn is_own(ip: IpAddr, network: &NetworkView) -> bool {
    ip.is_loopback() || network.sources.iter().any(|source| source.address == ip)
}

/// Returns whether an address is in the on-link prefix of one of this machine's addresses, which it includes.
fn is_neighbour(ip: IpAddr, network: &NetworkView) -> bool {
    network.sources.iter().any(|source| is_within(ip, source.address, source.prefix_len))
}

/// Adds the loopback addresses to an unspecified one: Linux connects to those instead.
fn with_loopback(mut all: Vec<IpAddr>) -> Vec<IpAddr> {
    if all.iter().any(IpAddr::is_unspecified) {
        all.extend([IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    }
    all
}

/// Returns the IPv4 address to which a NAT64 of this network translates an address.
fn translated(ip: Ipv6Addr, network: &NetworkView) -> Option<IpAddr> {
    network.pref64.iter().find_map(|prefix| extract(*prefix, ip)).map(IpAddr::V4)
}

/// Returns the IPv4 addresses that an IPv6 address embeds: of a destination (RFC 4291 §2.5.5, RFC 6052 §2.1,
/// RFC 5214 §6.1), of its router (RFC 3056 §2), or of its server and of its NAT (RFC 4380 §4).
fn embedded(ip: Ipv6Addr) -> Vec<Ipv4Addr> {
    let four = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match ip.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            vec![four(high, low)]
        }
        // The first 16 are not addresses: they include `::` and `::1`.
        [0, 0, 0, 0, 0, 0, 0, 0..=0xf] => Vec::new(),
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            vec![four(high, low)]
        }
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            vec![four(server_high, server_low), four(!high, !low)]
        }
        [0x2002, router_high, router_low, ..] => vec![four(router_high, router_low)],
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => vec![four(high, low)],
        _ => Vec::new(),
    }
}

/// Returns whether the first `bits` bits of an address are those of a network of the same family.
pub(super) fn is_within(ip: IpAddr, network: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            (ip.to_bits() ^ network.to_bits()).checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => {
            (ip.to_bits() ^ network.to_bits()).checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// The IPv4 blocks that IANA's registry of special-purpose addresses (RFC 6890) does not call globally
/// reachable, and multicast (RFC 5771). The relays of 6to4 are deprecated (RFC 7526).
const SPECIAL_V4: [([u8; 4], u8); 15] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// The same of IPv6, with the site-local addresses (RFC 3879). Teredo and 6to4 are not here: such an address is
/// as reachable as the IPv4 addresses that it embeds.
const SPECIAL_V6: [([u16; 3], u8); 13] = [
    // `::`, `::1`, and IPv4-compatible addresses, which are deprecated (RFC 4291 §2.5.5.1).
    ([0, 0, 0], 96),
    ([0x64, 0xff9b, 1], 48),
    ([0x100, 0, 0], 64),
    ([0x2001, 0x2, 0], 48),
    ([0x2001, 0x10, 0], 28),
    ([0x2001, 0xdb8, 0], 32),
    ([0x3fff, 0, 0], 20),
    ([0x5f00, 0, 0], 16),
    ([0xfc00, 0, 0], 7),
    ([0xfe80, 0, 0], 10),
    ([0xfec0, 0, 0], 10),
    ([0xff00, 0, 0], 8),
    // The rest of the IETF's protocol assignments, of which some are globally reachable.
    ([0x2001, 0, 0], 23),
];

/// The globally reachable parts of the IETF's protocol assignments: anycast of PCP and TURN, AMT, AS112,
/// ORCHIDv2 and drone identifiers; and Teredo, which embeds an IPv4 address.
const GLOBAL_V4: [([u8; 4], u8); 2] = [([192, 0, 0, 9], 32), ([192, 0, 0, 10], 32)];
const GLOBAL_V6: [([u16; 8], u8); 8] = [
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 32),
    ([0x2001, 1, 0, 0, 0, 0, 0, 1], 128),
    ([0x2001, 1, 0, 0, 0, 0, 0, 2], 128),
    ([0x2001, 1, 0, 0, 0, 0, 0, 3], 128),
    ([0x2001, 3, 0, 0, 0, 0, 0, 0], 32),
    ([0x2001, 4, 0x112, 0, 0, 0, 0, 0], 48),
    ([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28),
    ([0x2001, 0x30, 0, 0, 0, 0, 0, 0], 28),
];

/// Returns whether an address belongs to no place on the Internet: it is this machine's, link-local, private,
/// or reserved (RFC 6890).
fn is_special(ip: IpAddr) -> bool {
    let within = |(network, bits): (IpAddr, u8)| is_within(ip, network, bits);
    let v4 = |(octets, bits): ([u8; 4], u8)| (IpAddr::from(octets), bits);
    let v6 = |(segments, bits): ([u16; 8], u8)| (IpAddr::from(segments), bits);
    let prefix = |([a, b, c], bits): ([u16; 3], u8)| v6(([a, b, c, 0, 0, 0, 0, 0], bits));
    match ip {
        IpAddr::V4(_) => {
            SPECIAL_V4.into_iter().map(v4).any(within) && !GLOBAL_V4.into_iter().map(v4).any(within)
        }
        IpAddr::V6(_) => {
            SPECIAL_V6.into_iter().map(prefix).any(within)
                && !GLOBAL_V6.into_iter().map(v6).any(within)
        }
    }
}
