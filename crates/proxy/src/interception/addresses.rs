//! The addresses in a namespace whose programs are intercepted.
//!
//! The IPv4 addresses are from the block for benchmarks (RFC 2544 App. C.2.2, RFC 6890), which no host on the
//! Internet has and few private networks use: from its second half, since the emulator uses the first one. The IPv6
//! addresses are unique local ones (RFC 4193).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses of the namespace itself, from which its programs connect.
pub const HOST: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(198, 19, 0, 1), Ipv6Addr::new(0xfd65, 0x7961, 0x7300, 0, 0, 0, 0, 1));
/// The addresses behind the device: the listeners see connections from there, and the name server is there.
pub const PEER: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(198, 19, 0, 2), Ipv6Addr::new(0xfd65, 0x7961, 0x7300, 0, 0, 0, 0, 2));
/// The first addresses that represent names.
const NAMES: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(198, 19, 1, 0), Ipv6Addr::new(0xfd65, 0x7961, 0x7300, 1, 0, 0, 0, 0));
/// How many addresses can represent names, in each family: those of 198.19.0.0/16 after the first 256.
pub(super) const RANGE: u32 = 0x1_0000 - 0x100;

/// Returns the address of the same family.
pub(super) fn like(of: IpAddr, (v4, v6): (Ipv4Addr, Ipv6Addr)) -> IpAddr {
    if of.is_ipv4() { v4.into() } else { v6.into() }
}

/// Returns the addresses that represent the name with this number, which is below [`RANGE`].
pub(super) fn of_name(number: u32) -> (Ipv4Addr, Ipv6Addr) {
    let (v4, v6) = NAMES;
    (
        Ipv4Addr::from_bits(v4.to_bits() + number),
        Ipv6Addr::from_bits(v6.to_bits() + u128::from(number)),
    )
}

/// Returns the number of the name that this address represents, if it represents one.
pub(super) fn number(ip: IpAddr) -> Option<u32> {
    let number = match ip {
        IpAddr::V4(ip) => ip.to_bits().checked_sub(NAMES.0.to_bits())?,
        IpAddr::V6(ip) => u32::try_from(ip.to_bits().checked_sub(NAMES.1.to_bits())?).ok()?,
    };
    (number < RANGE).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_addresses_map_back_to_the_name() {
        for at in [0, 1, 255, 256, 60_000, RANGE - 1] {
            let (v4, v6) = of_name(at);
            assert_eq!((number(v4.into()), number(v6.into())), (Some(at), Some(at)));
        }
        assert_eq!(of_name(RANGE - 1).0, Ipv4Addr::new(198, 19, 255, 255));
        for other in
            ["198.19.0.2", "198.20.0.0", "198.18.1.2", "192.0.2.1", "fd65:7961:7300::2", "::1"]
        {
            assert_eq!(number(other.parse().expect("an address")), None, "{other}");
        }
    }
}
