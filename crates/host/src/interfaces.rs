//! The interfaces of this host by name and by number.

use std::net::IpAddr;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

/// Returns the name of the interface with this number, if there is one.
pub fn name(index: u32) -> Option<String> {
    platform::name(index)
}

/// Returns the number of the interface with this name, if there is one.
pub fn index(name: &str) -> Option<u32> {
    platform::index(name)
}

/// Returns the addresses of the interface with this name; none if there is no such interface.
pub fn addresses(name: &str) -> Vec<IpAddr> {
    platform::addresses(name)
}

/// Returns the name under which users know an interface: on Windows its own name is a GUID.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn readable_name(interface: &netdev::Interface) -> &str {
    interface.friendly_name.as_deref().filter(|_| cfg!(windows)).unwrap_or(&interface.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_of_loopback_has_a_name_and_a_number() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let found = (1..64).filter_map(name).find(|name| addresses(name).contains(&loopback));
        let found = found.expect("every host has one");
        assert_eq!(index(&found).and_then(name), Some(found));
        assert_eq!((index("nosuch0"), name(u32::MAX)), (None, None));
        assert!(addresses("nosuch0").is_empty());
    }
}
