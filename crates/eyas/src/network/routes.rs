//! The kernel's routes, as `/proc/net/route` and `/proc/net/ipv6_route` list them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `RTF_UP` of `linux/route.h`.
const UP: u32 = 0x0001;
/// `RTF_REJECT` of `linux/route.h`.
const REJECT: u32 = 0x0200;
/// The maximum number of routes read from one table, in case of a router with a full table.
const MAX_ROUTES: usize = 4096;

/// One route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostRoute {
    pub(super) destination: IpAddr,
    pub(super) prefix_len: u8,
    pub(super) gateway: Option<IpAddr>,
    pub(super) metric: u32,
    pub(super) interface: String,
}

impl HostRoute {
    pub(super) fn is_default(&self) -> bool {
        self.prefix_len == 0
    }
}

/// Returns every usable route of both families.
pub(super) fn read() -> Vec<HostRoute> {
    let table = |path| std::fs::read_to_string(path).unwrap_or_default();
    let mut routes = parse_v4(&table("/proc/net/route"));
    routes.extend(parse_v6(&table("/proc/net/ipv6_route")));
    routes
}

pub(super) fn parse_v4(table: &str) -> Vec<HostRoute> {
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

pub(super) fn parse_v6(table: &str) -> Vec<HostRoute> {
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
