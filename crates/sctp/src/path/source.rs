//! From which address packets of a path leave.
//!
//! Only the routing knows which address of the host belongs to the way to a peer, so no address is
//! chosen here by guess: packets leave from where the routing sends them, until the answer to a
//! heartbeat shows which address that was. That one is kept while it exists and the path works.

use core::net::{IpAddr, Ipv6Addr};

use super::{Path, Paths};

impl Path {
    /// Whether packets to the path's peer may come from `local` at all: the same family, and an
    /// address of the same reach.
    #[must_use]
    pub fn suits(&self, local: IpAddr) -> bool {
        let remote = self.remote.ip();
        remote.is_ipv4() == local.is_ipv4() && reach(remote) == reach(local)
    }

    /// Sends from `local` for good, if it suits. Says whether it does.
    pub fn set_local(&mut self, local: IpAddr) -> bool {
        let suits = self.suits(local);
        if suits {
            self.local = Some(local);
            self.local_is_learnt = false;
        }
        suits
    }

    /// The peer answered to `local`, so that is where the routing sends from.
    pub(super) fn learn_local(&mut self, local: Option<IpAddr>) {
        if self.local.is_none()
            && let Some(local) = local.filter(|local| self.suits(*local))
        {
            self.local = Some(local);
            self.local_is_learnt = true;
        }
    }

    /// Leaves the choice to the routing again, unless the user made it.
    pub(super) fn forget_local(&mut self) {
        if core::mem::take(&mut self.local_is_learnt) {
            self.local = None;
        }
    }
}

impl Paths {
    /// These are the addresses of this host that have a route. Paths whose address is gone leave
    /// the choice to the routing and are tried at once. Loopback addresses stay: a host has more of
    /// them than it lists.
    pub fn set_local_addresses(&mut self, addresses: &[IpAddr]) {
        for path in self.iter_mut() {
            if path
                .local
                .is_some_and(|local| !addresses.contains(&local) && reach(local) != Reach::Host)
            {
                path.local = None;
                path.local_is_learnt = false;
                path.beat.hasten();
            }
        }
        self.wake();
    }
}

/// How far an address reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Host,
    Link,
    Beyond,
}

fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(four) if four.is_loopback() => Reach::Host,
        IpAddr::V4(four) if four.is_link_local() => Reach::Link,
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Reach::Host,
        IpAddr::V6(six) if six.is_unicast_link_local() => Reach::Link,
        IpAddr::V4(_) | IpAddr::V6(_) => Reach::Beyond,
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

    fn suits(remote: &str, local: &str) -> bool {
        to(remote).suits(local.parse().unwrap())
    }

    #[test]
    fn a_source_has_the_family_and_the_reach_of_its_peer() {
        assert!(suits("192.0.2.1:0", "10.0.0.1"));
        assert!(!suits("192.0.2.1:0", "2001:db8::1"));
        assert!(!suits("192.0.2.1:0", "127.0.0.1"));
        assert!(!suits("192.0.2.1:0", "169.254.0.1"));
        assert!(suits("127.0.0.2:0", "127.0.0.1"));
        assert!(suits("[fe80::1]:0", "fe80::2"));
        assert!(!suits("[fe80::1]:0", "2001:db8::1"));
        assert!(!suits("[2001:db8::1]:0", "::1"));
    }

    #[test]
    fn the_routing_chooses_until_an_answer_shows_what_it_chose() {
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
    fn what_the_user_chose_is_kept_while_it_exists() {
        let config = AssociationConfig::default();
        let mut paths = Paths::new("192.0.2.1:0".parse().unwrap(), None, &config, [0; 32]);
        let mine: IpAddr = "10.0.0.1".parse().unwrap();
        let path = paths.get_mut(PathId(0)).unwrap();
        assert!(path.set_local(mine));
        path.forget_local();
        assert_eq!(path.local, Some(mine));
        paths.set_local_addresses(&[mine]);
        assert_eq!(paths.get(PathId(0)).unwrap().local, Some(mine));
        paths.set_local_addresses(&["10.0.0.9".parse().unwrap()]);
        assert_eq!(paths.get(PathId(0)).unwrap().local, None);
    }

    #[test]
    fn loopback_stays() {
        let config = AssociationConfig::default();
        let mut paths = Paths::new("127.0.0.1:0".parse().unwrap(), None, &config, [0; 32]);
        let mine: IpAddr = "127.0.0.2".parse().unwrap();
        assert!(paths.get_mut(PathId(0)).unwrap().set_local(mine));
        paths.set_local_addresses(&["10.0.0.9".parse().unwrap()]);
        assert_eq!(paths.get(PathId(0)).unwrap().local, Some(mine));
    }
}
