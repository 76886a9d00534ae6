//! The gateways of interfaces, as netdev lists them.

use std::net::Ipv4Addr;

use crate::interfaces::readable_name;

pub(super) fn hardware_address(gateway: Ipv4Addr, interface: &str) -> Option<String> {
    let all = netdev::get_interfaces();
    let found = all.iter().find(|one| readable_name(one) == interface)?.gateway.as_ref()?;
    let is_known = found.ipv4.contains(&gateway) && found.mac_addr != netdev::MacAddr::zero();
    is_known.then(|| found.mac_addr.to_string())
}
