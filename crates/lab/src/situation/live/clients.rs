//! `he-clients`: how any client connects when names and networks fail.
//!
//! | file | purpose |
//! | --- | --- |
//! | `clients` | one situation and its measurements |
//! | `program` | the client: a command and its requirements |
//! | `zone` | the answers of the name server |

mod program;
mod zone;

use eyas_emulator::units::TimeSpan;
use serde::{Deserialize, Serialize};

pub use program::{ClientProgram, ClientSource};
pub use zone::{DnsAnswer, HttpsSetup, ZoneSetup};

use super::error::LiveSetupError;
use super::{ColumnLabel, LinkSetup, LiveExperiment};

/// One situation: a client, a name, and what is behind the addresses of that name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientsSetup {
    /// The client under test.
    pub client: ClientProgram,
    /// What it fetches.
    #[serde(default)]
    pub scheme: UrlScheme,
    /// The answers of the name server.
    #[serde(default)]
    pub dns: ZoneSetup,
    /// What is behind each IPv6 address of the name.
    #[serde(default = "default_addresses")]
    pub ipv6: Vec<HostBehaviour>,
    /// What is behind each IPv4 address of the name.
    #[serde(default = "default_addresses")]
    pub ipv4: Vec<HostBehaviour>,
    /// What is behind UDP port 443 of the addresses that serve.
    #[serde(default)]
    pub udp: UdpBehavior,
    /// What is delayed.
    #[serde(default)]
    pub late: DelaySetup,
    /// The link, the same for both families.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub link: LinkSetup,
    /// The number of trials per run, each with its own name and home directory.
    pub trials: u32,
    /// The number of consecutive fetches per trial, with the same name and home directory.
    #[serde(default = "one")]
    pub fetches: u32,
    /// The time limit of a fetch, from when the client should have started.
    pub give_up: TimeSpan,
}

fn is_plain(link: &LinkSetup) -> bool {
    *link == LinkSetup::default()
}

/// The scheme of the URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UrlScheme {
    /// Over TCP, at port 80: no certificate is needed.
    #[default]
    Http,
    /// Over TLS and QUIC, at port 443.
    Https,
}

/// What is behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostBehaviour {
    /// A web server.
    Serves,
    /// Nothing: packets are dropped.
    Swallows,
    /// A host without a web server: RST.
    Refuses,
    /// A router that answers "administratively prohibited" by ICMP (RFC 4443 §3.1, RFC 1812
    /// §5.2.7.1).
    Prohibits,
    /// Something that accepts connections and never sends anything.
    Silent,
}

/// What is behind UDP port 443.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UdpBehavior {
    /// Nothing: ICMP reports it.
    #[default]
    Refuses,
    /// HTTP/3.
    Serves,
    /// Nothing: packets are dropped.
    Swallows,
}

/// What is delayed, and by how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelaySetup {
    /// What is delayed.
    #[serde(default)]
    pub what: DelayedTraffic,
    /// The delay.
    #[serde(default)]
    pub by: TimeSpan,
}

/// What can be delayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DelayedTraffic {
    /// Nothing.
    #[default]
    Nothing,
    /// The answer with IPv4 addresses.
    A,
    /// The answer with IPv6 addresses.
    Aaaa,
    /// The answer with HTTPS records.
    Https,
    /// All packets from IPv6 addresses to the client.
    Ipv6,
    /// All packets to the client, those of the name server too.
    Everything,
}

/// The maximum number of trials or fetches of one run.
const MAX_TRIALS: u32 = 100;
/// The maximum number of addresses of a family: what fits in an answer of 512 bytes (RFC 1035
/// §4.2.1).
const MAX_ADDRESSES: usize = 12;

fn default_addresses() -> Vec<HostBehaviour> {
    vec![HostBehaviour::Serves]
}

const fn one() -> u32 {
    1
}

impl LiveExperiment for ClientsSetup {
    // `failed`, `wasted`, `packets` and `bytes` are shared with the other experiments.
    const COLUMNS: &'static [ColumnLabel] = &[
        ("first", "time from the first query to the first attempt [ms]"),
        ("first-6", "first attempt over IPv6 [%]"),
        ("aaaa-first", "AAAA queried before A [%]"),
        ("cad", "time from the first attempt to the second, first unanswered [ms]"),
        ("rd", "time from the A answer to the first IPv4 attempt, no AAAA answer [ms]"),
        ("waits-for-a", "time from the AAAA answer to the first attempt, no A answer [ms]"),
        ("addresses-6", "IPv6 addresses attempted"),
        ("addresses-4", "IPv4 addresses attempted"),
        ("turns", "changes of address family between attempts"),
        ("between", "time between attempts, median of a trial [ms]"),
        ("udp-to-tcp", "time from the first QUIC attempt to the first TCP attempt [ms]"),
        ("killed", "abandoned attempts whose answer came later"),
        ("byte", "time from the first query to the first byte of the response [ms]"),
        ("byte-2", "time to the first byte of the second fetch [ms]"),
        ("byte-3", "time to the first byte of the third fetch [ms]"),
        ("won-6", "responses that arrived over IPv6 [%]"),
        ("won-quic", "responses that arrived over QUIC [%]"),
        ("won-quic-2", "responses to second fetches over QUIC [%]"),
        ("won-quic-3", "responses to third fetches over QUIC [%]"),
        ("linger", "time from the first byte to the end of the process [ms]"),
        ("behind", "lateness of the slowest answer of the name server [ms]"),
    ];
    const SHARES: &'static [&'static str] =
        &["first-6", "aaaa-first", "won-6", "won-quic", "won-quic-2", "won-quic-3"];

    fn check(&self) -> Result<(), LiveSetupError> {
        self.client.check()?;
        self.link.check()?;
        for (key, number) in [("trials", self.trials), ("fetches", self.fetches)] {
            if !(1..=MAX_TRIALS).contains(&number) {
                return Err(LiveSetupError::Count { key, most: MAX_TRIALS });
            }
        }
        let counts = [self.ipv6.len(), self.ipv4.len()];
        if counts.iter().sum::<usize>() == 0 || counts.iter().any(|count| *count > MAX_ADDRESSES) {
            return Err(LiveSetupError::Addresses { most: MAX_ADDRESSES });
        }
        match self.give_up.0.is_zero() {
            true => Err(LiveSetupError::GiveUp),
            false => Ok(()),
        }
    }

    fn emulated(&self) -> Vec<String> {
        [
            "The client is a process in its own network namespace, started anew for each fetch, with its own \
             environment and home directory. It finds its name server through a resolv.conf that is mounted in \
             place of the machine's; the name server uses UDP and answers each query independently, so that a \
             late answer does not delay others.",
            "IPv4 and the name server are on one emulated link, IPv6 is on another; neither has a delay or a rate \
             limit unless stated. Both families have a default route. The addresses of servers differ from the \
             client's in the same bit, so that none is preferred for its prefix (RFC 6724 §5, rule 9).",
            "Everything is derived from the packets at the client's end of the links, in the same way for every \
             client. Time starts with the first query for the trial's name. An attempt is the first SYN or QUIC \
             Initial to an address and port. The first byte is that of the response over port 80; over TLS it is \
             the server's first packet after the client's second flight, and over QUIC the server's first packet \
             with a short header after the client's first one.",
            "Web servers are eyas-http. An address that refuses is the kernel's TCP, one that stays silent is a \
             socket that accepts and is never read, and one that prohibits is a route that answers with ICMP.",
        ]
        .map(str::to_owned)
        .into()
    }
}
