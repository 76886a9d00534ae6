//! `GetAdaptersAddresses`.

use std::net::IpAddr;

use super::readable_name;

fn find(is_it: impl Fn(&netdev::Interface) -> bool) -> Option<netdev::Interface> {
    netdev::get_interfaces().into_iter().find(is_it)
}

pub(super) fn name(index: u32) -> Option<String> {
    find(|one| one.index == index).map(|found| readable_name(&found).to_owned())
}

pub(super) fn index(name: &str) -> Option<u32> {
    find(|one| readable_name(one) == name || one.name == name).map(|found| found.index)
}

pub(super) fn addresses(name: &str) -> Vec<IpAddr> {
    let found = find(|one| readable_name(one) == name || one.name == name);
    found.map(|found| found.ip_addrs()).unwrap_or_default()
}
