//! Maps ICMP messages to SCTP (RFC 9260 §10), including the quoted part of the packet, by which the
//! core recognises its own packets.

use std::net::SocketAddr;

use eyas_host::icmp::{IcmpCause, IcmpReport};
use eyas_sctp::io::{Input, Unreachable};

/// Converts a report to an input of the core. The address of a raw socket has no port.
pub(super) fn input(report: IcmpReport, is_udp: bool) -> Input {
    let by_own_firewall = report.is_by_own_firewall();
    let IcmpReport { remote, cause, quoted, .. } = report;
    let remote = if is_udp { remote } else { SocketAddr::new(remote.ip(), 0) };
    let reason = if by_own_firewall { Unreachable::Local } else { reason(cause) };
    Input::Unreachable { remote, reason, quoted }
}

fn reason(cause: IcmpCause) -> Unreachable {
    match cause {
        // Inside UDP, a closed port means that there is no SCTP (RFC 6951 §5.5).
        IcmpCause::PortUnreachable | IcmpCause::ProtocolUnreachable => Unreachable::Protocol,
        IcmpCause::NoRoute | IcmpCause::Prohibited | IcmpCause::AddressUnreachable => {
            Unreachable::Route
        }
        IcmpCause::TooBig(mtu) => Unreachable::TooBig(mtu),
    }
}
