//! Port numbers for tests that need one before they bind it: to pass it to a process, to use it
//! over both TCP and UDP, to bind it again, or to be sure that nothing listens there.
//!
//! An ephemeral port that was closed may be assigned to any other socket, in this process or
//! another. The numbers from here lie outside of the kernel's ephemeral range, and are reserved for
//! this process until it ends.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The default ephemeral range of the kernel (Linux, `ip-sysctl`).
const DEFAULT_RANGE: (u16, u16) = (32_768, 60_999);
/// The lowest port used; below are the well-known ports and those of many daemons.
const LOWEST: u16 = 10_000;
/// The distance between the first ports tried by processes with consecutive identifiers.
const STRIDE: usize = 64;

/// Returns a port number that is free over TCP and UDP at every address, and that no other test
/// gets.
pub(crate) fn own_port() -> u16 {
    static TRIED: AtomicUsize = AtomicUsize::new(0);
    let ports = outside_of_ephemeral_range();
    let begin = std::process::id() as usize * STRIDE;
    for _ in 0..ports.len() {
        let at = (begin + TRIED.fetch_add(1, Ordering::Relaxed)) % ports.len();
        let port = ports.start() + u16::try_from(at).expect("below the number of ports");
        if claim(port) && is_free(port) {
            return port;
        }
    }
    panic!("none of the ports {ports:?} is free");
}

fn outside_of_ephemeral_range() -> RangeInclusive<u16> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let numbers = text.iter().flat_map(|text| text.split_whitespace());
    let numbers: Vec<u16> = numbers.filter_map(|number| number.parse().ok()).collect();
    let (first, last) = match numbers[..] {
        [first, last] => (first, last),
        _ => DEFAULT_RANGE,
    };
    let (below, above) = (first.saturating_sub(LOWEST), u16::MAX - last);
    if below >= above { LOWEST..=first.saturating_sub(1) } else { last + 1..=u16::MAX }
}

/// Returns whether the port is free. A family that does not exist here, as IPv6 on some machines,
/// counts as free.
fn is_free(port: u16) -> bool {
    let anywhere: [SocketAddr; 2] =
        [(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()];
    let is_taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    anywhere.iter().all(|address| {
        !TcpListener::bind(address).is_err_and(|error| is_taken(&error))
            && !UdpSocket::bind(address).is_err_and(|error| is_taken(&error))
    })
}

/// Reserves a port for this process among the tests of this machine, until it ends: an abstract
/// socket name can be bound once per network namespace.
#[cfg(target_os = "linux")]
fn claim(port: u16) -> bool {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    let name = SocketAddr::from_abstract_name(format!("eyas-test-port-{port}")).expect("a name");
    match UnixListener::bind_addr(&name) {
        Ok(held) => {
            std::mem::forget(held);
            true
        }
        Err(_) => false,
    }
}

/// Without abstract names, the different first ports of the processes must suffice.
#[cfg(not(target_os = "linux"))]
fn claim(_port: u16) -> bool {
    true
}
