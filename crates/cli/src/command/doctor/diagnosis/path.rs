//! The path to the host, the clock, and the memory.

use eyas::race::candidate::{AddressFamily, Security};
use eyas::race::evidence::{EvidenceLevel, FailureCause};

use super::super::findings::{
    AttemptFinding, AttemptResult, DoctorFindings, HostFindings, MemoryFinding, MemoryRows,
    PacketFinding, PortalAnswer, PortalFinding,
};
use super::super::topic::TopicVerdict;
use super::NO_HOST;
use crate::terminal::{counted, time};

/// The size of packets that every path of IPv6 has to carry (RFC 8200 §5), in bytes.
const MIN_PACKET: u32 = 1280;
/// The smallest datagram of QUIC (RFC 9000 §14), in bytes.
const QUIC_MIN: u16 = 1200;
/// The difference between two clocks that is still harmless, in seconds. A `Date` has whole seconds, and is up to a
/// round trip old.
const CLOCK_TOLERANCE: u64 = 60;

/// Returns the verdict about the size of packets.
pub(super) fn mtu(findings: &DoctorFindings) -> TopicVerdict {
    let Some(host) = &findings.host else { return TopicVerdict::unknown(NO_HOST) };
    if let Some(attempt) = host.attempts_of(is_stalled).first() {
        return TopicVerdict::broken(
            format!(
                "{} accepts TCP, and no answer to TLS arrives: larger packets may be lost",
                attempt.address
            ),
            "set the MTU of this machine's interface to 1280 and try again; if that helps, tell \
             the network's operator that ICMP errors about packet sizes do not arrive",
        );
    }
    let Some(packets) = host.packets else {
        return TopicVerdict::unknown("only a connection shows it, and there is none");
    };
    let size = size(packets);
    let is_searched =
        packets.datagram.is_none_or(|datagram| datagram > QUIC_MIN) || packets.lost_probes > 0;
    match size {
        None => TopicVerdict::unknown("this transport does not tell"),
        Some(size) if !is_searched => {
            TopicVerdict::unknown(format!("at least {size} bytes; there was no time for more"))
        }
        Some(size) if size < MIN_PACKET => TopicVerdict::broken(
            format!("packets larger than {size} bytes do not arrive"),
            "every path has to carry 1280 bytes for IPv6 (RFC 8200): look for a tunnel or VPN with \
             a smaller MTU",
        ),
        Some(size) if packets.lost_probes > 0 => {
            TopicVerdict::good(format!("packets of {size} bytes arrive, larger ones do not"))
        }
        Some(size) => TopicVerdict::good(format!("packets of {size} bytes arrive")),
    }
}

/// Returns whether a connection was made and TLS over it then got no answer.
fn is_stalled(attempt: &AttemptFinding) -> bool {
    let is_silent = matches!(
        attempt.outcome,
        AttemptResult::Failed {
            cause: FailureCause::Silent | FailureCause::Deadline,
            reached: EvidenceLevel::Transport,
            ..
        }
    );
    is_silent && attempt.security == Security::Tls && !attempt.transport.has_streams()
}

/// Returns the size of the packets, with their headers.
fn size(packets: PacketFinding) -> Option<u32> {
    let ip = match packets.family {
        AddressFamily::V4 => 20,
        AddressFamily::V6 => 40,
    };
    match (packets.datagram, packets.segment) {
        (Some(datagram), _) => Some(u32::from(datagram).saturating_add(ip + 8)),
        (None, Some(segment)) => Some(segment.saturating_add(ip + 20)),
        (None, None) => None,
    }
}

/// Returns the verdict about a captive portal.
pub(super) fn portal(findings: &DoctorFindings) -> TopicVerdict {
    let Some(PortalFinding { host, is_named, answer }) = &findings.portal else {
        return TopicVerdict::unknown(
            "--portal-url URL tests for one, with an http:// URL that answers 204",
        );
    };
    let log_in = "the network wants you to log in: open any http:// page in a browser";
    match answer {
        PortalAnswer::Nothing => {
            TopicVerdict::unknown(format!("{host} does not answer without TLS"))
        }
        // RFC 6585 §6.
        PortalAnswer::Response { status: 511, .. } => {
            TopicVerdict::broken(format!("{host} answers 511 in the place of the host"), log_in)
        }
        PortalAnswer::Response { status: 204, .. } if *is_named => {
            TopicVerdict::good(format!("none: {host} answers 204, as it has to"))
        }
        PortalAnswer::Response { status, .. } if *is_named => {
            TopicVerdict::broken(format!("{host} answers {status} instead of 204"), log_in)
        }
        PortalAnswer::Response { redirects_to: Some(other), .. } if !is_same_site(host, other) => {
            TopicVerdict::unknown(format!(
                "{host} redirects to {other}: if that is not its own, it is a portal"
            ))
        }
        PortalAnswer::Response { status, .. } => {
            TopicVerdict::good(format!("none to be seen: {host} answers {status} itself"))
        }
    }
}

/// Returns whether one of two hosts is the other, or below it.
fn is_same_site(one: &str, other: &str) -> bool {
    let is_below = |name: &str, above: &str| {
        name.strip_suffix(above).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    is_below(&one, &other) || is_below(&other, &one)
}

/// Returns the verdict about the clock.
pub(super) fn clock(findings: &DoctorFindings) -> TopicVerdict {
    let Some(host) = &findings.host else { return TopicVerdict::unknown(NO_HOST) };
    let Some(ahead) = host.clock_ahead else {
        return TopicVerdict::unknown("the host has not told the time");
    };
    let by = ahead.unsigned_abs();
    if by <= CLOCK_TOLERANCE {
        return TopicVerdict::good(format!("within {CLOCK_TOLERANCE} s of the host's"));
    }
    let by = time(std::time::Duration::from_secs(by));
    let side = if ahead > 0 { "behind" } else { "ahead of" };
    TopicVerdict::broken(
        format!("this machine's is {by} {side} the host's"),
        "set it, and have it synchronised (timedatectl set-ntp true): certificates depend on it. \
         If it is right, the host's is wrong",
    )
}

/// Returns the verdict about the memory.
pub(super) fn memory(findings: &DoctorFindings) -> TopicVerdict {
    let rows = match &findings.memory {
        MemoryFinding::Disabled => return TopicVerdict::unknown("not read: --memory none"),
        MemoryFinding::Unusable(why) => {
            return TopicVerdict::broken(
                why.clone(),
                "is the file writable by you? --memory FILE chooses another",
            );
        }
        MemoryFinding::Known(rows) => rows,
    };
    let mut text = format!("{} about this network", counted(rows.on_network as u64, "row"));
    if let Some(host) = &findings.host {
        text.push_str(&format!(", {} of the host", rows.of_host.len()));
        let contradicted = contradictions(rows, host);
        if !contradicted.is_empty() {
            text.push_str(&format!("; outdated, and corrected now: {}", contradicted.join(", ")));
        }
    }
    if !rows.swallowed.is_empty() {
        text.push_str(&format!("; remembered to be swallowed: {}", rows.swallowed.join(", ")));
    }
    TopicVerdict::good(text)
}

/// Returns what was remembered and is otherwise now.
fn contradictions(rows: &MemoryRows, host: &HostFindings) -> Vec<String> {
    let attempts = host.attempts.iter().flatten();
    let contradicted = attempts.filter_map(|attempt| {
        let row = rows.of_host.iter().find(|row| {
            (row.transport, row.security, row.address)
                == (attempt.transport, attempt.security, attempt.address)
        })?;
        let what = format!("{} to {}", attempt.transport, attempt.address);
        match (row.worked, attempt.outcome) {
            (false, AttemptResult::Ready(_)) => Some(format!("{what} works again")),
            (true, AttemptResult::Failed { .. }) => Some(format!("{what} works no more")),
            _ => None,
        }
    });
    contradicted.collect()
}
