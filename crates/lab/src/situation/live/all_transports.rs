//! A race of all there is: what each candidate more costs, and what gets through a middlebox.
//!
//! The future work of Papastergiou et al. (2016): IPv4 and IPv6, TCP, SCTP, SCTP inside UDP, secured
//! by TLS or DTLS, through middleboxes; and QUIC and MPTCP beside them.

use serde::{Deserialize, Serialize};

use super::times::Times;
use super::{Column, Experiment, LinkSetup, link, load_columns};
use crate::units::Time;

/// One situation: candidates, a race of them, and what stands between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllTransportsSetup {
    /// The link.
    #[serde(default)]
    pub link: LinkSetup,
    /// How many candidates there are: 1, or two for each of up to five transports.
    pub candidates: usize,
    /// How they are tried.
    pub race: RaceOf,
    /// What protects SCTP inside UDP.
    #[serde(default)]
    pub sctp_security: Secured,
    /// What stands between client and server.
    #[serde(default)]
    pub middlebox: Between,
    /// Connection requests a second.
    pub rate: f64,
    /// Before it counts.
    pub warm_up: Time,
    /// For how long it counts.
    pub duration: Time,
    /// From one look at the server to the next.
    pub sample: Time,
}

/// How candidates are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaceOf {
    /// All at once, each to its end; then the losers close.
    Naive,
    /// As eyas does by default, with nothing remembered.
    Eyas,
    /// The same with a memory that all connections share.
    EyasRemembers,
}

/// What protects SCTP inside UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Secured {
    /// TLS on its streams (RFC 3436).
    #[default]
    Tls,
    /// DTLS below it (RFC 8261).
    Dtls,
}

/// What stands between client and server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Between {
    /// Nothing.
    #[default]
    Nothing,
    /// A NAT for IPv4.
    Nat,
    /// A firewall that drops protocol 132.
    NoSctp,
    /// A firewall that drops UDP.
    NoUdp,
    /// A firewall that passes TCP at port 443 and nothing else.
    OnlyWeb,
}

/// Transports with both families.
const MOST_CANDIDATES: usize = 10;

impl AllTransportsSetup {
    pub(crate) const fn times(&self) -> Times {
        Times { warm_up: self.warm_up.0, duration: self.duration.0, sample: self.sample.0 }
    }
}

impl Experiment for AllTransportsSetup {
    const COLUMNS: &'static [Column] = &load_columns::COLUMNS;

    fn check(&self) -> Result<(), String> {
        let is_number = self.candidates == 1 || self.candidates.is_multiple_of(2);
        if !(1..=MOST_CANDIDATES).contains(&self.candidates) || !is_number {
            return Err(format!("live.candidates: 1, or an even number to {MOST_CANDIDATES}"));
        }
        self.times().check(self.rate)
    }

    fn emulated(&self) -> Vec<String> {
        let own = [
            "One candidate is TCP over IPv4. Then come, each over IPv6 and IPv4 and wanted more \
             than those before it: TCP, SCTP inside UDP, SCTP directly over IP, QUIC; and MPTCP, \
             which is wanted more than TCP alone. All \
             are secured: TLS 1.3, QUIC's own, and for SCTP inside UDP TLS or DTLS 1.2. Directly \
             over IP SCTP has TLS in either case."
                .to_owned(),
            "The server is eyas-http, a process of its own on core 1, with a certificate of ECDSA \
             P-256; client and emulator are on core 0. A request is one connection and 100 bytes by \
             HTTP/1.1 to 3, whatever the transport carries; sessions are not resumed. The name is \
             not looked up: both addresses are known."
                .to_owned(),
            "The middleboxes are those of eyas-netem, between the client and the link. They drop \
             silently, as most do. The NAT is one of IPv4 and lets IPv6 pass; protocol 132 goes \
             through it with its address translated and its ports as they are."
                .to_owned(),
            "CPU is that of the server process and of the kernel's receiving thread, as in he-cost. \
             Packets and bytes are those that the client's host and the server's sent, IP headers \
             included, also those that a middlebox dropped."
                .to_owned(),
        ];
        link::emulated().into_iter().chain(own).collect()
    }
}
