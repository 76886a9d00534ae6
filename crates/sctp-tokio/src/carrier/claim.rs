//! Claims the ports of listeners over raw IP. Every raw socket receives every packet of protocol
//! 132, so the kernel sees no conflict if two processes listen on one port, and both would answer.
//! So each listener claims its port with an abstract Unix socket: its name is unique in a network
//! namespace, and it disappears with its process.
//!
//! Programs that use SCTP over raw sockets without eyas claim nothing and cannot be detected.

use std::fs;
use std::io;
use std::net::IpAddr;
#[cfg(target_os = "android")]
use std::os::android::net::SocketAddrExt;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The prefix of the names of claims; port and address follow.
const NAME: &str = "eyas-sctp-132/";
/// Where the kernel lists the Unix sockets of this network namespace.
const TABLE: &str = "/proc/thread-self/net/unix";

/// The claim to a port over raw IP, until it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    /// Held only for its name; nothing is ever sent to it.
    _socket: UnixDatagram,
}

impl Claim {
    /// Claims `port` at `ip`.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if it is claimed, there or at all addresses of the family.
    pub(crate) fn acquire(ip: IpAddr, port: u16) -> io::Result<Self> {
        let taken = || {
            let what = format!("another listener already uses port {port} for SCTP over IP");
            io::Error::new(io::ErrorKind::AddrInUse, what)
        };
        let name = SocketAddr::from_abstract_name(format!("{NAME}{port}/{ip}"))?;
        let socket = UnixDatagram::bind_addr(&name).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => taken(),
            _ => error,
        })?;
        // If the table cannot be read, only an identical name is detected.
        let table = fs::read_to_string(TABLE).unwrap_or_default();
        if table.lines().filter_map(claimed).any(|other| overlaps(other, (ip, port))) {
            return Err(taken());
        }
        Ok(Self { _socket: socket })
    }
}

/// Parses the address and port that a line of the table claims.
fn claimed(line: &str) -> Option<(IpAddr, u16)> {
    let (_, name) = line.split_once(NAME)?;
    let (port, ip) = name.trim_end().split_once('/')?;
    Some((ip.parse().ok()?, port.parse().ok()?))
}

/// Returns whether one of two different claims is for all addresses of a family and the other for
/// one of them.
fn overlaps((ip, port): (IpAddr, u16), (other, other_port): (IpAddr, u16)) -> bool {
    port == other_port
        && ip != other
        && ip.is_ipv4() == other.is_ipv4()
        && (ip.is_unspecified() || other.is_unspecified())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const ALL: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    const ONE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const ALL_V6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

    fn is_refused(ip: IpAddr, port: u16) -> bool {
        Claim::acquire(ip, port).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    }

    #[test]
    fn a_port_has_one_listener() {
        // Ports that no other test claims, whatever their process.
        let port = 1 + (std::process::id() % 30_000) as u16;
        let first = Claim::acquire(ONE, port).unwrap();
        assert!(is_refused(ONE, port));
        assert!(is_refused(ALL, port), "all addresses include this one");
        let others = [
            Claim::acquire(OTHER, port),
            Claim::acquire(ALL_V6, port),
            Claim::acquire(ONE, port + 1),
        ];
        assert!(others.iter().all(Result::is_ok));
        drop((first, others));
        let all = Claim::acquire(ALL, port).unwrap();
        assert!(is_refused(ONE, port));
        drop(all);
        assert!(!is_refused(ONE, port));
    }

    #[test]
    fn lines_of_the_table_are_parsed() {
        let line =
            "0000000000000000: 00000002 00000000 00000000 0002 01 4711 @eyas-sctp-132/80/::1";
        assert_eq!(claimed(line), Some((Ipv6Addr::LOCALHOST.into(), 80)));
        assert_eq!(claimed("0000000000000000: 00000002 00000000 @/tmp/x"), None);
        assert_eq!(claimed("@eyas-sctp-132/many/::1"), None);
    }
}
