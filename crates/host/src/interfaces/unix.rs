//! if_nametoindex(3) and getifaddrs(3).

use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{if_indextoname, if_nametoindex};

pub(super) fn name(index: u32) -> Option<String> {
    // nix returns an empty name, and no error, if there is none.
    if_indextoname(index).ok()?.into_string().ok().filter(|name| !name.is_empty())
}

pub(super) fn index(name: &str) -> Option<u32> {
    if_nametoindex(name).ok()
}

pub(super) fn addresses(name: &str) -> Vec<IpAddr> {
    let Ok(all) = getifaddrs() else { return Vec::new() };
    let of_this = all.filter(|one| one.interface_name == name);
    let sockets = of_this.filter_map(|one| one.address);
    let addresses = sockets.filter_map(|socket| {
        let v4 = socket.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| socket.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    addresses.collect()
}
