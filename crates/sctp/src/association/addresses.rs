//! Which of the addresses that a peer lists are used (RFC 9260 §5.1.2, RFC 4960 §11.2.4.1), and
//! which of ours are announced to it.
//!
//! Anybody can send such a list: one with our own loopback address, with multicast addresses or
//! with thousands of entries must not make us send there.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr, SocketAddrV6};

use crate::config::AssociationConfig;
use crate::counters::EndpointCounters;
use crate::identifier::PathId;
use crate::path::{AssociationPaths, Path};

/// The maximum number of our addresses that are announced to a peer in the handshake.
const MAX_ANNOUNCED: usize = 16;

/// Returns whether `address` identifies a single host.
pub(crate) fn is_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !(v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast()),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_unicast(v4.into()),
            None => !(v6.is_unspecified() || v6.is_multicast()),
        },
    }
}

/// Returns whether `address` is only valid on this host.
fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback(),
        IpAddr::V6(v6) => {
            v6.is_loopback() || v6.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
        }
    }
}

/// Returns whether `address` is only valid on one link.
fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// Returns whether an address listed by the peer at `source` can belong to that peer. Addresses of
/// a smaller scope than `source` are rejected (RFC 9260 §5.1.2 C, note on scoping).
pub(crate) fn is_plausible(listed: IpAddr, source: IpAddr) -> bool {
    is_unicast(listed)
        && (!is_loopback(listed) || is_loopback(source))
        && (!is_link_local(listed) || is_link_local(source) || is_loopback(source))
}

/// Returns whether `address` is only valid within one organisation's network (RFC 1918, RFC 4193).
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private(),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => v4.is_private(),
            None => v6.is_unique_local(),
        },
    }
}

/// Returns whether our address `own` may be announced to a peer at `peer` (RFC 9260 §5.1.2, RFC
/// 5061 §4.2.1). One of a smaller scope than the peer's would be useless there, or belong to
/// another host. A peer on this host needs only loopback addresses.
pub(crate) fn may_be_announced(own: IpAddr, peer: IpAddr) -> bool {
    let is_link_scoped = is_link_local(peer);
    let is_local_scope = is_link_scoped || is_private(peer);
    is_unicast(own)
        && is_loopback(own) == is_loopback(peer)
        && (!is_link_local(own) || is_link_scoped)
        && (!is_private(own) || is_local_scope)
}

/// Returns the addresses of `own` to announce to a peer at `peer`, most preferred first. A single
/// address of the peer's family is not announced: packets already come from it.
pub(crate) fn addresses_to_announce(own: &[IpAddr], peer: IpAddr) -> Vec<IpAddr> {
    let announced = own.iter().copied().filter(|address| may_be_announced(*address, peer));
    let announced: Vec<IpAddr> = announced.take(MAX_ANNOUNCED).collect();
    match announced[..] {
        [only] if only.is_ipv4() == peer.is_ipv4() => Vec::new(),
        _ => announced,
    }
}

/// Returns `address` with the port of `like` (that of the encapsulation), and with its scope if
/// both are on one link.
pub(crate) fn socket_address_like(address: IpAddr, like: SocketAddr) -> SocketAddr {
    match (address, like) {
        (IpAddr::V6(v6), SocketAddr::V6(like)) if v6.is_unicast_link_local() => {
            SocketAddrV6::new(v6, like.port(), 0, like.scope_id()).into()
        }
        _ => SocketAddr::new(address, like.port()),
    }
}

/// Returns the addresses of `listed` that a peer at `source` may have, without duplicates and
/// `source` itself, at most `limit`. Counts those that are ignored.
pub(crate) fn filter_listed(
    listed: impl Iterator<Item = IpAddr>,
    source: IpAddr,
    limit: usize,
    counters: &mut EndpointCounters,
) -> Vec<IpAddr> {
    let mut kept = Vec::new();
    for address in listed {
        if address == source || kept.contains(&address) {
            continue;
        }
        if kept.len() >= limit || !is_plausible(address, source) {
            counters.addresses_ignored += 1;
        } else {
            kept.push(address);
        }
    }
    kept
}

/// Adds the further addresses that the peer listed, with the UDP port that it used (RFC 6951 §5.1).
pub(super) fn add_listed(
    paths: &mut AssociationPaths,
    listed: &[IpAddr],
    from: SocketAddr,
    config: &AssociationConfig,
) {
    for &address in listed {
        if paths.by_address(address).is_none() {
            paths.add(socket_address_like(address, from), None, config);
        }
    }
}

/// Replaces the paths by those to the addresses that the peer listed and the one that it answered an
/// INIT from (§5.1.2). Returns the path to that.
pub(super) fn keep_listed(
    paths: &mut AssociationPaths,
    listed: &[IpAddr],
    from: SocketAddr,
    config: &AssociationConfig,
) -> Option<PathId> {
    let answered = match paths.by_address(from.ip()) {
        Some(known) => Some(known),
        // It responded to an INIT that was sent to another address. Our address on this path is
        // unknown: the one that the INIT ACK arrived at was the peer's choice.
        None => paths.add(from, None, config),
    };
    if let Some(path) = answered {
        paths.confirm(path);
    }
    let keeps = |path: &Path| Some(path.id) == answered || listed.contains(&path.remote.ip());
    let removed: Vec<PathId> =
        paths.iter().filter(|path| !keeps(path)).map(|path| path.id).collect();
    for path in removed {
        paths.remove(path);
    }
    add_listed(paths, listed, from, config);
    answered
}

/// Returns those of the peer's addresses whose family is used here: an INIT that lists none of ours
/// does not name the families.
pub(super) fn filter_families(
    paths: &AssociationPaths,
    listed: &[IpAddr],
    own: &[IpAddr],
    counters: &mut EndpointCounters,
) -> Vec<IpAddr> {
    let used = |address: &&IpAddr| {
        let v4 = address.is_ipv4();
        paths.iter().any(|path| path.remote.is_ipv4() == v4)
            || own.iter().any(|own| own.is_ipv4() == v4)
    };
    let usable: Vec<IpAddr> = listed.iter().filter(used).copied().collect();
    counters.addresses_ignored += (listed.len() - usable.len()) as u64;
    usable
}

/// Returns whether `source` and all `listed` addresses already belong to the peer.
pub(super) fn are_all_known(paths: &AssociationPaths, listed: &[IpAddr], source: IpAddr) -> bool {
    let known = |address: &IpAddr| paths.by_address(*address).is_some();
    known(&source) && listed.iter().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(listed: &[&str], source: &str, limit: usize) -> (Vec<IpAddr>, u64) {
        let mut counters = EndpointCounters::default();
        let listed = listed.iter().map(|text| text.parse().unwrap());
        let kept = filter_listed(listed, source.parse().unwrap(), limit, &mut counters);
        (kept, counters.addresses_ignored)
    }

    #[test]
    fn addresses_that_identify_no_host_are_ignored() {
        let listed = ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "::ffff:0.0.0.0"];
        assert_eq!(filtered(&listed, "192.0.2.1", 32), (alloc::vec![], 6));
    }

    #[test]
    fn loopback_addresses_are_accepted_only_from_loopback() {
        let listed = ["127.0.0.2", "::1", "::ffff:127.0.0.1"];
        assert_eq!(filtered(&listed, "192.0.2.1", 32).1, 3);
        assert_eq!(filtered(&listed, "127.0.0.1", 32).0.len(), 3);
    }

    #[test]
    fn link_local_addresses_are_accepted_only_from_a_link() {
        let listed = ["fe80::1", "169.254.0.1"];
        assert_eq!(filtered(&listed, "2001:db8::1", 32).1, 2);
        assert_eq!(filtered(&listed, "fe80::2", 32).1, 0);
    }

    #[test]
    fn addresses_are_bounded_and_deduplicated() {
        let listed = ["192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
        let (kept, ignored) = filtered(&listed, "192.0.2.1", 2);
        assert_eq!(kept.len(), 2);
        assert_eq!(ignored, 1);
    }

    fn announced(own: &[&str], peer: &str) -> Vec<IpAddr> {
        let own: Vec<IpAddr> = own.iter().map(|text| text.parse().unwrap()).collect();
        addresses_to_announce(&own, peer.parse().unwrap())
    }

    #[test]
    fn addresses_of_the_peers_scope_are_announced() {
        let own =
            ["127.0.0.1", "::1", "10.0.0.1", "fd00::1", "192.0.2.1", "2001:db8::1", "fe80::1"];
        let parsed = |list: &[&str]| -> Vec<IpAddr> {
            list.iter().map(|text| text.parse().unwrap()).collect()
        };
        assert_eq!(announced(&own, "198.51.100.1"), parsed(&["192.0.2.1", "2001:db8::1"]));
        let near = parsed(&["10.0.0.1", "fd00::1", "192.0.2.1", "2001:db8::1"]);
        assert_eq!(announced(&own, "10.9.9.9"), near);
        assert_eq!(announced(&own, "fd00::9"), near);
        assert_eq!(announced(&own, "127.0.0.1"), parsed(&["127.0.0.1", "::1"]));
        assert_eq!(announced(&own, "fe80::9").len(), 5);
    }

    #[test]
    fn a_single_address_is_not_announced() {
        assert_eq!(announced(&["192.0.2.1", "10.0.0.1"], "198.51.100.1"), [] as [IpAddr; 0]);
        assert_eq!(announced(&["2001:db8::1"], "198.51.100.1").len(), 1);
    }

    #[test]
    fn announced_addresses_are_limited() {
        let many: Vec<IpAddr> = (0..100).map(|last| [192, 0, 2, last].into()).collect();
        assert_eq!(addresses_to_announce(&many, [198, 51, 100, 1].into()), many[..MAX_ANNOUNCED]);
    }

    #[test]
    fn link_local_addresses_keep_the_scope() {
        let like: SocketAddr = "[fe80::1%7]:9899".parse().unwrap();
        assert_eq!(
            socket_address_like("fe80::2".parse().unwrap(), like),
            "[fe80::2%7]:9899".parse().unwrap()
        );
        assert_eq!(
            socket_address_like("2001:db8::2".parse().unwrap(), like),
            "[2001:db8::2]:9899".parse().unwrap()
        );
    }
}
