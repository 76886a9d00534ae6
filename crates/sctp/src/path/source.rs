//! The source address of a path's packets.
//!
//! Only routing knows which of the host's addresses is used for a peer, so none is guessed here:
//! routing chooses until the response to a heartbeat shows which address that was. That one is used
//! while it exists and the path works.

use core::net::{IpAddr, Ipv6Addr};

use super::{AssociationPaths, Path, PathState};

impl Path {
    /// Returns whether packets to the path's peer may come from `local` at all: it needs the same
    /// family and the same scope.
    #[must_use]
    pub fn is_suitable(&self, local: IpAddr) -> bool {
        let remote = self.remote.ip();
        remote.is_ipv4() == local.is_ipv4() && scope(remote) == scope(local)
    }

    /// Uses `local` permanently, if it is suitable. Returns whether it is.
    pub fn set_local(&mut self, local: IpAddr) -> bool {
        let is_suitable = self.is_suitable(local);
        if is_suitable {
            self.local = Some(local);
            self.is_local_learnt = false;
        }
        is_suitable
    }

    /// Records the address that the peer responded to, which is the one that routing chose.
    pub(super) fn learn_local(&mut self, local: Option<IpAddr>) {
        if self.local.is_none()
            && let Some(local) = local.filter(|local| self.is_suitable(*local))
        {
            self.local = Some(local);
            self.is_local_learnt = true;
        }
    }

    /// Leaves the choice to routing again, unless the user made it.
    pub(super) fn forget_local(&mut self) {
        if self.is_local_learnt {
            self.leave_local();
        }
    }

    fn leave_local(&mut self) {
        self.local = None;
        self.is_local_learnt = false;
    }
}

impl AssociationPaths {
    /// Sets the addresses of this host that have a route. Paths whose address was removed leave the
    /// choice to routing. These, and paths that have failed, are probed immediately: from another
    /// address they may work, and a probe that was sent while there was no route is not waited for.
    /// Loopback addresses are kept, as a host has more of them than it lists.
    pub fn set_local_addresses(&mut self, addresses: &[IpAddr]) {
        for path in self.iter_mut() {
            if path.local.is_some_and(|local| {
                !addresses.contains(&local) && scope(local) != AddressScope::Host
            }) {
                path.leave_local();
            }
            if path.local.is_none() || path.state() != PathState::Active {
                path.heartbeats.restart();
            }
        }
        self.wake();
    }

    /// Lets routing choose the source address of the paths that used `deleted`.
    pub fn stop_sending_from(&mut self, deleted: IpAddr) {
        for path in self.iter_mut().filter(|path| path.local == Some(deleted)) {
            path.leave_local();
            path.heartbeats.restart();
        }
        self.wake();
    }
}

/// The scope of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressScope {
    Host,
    Link,
    Beyond,
}

fn scope(address: IpAddr) -> AddressScope {
    match address {
        IpAddr::V4(four) if four.is_loopback() => AddressScope::Host,
        IpAddr::V4(four) if four.is_link_local() => AddressScope::Link,
        IpAddr::V6(Ipv6Addr::LOCALHOST) => AddressScope::Host,
        IpAddr::V6(ipv6) if ipv6.is_unicast_link_local() => AddressScope::Link,
        IpAddr::V4(_) | IpAddr::V6(_) => AddressScope::Beyond,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AssociationConfig;
    use crate::identifier::PathId;

    fn to(remote: &str) -> Path {
        let remote = remote.parse().unwrap();
        Path::new(PathId(0), remote, None, &AssociationConfig::default())
    }

    fn is_suitable(remote: &str, local: &str) -> bool {
        to(remote).is_suitable(local.parse().unwrap())
    }

    #[test]
    fn a_source_address_has_the_family_and_the_scope_of_the_peer() {
        assert!(is_suitable("192.0.2.1:0", "10.0.0.1"));
        assert!(!is_suitable("192.0.2.1:0", "2001:db8::1"));
        assert!(!is_suitable("192.0.2.1:0", "127.0.0.1"));
        assert!(!is_suitable("192.0.2.1:0", "169.254.0.1"));
        assert!(is_suitable("127.0.0.2:0", "127.0.0.1"));
        assert!(is_suitable("[fe80::1]:0", "fe80::2"));
        assert!(!is_suitable("[fe80::1]:0", "2001:db8::1"));
        assert!(!is_suitable("[2001:db8::1]:0", "::1"));
    }

    #[test]
    fn routing_chooses_until_a_response_shows_the_address() {
        let mut path = to("192.0.2.1:0");
        path.learn_local(None);
        path.learn_local(Some("2001:db8::1".parse().unwrap()));
        assert_eq!(path.local, None);
        let first: IpAddr = "10.0.0.1".parse().unwrap();
        path.learn_local(Some(first));
        path.learn_local(Some("10.0.0.2".parse().unwrap()));
        assert_eq!(path.local, Some(first));
        path.forget_local();
        assert_eq!(path.local, None);
    }

    #[test]
    fn an_address_set_by_the_user_is_kept_while_it_exists() {
        let config = AssociationConfig::default();
        let mut paths =
            AssociationPaths::new("192.0.2.1:0".parse().unwrap(), None, &config, [0; 32]);
        let own: IpAddr = "10.0.0.1".parse().unwrap();
        let path = paths.get_mut(PathId(0)).unwrap();
        assert!(path.set_local(own));
        path.forget_local();
        assert_eq!(path.local, Some(own));
        paths.set_local_addresses(&[own]);
        assert_eq!(paths.get(PathId(0)).unwrap().local, Some(own));
        paths.set_local_addresses(&["10.0.0.9".parse().unwrap()]);
        assert_eq!(paths.get(PathId(0)).unwrap().local, None);
    }

    #[test]
    fn loopback_addresses_are_kept() {
        let config = AssociationConfig::default();
        let mut paths =
            AssociationPaths::new("127.0.0.1:0".parse().unwrap(), None, &config, [0; 32]);
        let own: IpAddr = "127.0.0.2".parse().unwrap();
        assert!(paths.get_mut(PathId(0)).unwrap().set_local(own));
        paths.set_local_addresses(&["10.0.0.9".parse().unwrap()]);
        assert_eq!(paths.get(PathId(0)).unwrap().local, Some(own));
    }
}
