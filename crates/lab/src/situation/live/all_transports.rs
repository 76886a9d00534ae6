//! A race of all transports: the cost of each additional candidate, and what gets through a
//! middlebox.
//!
//! The future work of Papastergiou et al. (2016): IPv4 and IPv6, TCP, SCTP, SCTP inside UDP,
//! protected by TLS or DTLS, through middleboxes; and in addition QUIC and MPTCP.

use eyas_emulator::units::TimeSpan;
use serde::{Deserialize, Serialize};

use super::error::LiveSetupError;
use super::times::LoadTimes;
use super::{ColumnLabel, LinkSetup, LiveExperiment, load_columns};

/// One situation: candidates, a race of them, and the middlebox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllTransportsSetup {
    /// The link.
    #[serde(default)]
    pub link: LinkSetup,
    /// The number of candidates: 1, or two for each of up to five transports.
    pub candidates: usize,
    /// How they are tried.
    pub race: RacePolicyName,
    /// The security protocol of SCTP inside UDP.
    #[serde(default)]
    pub sctp_security: SctpSecurityName,
    /// The middlebox between client and server.
    #[serde(default)]
    pub middlebox: MiddleboxKind,
    /// Connection requests per second.
    pub rate: f64,
    /// The duration of the warm-up.
    pub warm_up: TimeSpan,
    /// The duration of the measurement.
    pub duration: TimeSpan,
    /// The time between two samples of the server.
    pub sample: TimeSpan,
}

/// How candidates are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RacePolicyName {
    /// All at once, each to completion; then the losers are closed.
    Naive,
    /// The default race of eyas, with nothing remembered.
    Eyas,
    /// The same with a memory shared by all connections.
    EyasRemembers,
}

/// The security protocol of SCTP inside UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SctpSecurityName {
    /// TLS on its streams (RFC 3436).
    #[default]
    Tls,
    /// DTLS below it (RFC 8261).
    Dtls,
}

/// The middlebox between client and server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MiddleboxKind {
    /// None.
    #[default]
    Nothing,
    /// A NAT for IPv4.
    Nat,
    /// A firewall that drops protocol 132.
    NoSctp,
    /// A firewall that drops UDP.
    NoUdp,
    /// A firewall that passes only TCP port 443.
    OnlyWeb,
}

/// Five transports over two address families.
const MOST_CANDIDATES: usize = 10;

impl AllTransportsSetup {
    pub(crate) const fn times(&self) -> LoadTimes {
        LoadTimes { warm_up: self.warm_up.0, duration: self.duration.0, sample: self.sample.0 }
    }
}

impl LiveExperiment for AllTransportsSetup {
    const COLUMNS: &'static [ColumnLabel] = &load_columns::COLUMNS;

    fn check(&self) -> Result<(), LiveSetupError> {
        self.link.check()?;
        let is_number = self.candidates == 1 || self.candidates.is_multiple_of(2);
        if !(1..=MOST_CANDIDATES).contains(&self.candidates) || !is_number {
            return Err(LiveSetupError::Candidates { most: MOST_CANDIDATES });
        }
        self.times().check(self.rate)
    }

    fn emulated(&self) -> Vec<String> {
        let notes = [
            "A single candidate is TCP over IPv4. The following are added, each over IPv6 and IPv4 \
             and preferred to those before it: TCP, SCTP inside UDP, SCTP directly over IP, QUIC; \
             and MPTCP, which is preferred only to TCP. All are encrypted: with TLS 1.3, QUIC's own \
             protection, and TLS or DTLS 1.2 for SCTP inside UDP. SCTP directly over IP uses TLS in \
             either case."
                .to_owned(),
            "The server is eyas-http in a separate process on core 1, with an ECDSA P-256 \
             certificate; client and emulator run on core 0. A request is one connection and 100 \
             bytes over HTTP/1.1 to HTTP/3, depending on the transport; sessions are not resumed. \
             The name is not looked up: both addresses are known."
                .to_owned(),
            "The middleboxes are those of eyas-netem, between the client and the link. They drop \
             packets silently, as most do. The NAT translates IPv4 and passes IPv6; for protocol 132 \
             it translates the address and leaves the ports unchanged."
                .to_owned(),
            "CPU time is that of the server process and of the kernel's receiving thread, as in \
             he-cost. Packets and bytes are those sent by the hosts of client and server, including \
             IP headers, and including packets that a middlebox dropped."
                .to_owned(),
        ];
        self.link.emulated().into_iter().chain(notes).collect()
    }
}
