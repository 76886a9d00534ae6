//! The interfaces as netdev lists them: getifaddrs(3) with an ioctl for each address on FreeBSD and macOS,
//! `GetAdaptersAddresses` on Windows.

use super::InterfaceAddress;
use crate::interfaces::readable_name;

pub(super) fn interface_addresses() -> impl Iterator<Item = InterfaceAddress> {
    netdev::get_interfaces().into_iter().filter(netdev::Interface::is_up).flat_map(|interface| {
        let name = readable_name(&interface);
        let v4 = interface.ipv4.iter().map(|net| InterfaceAddress {
            interface: name.to_owned(),
            address: net.addr().into(),
            prefix_len: net.prefix_len(),
            is_deprecated: false,
            is_tentative: false,
        });
        // The flags are in the order of the addresses.
        let flags = interface.ipv6_addr_flags.iter().map(Some).chain(std::iter::repeat(None));
        let v6 = interface.ipv6.iter().zip(flags).map(|(net, flags)| InterfaceAddress {
            interface: name.to_owned(),
            address: net.addr().into(),
            prefix_len: net.prefix_len(),
            is_deprecated: flags.is_some_and(|flags| flags.deprecated),
            is_tentative: flags.is_some_and(|flags| flags.tentative || flags.duplicated),
        });
        v4.chain(v6).collect::<Vec<_>>()
    })
}
