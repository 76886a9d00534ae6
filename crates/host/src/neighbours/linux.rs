//! `/proc/net/arp`.

use std::net::Ipv4Addr;

pub(super) fn hardware_address(gateway: Ipv4Addr, interface: &str) -> Option<String> {
    let table = std::fs::read_to_string("/proc/net/arp").unwrap_or_default();
    super::parse(&table, gateway, interface)
}
