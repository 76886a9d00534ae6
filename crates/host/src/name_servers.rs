//! The name servers of the interfaces, on Windows, which has no resolv.conf(5).

use std::net::IpAddr;

/// Returns the name servers, those of the default interface first.
pub fn read() -> Vec<IpAddr> {
    let mut interfaces = netdev::get_interfaces();
    interfaces.retain(netdev::Interface::is_up);
    interfaces.sort_by_key(|interface| !interface.default);
    let mut servers = Vec::new();
    for server in interfaces.into_iter().flat_map(|interface| interface.dns_servers) {
        // Those addresses stand for "none configured" (draft-ietf-ipngwg-dns-discovery).
        let is_placeholder =
            matches!(server, IpAddr::V6(v6) if v6.segments()[..6] == [0xfec0, 0, 0, 0xffff, 0, 0]);
        if !is_placeholder && !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers
}
