//! Tests of the memory, by topic. `quic` and `tcp` create candidates; `worked`, `was_silent` and
//! `failed` create evidence about them.

use core::time::Duration;

use super::*;
use crate::candidate::{Candidate, Security, Transport};
use crate::evidence::{
    AttemptFailure, Evidence, EvidenceLevel, FailureCause, FailureDoubt, NetworkId, TrustContext,
};
use crate::target::TargetHost;

mod back_off;
mod designations;
mod inference;
mod long_hello;
mod loss;
mod rows;
mod set_ups;
mod size;

const MIN: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
/// An arbitrary day, so that subtracting never reaches zero.
const NOW: Duration = Duration::from_hours(500_000);

fn host(name: &str) -> TargetHost {
    TargetHost::Name(name.into())
}

fn home() -> NetworkId {
    NetworkId("home".into())
}

/// The default trust.
fn platform() -> TrustContext {
    TrustContext { parameters: "platform".into(), certificate_host: None }
}

fn candidate(transport: Transport, address: &str) -> Candidate {
    Candidate::under_tls(transport, address.parse().unwrap())
}

fn quic() -> Candidate {
    candidate(Transport::Quic, "192.0.2.1:443")
}

fn tcp() -> Candidate {
    candidate(Transport::Tcp, "192.0.2.1:443")
}

fn worked(name: &str, candidate: Candidate, at: Duration) -> Evidence {
    Evidence {
        at,
        network: home(),
        host: host(name),
        candidate,
        level: EvidenceLevel::Security,
        failure: None,
        doubt: None,
        rtt: Some(Duration::from_millis(80)),
        sent_again: None,
    }
}

fn failed(
    name: &str,
    candidate: Candidate,
    at: Duration,
    cause: FailureCause,
    reached: EvidenceLevel,
) -> Evidence {
    let failure = AttemptFailure::new(cause, reached, "simulated");
    Evidence { level: reached, failure: Some(failure), rtt: None, ..worked(name, candidate, at) }
}

fn was_silent(name: &str, candidate: Candidate, at: Duration) -> Evidence {
    failed(name, candidate, at, FailureCause::Silent, EvidenceLevel::Started)
}

fn after(evidence: &[Evidence]) -> Memory {
    let mut memory = Memory::new(MemoryConfig::default());
    for piece in evidence {
        memory.learn(piece, &platform());
    }
    memory
}

fn verdict(memory: &Memory, name: &str, candidate: &Candidate, now: Duration) -> MemoryVerdict {
    memory.view(&home(), &host(name), &platform(), now).verdict(candidate, now)
}
