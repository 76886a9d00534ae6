//! The addresses of the name under test, and what is behind them on the server's host.
//!
//! All of them differ from the client's addresses in the same highest bit, so that no rule about
//! common prefixes (RFC 6724 §5, rule 9) prefers one to another.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Stdio;

use eyas_emulator::NetworkNamespace;

use crate::live::LiveError;
use crate::situation::live::HostBehaviour;

/// Returns the address of a family with this number.
pub(super) fn address(ipv6: bool, number: u8) -> IpAddr {
    if ipv6 {
        Ipv6Addr::new(0x2001, 2, 0, 0xffff, 0, 0, 0, u16::from(number)).into()
    } else {
        Ipv4Addr::new(198, 19, 0, number).into()
    }
}

/// Returns the addresses of a family, in order, each with what is behind it.
pub(super) fn of_family(ipv6: bool, behind: &[HostBehaviour]) -> Vec<(IpAddr, HostBehaviour)> {
    (1..=u8::MAX).zip(behind).map(|(number, behind)| (address(ipv6, number), *behind)).collect()
}

/// Returns a readable name of an address.
pub(super) fn label(ip: IpAddr) -> String {
    let number = match ip {
        IpAddr::V4(ip) => u16::from(ip.octets()[3]),
        IpAddr::V6(ip) => ip.segments()[7],
    };
    let family = if ip.is_ipv6() { "IPv6" } else { "IPv4" };
    match ip == address(ip.is_ipv6(), number as u8) {
        true => format!("{family} no. {number}"),
        false => ip.to_string(),
    }
}

/// Assigns these addresses to the server's host, and adds routes that swallow or refuse the others.
pub(super) fn configure(
    host: &NetworkNamespace,
    all: &[(IpAddr, HostBehaviour)],
) -> Result<(), LiveError> {
    for ipv6 in [false, true] {
        let lines = commands(all, ipv6);
        if !lines.is_empty() {
            run_ip(host, if ipv6 { "-6" } else { "-4" }, &lines)?;
        }
    }
    if all.iter().any(|(_, behind)| *behind == HostBehaviour::Prohibits) {
        // Only a router answers for addresses other than its own, and it must answer every time.
        host.run_in(|| {
            for (key, value) in [
                ("ipv4/conf/all/forwarding", "1"),
                ("ipv6/conf/all/forwarding", "1"),
                ("ipv4/icmp_ratelimit", "0"),
                ("ipv6/icmp/ratelimit", "0"),
            ] {
                // Without IPv6 in the kernel there is nothing to configure.
                let _ = std::fs::write(format!("/proc/sys/net/{key}"), value);
            }
        })?;
    }
    Ok(())
}

/// Returns the lines for `ip -batch` for one family.
fn commands(all: &[(IpAddr, HostBehaviour)], ipv6: bool) -> String {
    let (length, more) = if ipv6 { (128, " nodad") } else { (32, "") };
    let line = |(ip, behind): &(IpAddr, HostBehaviour)| match behind {
        HostBehaviour::Serves | HostBehaviour::Refuses | HostBehaviour::Silent => {
            format!("addr add {ip}/{length} dev lo{more}\n")
        }
        HostBehaviour::Swallows => format!("route add blackhole {ip}/{length}\n"),
        HostBehaviour::Prohibits => format!("route add prohibit {ip}/{length}\n"),
    };
    all.iter().filter(|(ip, _)| ip.is_ipv6() == ipv6).map(line).collect()
}

fn run_ip(host: &NetworkNamespace, family: &str, lines: &str) -> Result<(), LiveError> {
    let failed = |cause: &dyn std::fmt::Display| LiveError::Testbed(format!("ip -batch: {cause}"));
    let mut ip = host
        .command("ip")
        .args([family, "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|cause| failed(&cause))?;
    if let Some(mut input) = ip.stdin.take() {
        input.write_all(lines.as_bytes()).map_err(|cause| failed(&cause))?;
    }
    let output = ip.wait_with_output().map_err(|cause| failed(&cause))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(&String::from_utf8_lossy(&output.stderr).trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_shares_more_with_the_client_than_another() {
        let common = |own: IpAddr, other: IpAddr| match (own, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            _ => panic!("two families"),
        };
        // Those of the emulator's first and second path.
        for own in ["198.18.1.1", "2001:2:0:2::1"] {
            let own: IpAddr = own.parse().unwrap();
            let first = common(own, address(own.is_ipv6(), 1));
            assert!((1..=20).all(|number| common(own, address(own.is_ipv6(), number)) == first));
        }
    }

    #[test]
    fn each_kind_has_its_line() {
        let all = of_family(
            true,
            &[HostBehaviour::Serves, HostBehaviour::Swallows, HostBehaviour::Prohibits],
        );
        let wanted = "addr add 2001:2:0:ffff::1/128 dev lo nodad\n\
                      route add blackhole 2001:2:0:ffff::2/128\n\
                      route add prohibit 2001:2:0:ffff::3/128\n";
        assert_eq!(commands(&all, true), wanted);
        assert_eq!(commands(&all, false), "");
        assert_eq!(label(all[1].0), "IPv6 no. 2");
        assert_eq!(label("198.18.1.2".parse().unwrap()), "198.18.1.2");
    }
}
