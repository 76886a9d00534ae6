//! Which of the addresses that a peer lists are looked at (RFC 9260 §5.1.2, §11.2.4.1 of RFC 4960).
//!
//! A list is a wish that anybody can send: one with our own loopback address, with multicast or
//! with thousands of entries must not make us send there.

use alloc::vec::Vec;
use core::net::IpAddr;

use crate::counters::Counters;

/// Whether packets to `address` go to one host.
pub(crate) fn is_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !(v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast()),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_unicast(v4.into()),
            None => !(v6.is_unspecified() || v6.is_multicast()),
        },
    }
}

/// Whether `address` means something only on one host.
fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback(),
        IpAddr::V6(v6) => {
            v6.is_loopback() || v6.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
        }
    }
}

/// Whether `address` means something only on one link.
fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// Whether an address that the peer at `source` lists can be the same peer's. Addresses of smaller
/// scope than the one it wrote from are not believed (RFC 9260 §5.1.2 C, note on scoping).
pub(crate) fn is_plausible(listed: IpAddr, source: IpAddr) -> bool {
    is_unicast(listed)
        && (!is_loopback(listed) || is_loopback(source))
        && (!is_link_local(listed) || is_link_local(source) || is_loopback(source))
}

/// The addresses of `listed` that a peer which wrote from `source` may have, each once, at most
/// `limit` and without `source` itself. What is left out is counted.
pub(crate) fn sift(
    listed: impl Iterator<Item = IpAddr>,
    source: IpAddr,
    limit: usize,
    counters: &mut Counters,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sifted(listed: &[&str], source: &str, limit: usize) -> (Vec<IpAddr>, u64) {
        let mut counters = Counters::default();
        let listed = listed.iter().map(|text| text.parse().unwrap());
        let kept = sift(listed, source.parse().unwrap(), limit, &mut counters);
        (kept, counters.addresses_ignored)
    }

    #[test]
    fn what_is_no_host_is_left_out() {
        let listed = ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "::ffff:0.0.0.0"];
        assert_eq!(sifted(&listed, "192.0.2.1", 32), (alloc::vec![], 6));
    }

    #[test]
    fn loopback_is_believed_only_from_loopback() {
        let listed = ["127.0.0.2", "::1", "::ffff:127.0.0.1"];
        assert_eq!(sifted(&listed, "192.0.2.1", 32).1, 3);
        assert_eq!(sifted(&listed, "127.0.0.1", 32).0.len(), 3);
    }

    #[test]
    fn link_local_is_believed_only_from_the_link() {
        let listed = ["fe80::1", "169.254.0.1"];
        assert_eq!(sifted(&listed, "2001:db8::1", 32).1, 2);
        assert_eq!(sifted(&listed, "fe80::2", 32).1, 0);
    }

    #[test]
    fn there_is_a_most_and_none_counts_twice() {
        let listed = ["192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
        let (kept, ignored) = sifted(&listed, "192.0.2.1", 2);
        assert_eq!(kept.len(), 2);
        assert_eq!(ignored, 1);
    }
}
