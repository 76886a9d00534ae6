//! What ICMP means to SCTP (RFC 9260 §10): with what the message quotes of the packet, by which the
//! core knows its own.

use std::net::SocketAddr;

use eyas_sctp::io::{Input, Unreachable};

use crate::icmp::{Report, Said};

/// What a report tells the core; a raw socket knows no ports.
pub(super) fn input(report: Report, is_udp: bool) -> Input {
    let Report { remote, said, quoted, .. } = report;
    let remote = if is_udp { remote } else { SocketAddr::new(remote.ip(), 0) };
    Input::Unreachable { remote, reason: reason(said), quoted }
}

fn reason(said: Said) -> Unreachable {
    match said {
        // Inside UDP nobody speaks SCTP where nobody listens at the port (RFC 6951 §5.5).
        Said::PortUnreachable | Said::ProtocolUnreachable => Unreachable::Protocol,
        Said::NoRoute | Said::Prohibited | Said::AddressUnreachable => Unreachable::Route,
        Said::TooBig(mtu) => Unreachable::TooBig(mtu),
    }
}
