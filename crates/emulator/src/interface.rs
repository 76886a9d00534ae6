//! An interface of this host, in the network namespace of the calling thread.

use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use super::error::EmulatorError;
use super::kernel::{self, TunKind};
use super::namespace::{disable_autoconfiguration, run_ip};

pub use super::kernel::LONGEST_NAME as MAX_NAME;

/// An interface that this process reads packets from and writes packets to.
#[derive(Clone, Debug)]
pub struct InterfaceSetup {
    /// The name: up to [`MAX_NAME`] bytes.
    pub name: String,
    /// The addresses with their prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Networks to route to it.
    pub routes: Vec<(IpAddr, u8)>,
    /// The MTU in bytes.
    pub mtu: u16,
}

impl InterfaceSetup {
    /// Creates the interface and returns its device: IP packets without a header, non-blocking. The
    /// interface exists as long as the device is open, and no longer than this program.
    ///
    /// # Errors
    /// If there is an interface with this name, this user may not create one, or the kernel refuses
    /// an address or a route.
    pub fn create(&self) -> Result<OwnedFd, EmulatorError> {
        let name = &self.name;
        // The name becomes part of a line that `ip` parses, so it must not contain spaces.
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if !name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
            || !name.chars().all(is_word)
        {
            return Err(EmulatorError::InvalidName(name.clone()));
        }
        let device = kernel::open_tun(name, TunKind::Plain).map_err(|cause| self.refused(cause))?;
        disable_autoconfiguration(name);
        let host = "tunnel";
        run_ip(host, "-4", &format!("link set dev {name} mtu {} multicast off up\n", self.mtu))?;
        for (family, ipv6) in [("-4", false), ("-6", true)] {
            let lines = self.lines(ipv6);
            if !lines.is_empty() {
                run_ip(host, family, &lines)?;
            }
        }
        Ok(device)
    }

    /// Returns the lines for `ip -batch` for one address family.
    fn lines(&self, ipv6: bool) -> String {
        let (name, mut lines) = (&self.name, String::new());
        let of_family = |networks: &[(IpAddr, u8)]| {
            let networks = networks.iter().filter(|(ip, _)| ip.is_ipv6() == ipv6);
            networks.copied().collect::<Vec<_>>()
        };
        // No other host exists that could have the same address.
        let flags = if ipv6 { " nodad" } else { "" };
        for (ip, bits) in of_family(&self.addresses) {
            let _ = writeln!(lines, "addr add {ip}/{bits} dev {name}{flags}");
        }
        for (ip, bits) in of_family(&self.routes) {
            let _ = writeln!(lines, "route add {ip}/{bits} dev {name}");
        }
        lines
    }

    fn refused(&self, cause: io::Error) -> EmulatorError {
        let name = self.name.clone();
        match cause.kind() {
            io::ErrorKind::ResourceBusy => EmulatorError::AlreadyExists(name),
            io::ErrorKind::InvalidInput => EmulatorError::InvalidName(name),
            io::ErrorKind::PermissionDenied => EmulatorError::InterfaceNotAllowed { name, cause },
            _ => EmulatorError::Tun { name, cause },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_its_own_lines() {
        let network = |text: &str, bits| (text.parse().expect("an address"), bits);
        let setup = InterfaceSetup {
            name: "eyas0".to_owned(),
            addresses: vec![network("10.9.0.2", 24), network("fd00:9::2", 64)],
            routes: vec![network("192.168.7.0", 24)],
            mtu: 1280,
        };
        assert_eq!(
            setup.lines(false),
            "addr add 10.9.0.2/24 dev eyas0\nroute add 192.168.7.0/24 dev eyas0\n"
        );
        assert_eq!(setup.lines(true), "addr add fd00:9::2/64 dev eyas0 nodad\n");
    }

    #[test]
    fn kernel_errors_are_explained() {
        let setup = InterfaceSetup {
            name: "eyas0".to_owned(),
            addresses: Vec::new(),
            routes: Vec::new(),
            mtu: 1280,
        };
        let message = |errno: rustix::io::Errno| setup.refused(errno.into()).to_string();
        assert!(message(rustix::io::Errno::BUSY).contains("the interface eyas0 exists already"));
        assert!(message(rustix::io::Errno::PERM).contains("CAP_NET_ADMIN"));
        assert!(message(rustix::io::Errno::NOENT).contains("module tun"));
        for name in ["", "a b", "eyas%d", "..", "-x", "a\naddr", "of-sixteen-bytes"] {
            let setup = InterfaceSetup { name: name.to_owned(), ..setup.clone() };
            let refused = setup.create().map(drop);
            assert!(
                matches!(
                    refused,
                    Err(EmulatorError::InvalidName(_)) | Err(EmulatorError::Tun { .. })
                ),
                "{name:?}"
            );
        }
    }
}
