//! Port numbers for tests that need one before they bind it: to tell it to a process, to have it
//! over TCP and UDP at once, to come back to it, or to be sure that nobody listens there.
//!
//! A number that the kernel gave out and got back is anybody's: the next socket without a number
//! of its own may have it, in this process or another. The numbers from here lie outside of the
//! range from which the kernel gives, and belong to this process until it ends.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where the kernel's range begins and ends unless it says otherwise (Linux, `ip-sysctl`).
const USUAL_RANGE: (u16, u16) = (32_768, 60_999);
/// Below are the well-known ports, and many that daemons have.
const LOWEST: u16 = 10_000;
/// How far apart two processes with neighbouring numbers begin to look.
const STRIDE: usize = 64;

/// A port number that is free over TCP and UDP at every address, and that no other test gets.
pub(crate) fn own_port() -> u16 {
    static LOOKED_AT: AtomicUsize = AtomicUsize::new(0);
    let ports = outside_of_the_kernels_range();
    let begin = std::process::id() as usize * STRIDE;
    for _ in 0..ports.len() {
        let at = (begin + LOOKED_AT.fetch_add(1, Ordering::Relaxed)) % ports.len();
        let port = ports.start() + u16::try_from(at).expect("below the number of ports");
        if claim(port) && is_free(port) {
            return port;
        }
    }
    panic!("none of the ports {ports:?} is free");
}

fn outside_of_the_kernels_range() -> RangeInclusive<u16> {
    let said = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let numbers = said.iter().flat_map(|said| said.split_whitespace());
    let numbers: Vec<u16> = numbers.filter_map(|number| number.parse().ok()).collect();
    let (first, last) = match numbers[..] {
        [first, last] => (first, last),
        _ => USUAL_RANGE,
    };
    let (below, above) = (first.saturating_sub(LOWEST), u16::MAX - last);
    if below >= above { LOWEST..=first.saturating_sub(1) } else { last + 1..=u16::MAX }
}

/// Whether no socket has it. One that does not exist here, as over IPv6 on some machines, has not.
fn is_free(port: u16) -> bool {
    let anywhere: [SocketAddr; 2] =
        [(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()];
    let is_taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
    anywhere.iter().all(|address| {
        !TcpListener::bind(address).is_err_and(|error| is_taken(&error))
            && !UdpSocket::bind(address).is_err_and(|error| is_taken(&error))
    })
}

/// Makes a port this process's own among the tests of this machine, until it ends: a name can be
/// bound once in each network namespace.
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

/// Without such names, where a process begins to look has to be enough.
#[cfg(not(target_os = "linux"))]
fn claim(_port: u16) -> bool {
    true
}
