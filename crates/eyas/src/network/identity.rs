//! Identifies the network: a fingerprint of default routes and gateways (a PvD of RFC 7556).

use std::fmt::Write;
use std::net::IpAddr;

use eyas_race::evidence::NetworkId;

use super::routes::{self, Route};
use crate::memory_store::Secret;

/// Interfaces that the name of a network tells; a machine without a way out may have any number.
const MAX_NAMED: usize = 3;

/// What tells one network from another. Two homes may both have 192.168.1.1 on `wlan0`, so the
/// gateway's hardware address counts where the kernel knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    routes: Vec<Route>,
    id: NetworkId,
    /// The identity as it was before the gateway's hardware address was known.
    id_before_settling: NetworkId,
    /// Interface and gateway of every default route of the least metric, per family; the
    /// prefixes on link where there is none.
    base: String,
    /// The hardware address of the IPv4 gateway. IPv6 gateways have link-local addresses, which
    /// tell as much.
    hardware: Option<String>,
    /// What people call the network: its interfaces, each with its gateway.
    name: String,
    /// Whether there is a gateway whose hardware address is not known yet.
    awaits_hardware: bool,
}

impl Identity {
    pub(super) fn read(secret: &Secret) -> Self {
        let neighbours = std::fs::read_to_string("/proc/net/arp").unwrap_or_default();
        Self::of(routes::read(), &neighbours, secret)
    }

    pub(super) fn of(routes: Vec<Route>, neighbours: &str, secret: &Secret) -> Self {
        let mut defaults: Vec<&Route> = [true, false]
            .into_iter()
            .filter_map(|v4| {
                routes
                    .iter()
                    .filter(|route| route.is_default() && route.destination.is_ipv4() == v4)
                    .min_by_key(|route| route.metric)
            })
            .collect();
        if defaults.is_empty() {
            defaults = routes.iter().filter(|route| !is_of_every_network(route)).collect();
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
        let hardware = gateway.and_then(|(gateway, interface)| {
            hardware_of(neighbours, &gateway.to_string(), interface)
        });
        let awaits_hardware = gateway.is_some() && hardware.is_none();
        let hash = |text: &str| NetworkId(secret.name("network", text.as_bytes()));
        let id_before_settling = hash(&base);
        let id = match &hardware {
            Some(hardware) => hash(&format!("{base} at {hardware}")),
            None => id_before_settling.clone(),
        };
        let name = name_of(&defaults);
        Self { routes, id, id_before_settling, base, hardware, name, awaits_hardware }
    }

    pub(super) fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// Says nothing about the network to who reads it and has not the secret: there are few
    /// gateways' addresses, and each could be tried.
    pub(super) const fn id(&self) -> &NetworkId {
        &self.id
    }

    /// Returns the identity as it was before the gateway's hardware address was known.
    pub(super) const fn id_before_settling(&self) -> &NetworkId {
        &self.id_before_settling
    }

    /// Returns a readable name of the network. Unlike its identity it need not be unique.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_provisional(&self) -> bool {
        self.awaits_hardware
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
fn is_of_every_network(route: &Route) -> bool {
    match route.destination {
        IpAddr::V6(destination) => {
            destination.is_unicast_link_local()
                || destination.is_multicast()
                || route.prefix_len == 128
        }
        IpAddr::V4(destination) => destination.is_link_local() || destination.is_loopback(),
    }
}

/// Reads `/proc/net/arp`: address, type, flags, hardware address, mask, device.
fn hardware_of(neighbours: &str, gateway: &str, interface: &str) -> Option<String> {
    neighbours.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            [address, _, _, hardware, _, device]
                if address == gateway && device == interface && hardware != "00:00:00:00:00:00" =>
            {
                Some(hardware.to_owned())
            }
            _ => None,
        }
    })
}

/// Returns the way out of each interface, IPv4 first, such as `wlan0 via 192.168.1.1`; the on-link
/// prefixes if there is none.
fn name_of(defaults: &[&Route]) -> String {
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
    let surplus = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    match (names.is_empty(), surplus) {
        (true, _) => "no network".to_owned(),
        (false, 0) => names.join(", "),
        (false, _) => format!("{} and {surplus} more", names.join(", ")),
    }
}
