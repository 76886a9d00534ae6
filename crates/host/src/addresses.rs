//! The addresses of this host that can be used as sources (RFC 6724 §4).

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

use crate::routes::{self, HostRoute};

/// The maximum number of addresses; no protocol has use for more.
const MAX_SOURCES: usize = 256;
/// `IFA_F_DEPRECATED` of `linux/if_addr.h`.
const DEPRECATED: u8 = 0x20;
/// `IFA_F_TENTATIVE` of `linux/if_addr.h`: not usable before duplicate address detection has
/// finished.
const TENTATIVE: u8 = 0x40;
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
    let flags = v6_flags(&std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default());
    let Ok(interfaces) = getifaddrs() else { return Vec::new() };
    let mut sources: Vec<OwnAddress> = interfaces
        .filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP))
        .filter_map(|interface| {
            let address = ip_address(interface.address.as_ref()?)?;
            let flags = flags.get(&address).copied().unwrap_or_default();
            let mask = interface.netmask.as_ref().and_then(ip_address);
            (flags & TENTATIVE == 0).then(|| OwnAddress {
                address,
                prefix_len: mask.map_or(full_length(address), prefix_length),
                deprecated: flags & DEPRECATED != 0,
                routed: preferred.contains(&address)
                    || has_route_out(routes, &interface.interface_name, address),
            })
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

fn ip_address(address: &SockaddrStorage) -> Option<IpAddr> {
    match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
        (Some(v4), _) => Some(v4.ip().into()),
        (_, Some(v6)) => Some(v6.ip().into()),
        _ => None,
    }
}

fn full_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn prefix_length(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(mask) => mask.to_bits().count_ones(),
        IpAddr::V6(mask) => mask.to_bits().count_ones(),
    };
    u8::try_from(ones).unwrap_or(u8::MAX)
}

/// Reads `/proc/net/if_inet6`: address, index, prefix length, scope, flags, interface.
fn v6_flags(table: &str) -> BTreeMap<IpAddr, u8> {
    table
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [address, _, _, _, flags, _] = fields[..] else { return None };
            let address = u128::from_str_radix(address, 16).ok()?;
            Some((Ipv6Addr::from_bits(address).into(), u8::from_str_radix(flags, 16).ok()?))
        })
        .collect()
}
