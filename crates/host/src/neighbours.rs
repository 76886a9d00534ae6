//! The hardware addresses of hosts on the link, as far as the kernel knows them.

use std::net::Ipv4Addr;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as platform;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use other as platform;

/// Returns the hardware address of a gateway on this interface; `None` if it is not known, as before a first packet was
/// sent there.
pub fn hardware_address(gateway: Ipv4Addr, interface: &str) -> Option<String> {
    platform::hardware_address(gateway, interface)
}

/// Finds a hardware address in a table like `/proc/net/arp`: address, type, flags, hardware address, mask, device.
pub fn parse(table: &str, gateway: Ipv4Addr, interface: &str) -> Option<String> {
    let gateway = gateway.to_string();
    table.lines().skip(1).find_map(|line| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_by_address_and_device() {
        let table = "IP address HW type Flags HW address Mask Device\n\
                     192.0.2.1 0x1 0x2 02:fc:00:00:00:05 * eth0\n\
                     192.0.2.2 0x1 0x0 00:00:00:00:00:00 * eth0";
        let find = |last, device| parse(table, [192, 0, 2, last].into(), device);
        assert_eq!(find(1, "eth0").as_deref(), Some("02:fc:00:00:00:05"));
        assert_eq!((find(1, "eth1"), find(2, "eth0"), find(3, "eth0")), (None, None, None));
    }
}
