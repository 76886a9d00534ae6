//! The gateways and networks of the interfaces, as netdev lists them: by the routing table of sysctl(3) on FreeBSD and
//! macOS, by `GetAdaptersAddresses` on Windows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{HostRoute, MAX_ROUTES};
use crate::interfaces::readable_name;

/// The metric of a gateway that is not the one of the default interface.
const OTHER_METRIC: u32 = 1;

pub(super) fn read() -> Vec<HostRoute> {
    let interfaces = netdev::get_interfaces();
    let usable = interfaces.iter().filter(|one| one.is_up() && !one.is_loopback());
    usable.flat_map(routes_of).take(MAX_ROUTES).collect()
}

fn routes_of(interface: &netdev::Interface) -> Vec<HostRoute> {
    let metric = if interface.default { 0 } else { OTHER_METRIC };
    let through = |gateway: IpAddr| HostRoute {
        destination: match gateway {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        },
        prefix_len: 0,
        gateway: Some(gateway),
        metric,
        interface: readable_name(interface).to_owned(),
    };
    let on_link = |destination: IpAddr, prefix_len| HostRoute {
        destination,
        prefix_len,
        gateway: None,
        metric,
        interface: readable_name(interface).to_owned(),
    };
    let mut routes = Vec::new();
    if let Some(gateway) = &interface.gateway {
        routes.extend(gateway.ipv4.iter().map(|ip| through((*ip).into())));
        routes.extend(gateway.ipv6.iter().map(|ip| through((*ip).into())));
    }
    routes.extend(interface.ipv4.iter().map(|net| on_link(net.network().into(), net.prefix_len())));
    routes.extend(interface.ipv6.iter().map(|net| on_link(net.network().into(), net.prefix_len())));
    routes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_are_default_routes_and_links_have_their_prefix() {
        let mut interface = netdev::Interface::dummy();
        interface.name = "em0".to_owned();
        interface.default = true;
        interface.ipv4 = vec!["192.0.2.7/24".parse().unwrap()];
        let mut gateway = netdev::NetworkDevice::new();
        gateway.ipv4 = vec![[192, 0, 2, 1].into()];
        interface.gateway = Some(gateway);
        let [default, link] = &routes_of(&interface)[..] else { panic!("{interface:?}") };
        assert!(default.is_default() && default.metric == 0);
        assert_eq!(default.gateway, Some([192, 0, 2, 1].into()));
        assert_eq!((link.destination, link.prefix_len), ([192, 0, 2, 0].into(), 24));
        assert_eq!((link.gateway, link.interface.as_str()), (None, "em0"));
    }
}
