//! The addresses of this host that can be used as sources (RFC 6724 §4).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::routes::{self, HostRoute};

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as platform;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use other as platform;

/// The maximum number of addresses; no protocol has use for more.
const MAX_SOURCES: usize = 256;
/// Addresses on the Internet that are looked up in the routing table; nothing is sent there. Only
/// such a lookup takes policy routing into account, which VPNs use.
const REMOTE_ADDRESSES: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::new(0x2001, 0x500, 0x2, 0, 0, 0, 0, 0xc)),
    IpAddr::V4(Ipv4Addr::new(192, 33, 4, 12)),
];

/// An address of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnAddress {
    /// The address.
    pub address: IpAddr,
    /// The length of its on-link prefix in bits.
    pub prefix_len: u8,
    /// Whether it is deprecated (RFC 4862 §5.5.4).
    pub deprecated: bool,
    /// Whether packets from it leave through a gateway.
    pub routed: bool,
}

/// An address of an interface that is up.
struct InterfaceAddress {
    interface: String,
    address: IpAddr,
    prefix_len: u8,
    is_deprecated: bool,
    /// Whether duplicate address detection has not finished (RFC 4862 §5.4), before which it is not usable.
    is_tentative: bool,
}

/// Returns the source address that the kernel would use for `peer`. Connecting a UDP socket queries
/// the routing table and sends nothing.
///
/// # Errors
/// If there is no route to it.
pub fn source_address_for(peer: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr =
        if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(peer)?;
    Ok(socket.local_addr()?.ip())
}

/// Returns the addresses of this host that packets may be sent from, those with global reach first.
pub fn own_addresses() -> Vec<IpAddr> {
    let usable = usable_addresses(&routes::read());
    usable.iter().filter(|own| !own.deprecated).map(|own| own.address).collect()
}

/// Returns every usable address of a host with these routes; for each family, the one that the kernel
/// uses for distant destinations first.
pub fn usable_addresses(routes: &[HostRoute]) -> Vec<OwnAddress> {
    let preferred: Vec<IpAddr> = REMOTE_ADDRESSES
        .iter()
        .filter_map(|remote| source_address_for((*remote, 53).into()).ok())
        .collect();
    let mut sources: Vec<OwnAddress> = platform::interface_addresses()
        .filter(|one| !one.is_tentative)
        .map(|InterfaceAddress { interface, address, prefix_len, is_deprecated, .. }| OwnAddress {
            address,
            prefix_len,
            deprecated: is_deprecated,
            routed: preferred.contains(&address) || has_route_out(routes, &interface, address),
        })
        .take(MAX_SOURCES)
        .collect();
    sources.sort_by_key(|source| (!preferred.contains(&source.address), !source.routed));
    sources
}

/// Returns whether a route through a gateway, or one wider than any link, uses this interface.
fn has_route_out(routes: &[HostRoute], interface: &str, source: IpAddr) -> bool {
    routes.iter().any(|route| {
        route.interface == interface
            && route.destination.is_ipv4() == source.is_ipv4()
            && !route.destination.is_multicast()
            && (route.is_default() || route.gateway.is_some())
    })
}
