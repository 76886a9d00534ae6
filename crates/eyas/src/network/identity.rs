//! Identifies the network: a fingerprint of default routes and gateways (a PvD of RFC 7556).

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

use eyas_host::neighbours;
use eyas_host::routes::{self, HostRoute};
use eyas_race::evidence::NetworkId;

use crate::memory_store::InstallationSecret;

/// The maximum number of interfaces in the name of a network; a machine without a default route may
/// have any number.
const MAX_NAMED: usize = 3;

/// What distinguishes one network from another. Two homes may both have 192.168.1.1 on `wlan0`, so
/// the gateway's hardware address is included if the kernel knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NetworkIdentity {
    routes: Vec<HostRoute>,
    id: NetworkId,
    /// The identity as it was before the gateway's hardware address was known.
    provisional_id: NetworkId,
    /// Interface and gateway of the default route with the lowest metric, per family; the on-link
    /// prefixes if there is none.
    base: String,
    /// The hardware address of the IPv4 gateway. IPv6 gateways have link-local addresses, which
    /// distinguish them equally well.
    hardware: Option<String>,
    /// The readable name of the network: its interfaces, each with its gateway.
    name: String,
    /// Whether there is a gateway whose hardware address is not known yet.
    is_provisional: bool,
}

impl NetworkIdentity {
    pub(super) fn read(secret: &InstallationSecret) -> Self {
        Self::from_routes(routes::read(), neighbours::hardware_address, secret)
    }

    pub(super) fn from_routes(
        routes: Vec<HostRoute>,
        hardware_address: impl FnOnce(Ipv4Addr, &str) -> Option<String>,
        secret: &InstallationSecret,
    ) -> Self {
        let mut defaults: Vec<&HostRoute> = [true, false]
            .into_iter()
            .filter_map(|v4| {
                routes
                    .iter()
                    .filter(|route| route.is_default() && route.destination.is_ipv4() == v4)
                    .min_by_key(|route| route.metric)
            })
            .collect();
        if defaults.is_empty() {
            defaults = routes.iter().filter(|route| !exists_on_every_network(route)).collect();
            defaults.sort_unstable();
        }
        let mut base = String::new();
        for route in &defaults {
            // Writing to a string cannot fail.
            let _ = write!(base, "{}/{} by ", route.destination, route.prefix_len);
            match route.gateway {
                Some(gateway) => _ = write!(base, "{gateway} on {};", route.interface),
                None => _ = write!(base, "{};", route.interface),
            }
        }
        let gateway = defaults.iter().find_map(|route| match route.gateway {
            Some(IpAddr::V4(gateway)) => Some((gateway, route.interface.as_str())),
            _ => None,
        });
        let hardware =
            gateway.and_then(|(gateway, interface)| hardware_address(gateway, interface));
        let is_provisional = gateway.is_some() && hardware.is_none();
        let hash = |text: &str| NetworkId(secret.name("network", text.as_bytes()).into());
        let provisional_id = hash(&base);
        let id = match &hardware {
            Some(hardware) => hash(&format!("{base} at {hardware}")),
            None => provisional_id.clone(),
        };
        let name = describe(&defaults);
        Self { routes, id, provisional_id, base, hardware, name, is_provisional }
    }

    pub(super) fn routes(&self) -> &[HostRoute] {
        &self.routes
    }

    /// Returns the identity, a keyed hash: a plain one would reveal the network, because the few
    /// possible gateway addresses could be tried.
    pub(super) const fn id(&self) -> &NetworkId {
        &self.id
    }

    /// Returns the identity as it was before the gateway's hardware address was known.
    pub(super) const fn provisional_id(&self) -> &NetworkId {
        &self.provisional_id
    }

    /// Returns a readable name of the network. Unlike its identity it need not be unique.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_provisional(&self) -> bool {
        self.is_provisional
    }

    /// Returns whether nothing indicates that these are two networks.
    pub(super) fn is_same_network(&self, other: &Self) -> bool {
        self.base == other.base
            && (self.hardware == other.hardware
                || self.hardware.is_none()
                || other.hardware.is_none())
    }
}

/// Returns whether the prefix is link-local or multicast, which exist on every network.
fn exists_on_every_network(route: &HostRoute) -> bool {
    match route.destination {
        IpAddr::V6(destination) => {
            destination.is_unicast_link_local()
                || destination.is_multicast()
                || route.prefix_len == 128
        }
        IpAddr::V4(destination) => destination.is_link_local() || destination.is_loopback(),
    }
}

/// Returns the gateway of each interface, IPv4 first, such as `wlan0 via 192.168.1.1`; the on-link
/// prefixes if there is none.
fn describe(defaults: &[&HostRoute]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for route in defaults {
        let interface = route.interface.as_str();
        if seen.contains(&interface) {
            continue;
        }
        seen.push(interface);
        names.push(match route.gateway {
            Some(gateway) => format!("{interface} via {gateway}"),
            None if route.is_default() => interface.to_owned(),
            None => format!("{interface} on {}/{}", route.destination, route.prefix_len),
        });
    }
    let remaining = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    match (names.is_empty(), remaining) {
        (true, _) => "no network".to_owned(),
        (false, 0) => names.join(", "),
        (false, _) => format!("{} and {remaining} more", names.join(", ")),
    }
}
