//! The kernel's routes: all of them on Linux; elsewhere those through the gateways of interfaces, and to the networks on
//! their links.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as platform;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use other as platform;

/// `RTF_UP` of `linux/route.h`.
const UP: u32 = 0x0001;
/// `RTF_REJECT` of `linux/route.h`.
const REJECT: u32 = 0x0200;
/// The maximum number of routes read from one table, in case of a router with a full table.
const MAX_ROUTES: usize = 4096;

/// A route of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostRoute {
    /// The destinations: the addresses with this prefix.
    pub destination: IpAddr,
    /// The length of the prefix in bits.
    pub prefix_len: u8,
    /// The router, unless the destinations are on the link.
    pub gateway: Option<IpAddr>,
    /// The lowest of several routes to a destination is used.
    pub metric: u32,
    /// The name of the interface.
    pub interface: String,
}

impl HostRoute {
    /// Returns whether all addresses of the family match.
    pub fn is_default(&self) -> bool {
        self.prefix_len == 0
    }
}

/// Returns every usable route of both families; none if the kernel does not list them.
pub fn read() -> Vec<HostRoute> {
    platform::read()
}

/// Parses a table like `/proc/net/route`; lines that are no usable route are skipped.
pub fn parse_v4(table: &str) -> Vec<HostRoute> {
    table.lines().skip(1).take(MAX_ROUTES).filter_map(v4_line).collect()
}

fn v4_line(line: &str) -> Option<HostRoute> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [interface, destination, gateway, flags, _, _, metric, mask, ..] = fields[..] else {
        return None;
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    if flags & UP == 0 || flags & REJECT != 0 {
        return None;
    }
    let gateway = v4(gateway)?;
    Some(HostRoute {
        destination: v4(destination)?.into(),
        prefix_len: u8::try_from(v4(mask)?.to_bits().count_ones()).ok()?,
        gateway: (!gateway.is_unspecified()).then_some(gateway.into()),
        metric: metric.parse().ok()?,
        interface: interface.to_owned(),
    })
}

/// Parses an address that the kernel prints as it is in memory, in network byte order.
fn v4(hex: &str) -> Option<Ipv4Addr> {
    u32::from_str_radix(hex, 16).ok().map(|bits| Ipv4Addr::from(bits.to_ne_bytes()))
}

/// Parses a table like `/proc/net/ipv6_route`; lines that are no usable route are skipped.
pub fn parse_v6(table: &str) -> Vec<HostRoute> {
    table.lines().take(MAX_ROUTES).filter_map(v6_line).collect()
}

fn v6_line(line: &str) -> Option<HostRoute> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [destination, prefix_len, _, _, gateway, metric, _, _, flags, interface] = fields[..]
    else {
        return None;
    };
    let flags = u32::from_str_radix(flags, 16).ok()?;
    if flags & UP == 0 || flags & REJECT != 0 || interface == "lo" {
        return None;
    }
    let gateway = v6(gateway)?;
    Some(HostRoute {
        destination: v6(destination)?.into(),
        prefix_len: u8::from_str_radix(prefix_len, 16).ok()?,
        gateway: (!gateway.is_unspecified()).then_some(gateway.into()),
        metric: u32::from_str_radix(metric, 16).ok()?,
        interface: interface.to_owned(),
    })
}

fn v6(hex: &str) -> Option<Ipv6Addr> {
    u128::from_str_radix(hex, 16).ok().map(Ipv6Addr::from_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "\
Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT
eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0
eth0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0
eth1 00000000 00000000 0201 0 0 0 00000000 0 0 0
not a route";

    const V6: &str = "\
20010db8000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001 eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000002 00000000 00000003 eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo";

    #[test]
    fn routes_are_parsed_and_reject_routes_are_skipped() {
        let v4 = parse_v4(V4);
        assert_eq!(v4.len(), 2);
        assert!(v4[0].is_default());
        assert_eq!(v4[0].gateway, Some("192.0.2.1".parse().unwrap()));
        assert_eq!((v4[1].destination, v4[1].prefix_len), ("192.0.2.0".parse().unwrap(), 24));
        let v6 = parse_v6(V6);
        assert_eq!(v6.len(), 2);
        assert_eq!((v6[0].destination, v6[0].prefix_len), ("2001:db8::".parse().unwrap(), 64));
        assert_eq!(v6[1].gateway, Some("fe80::1".parse().unwrap()));
    }
}
