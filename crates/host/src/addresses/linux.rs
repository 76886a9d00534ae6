//! getifaddrs(3), and the flags of IPv6 addresses in `/proc/net/if_inet6`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

use super::InterfaceAddress;

/// `IFA_F_DEPRECATED` of `linux/if_addr.h`.
const DEPRECATED: u8 = 0x20;
/// `IFA_F_TENTATIVE` of `linux/if_addr.h`: not usable before duplicate address detection has
/// finished.
const TENTATIVE: u8 = 0x40;

pub(super) fn interface_addresses() -> impl Iterator<Item = InterfaceAddress> {
    let flags = v6_flags(&std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default());
    getifaddrs()
        .into_iter()
        .flatten()
        .filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP))
        .filter_map(move |interface| {
            let address = ip_address(interface.address.as_ref()?)?;
            let flags = flags.get(&address).copied().unwrap_or_default();
            let mask = interface.netmask.as_ref().and_then(ip_address);
            Some(InterfaceAddress {
                interface: interface.interface_name,
                address,
                prefix_len: mask.map_or(full_length(address), prefix_length),
                is_deprecated: flags & DEPRECATED != 0,
                is_tentative: flags & TENTATIVE != 0,
            })
        })
}

fn ip_address(address: &SockaddrStorage) -> Option<IpAddr> {
    match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
        (Some(v4), _) => Some(v4.ip().into()),
        (_, Some(v6)) => Some(v6.ip().into()),
        _ => None,
    }
}

fn full_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn prefix_length(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(mask) => mask.to_bits().count_ones(),
        IpAddr::V6(mask) => mask.to_bits().count_ones(),
    };
    u8::try_from(ones).unwrap_or(u8::MAX)
}

/// Reads `/proc/net/if_inet6`: address, index, prefix length, scope, flags, interface.
fn v6_flags(table: &str) -> BTreeMap<IpAddr, u8> {
    table
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [address, _, _, _, flags, _] = fields[..] else { return None };
            let address = u128::from_str_radix(address, 16).ok()?;
            Some((Ipv6Addr::from_bits(address).into(), u8::from_str_radix(flags, 16).ok()?))
        })
        .collect()
}
