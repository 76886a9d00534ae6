//! `he-clients`: how any client comes to its connection when names and networks fail.
//!
//! | file | job |
//! | --- | --- |
//! | `clients` | one situation, and what is measured of it |
//! | `program` | the client: a command and what it needs |
//! | `zone` | what the name server answers |

mod program;
mod zone;

use serde::{Deserialize, Serialize};

pub use program::{ClientProgram, Source};
pub use zone::{Answering, HttpsSetup, ZoneSetup};

use super::{Column, Experiment};
use crate::units::Time;

/// One situation: a client, a name, and what is behind the addresses of that name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientsSetup {
    /// Who is tried.
    pub client: ClientProgram,
    /// What it fetches.
    #[serde(default)]
    pub scheme: Scheme,
    /// What the name server says.
    #[serde(default)]
    pub dns: ZoneSetup,
    /// What is behind each IPv6 address of the name.
    #[serde(default = "one_that_serves")]
    pub ipv6: Vec<Behind>,
    /// What is behind each IPv4 address of the name.
    #[serde(default = "one_that_serves")]
    pub ipv4: Vec<Behind>,
    /// What is behind UDP port 443 of addresses that serve.
    #[serde(default)]
    pub udp: Udp,
    /// What comes late.
    #[serde(default)]
    pub late: LateSetup,
    /// Trials of a run, each with a name and a home directory of its own.
    pub trials: u32,
    /// Fetches of a trial, one after another, with the same name and the same home directory.
    #[serde(default = "one")]
    pub fetches: u32,
    /// When a fetch is given up, counted from when the client should have started.
    pub give_up: Time,
}

/// What is fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Over TCP, at port 80: no certificate is needed.
    #[default]
    Http,
    /// Over TLS and QUIC, at port 443.
    Https,
}

/// What is behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behind {
    /// A web server.
    Serves,
    /// Nothing: packets vanish.
    Swallows,
    /// A host without a web server: RST.
    Refuses,
    /// A router that answers "administratively prohibited" by ICMP (RFC 4443 §3.1, RFC 1812
    /// §5.2.7.1).
    Prohibits,
    /// Something that accepts connections and never says anything.
    Silent,
}

/// What is behind UDP port 443.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Udp {
    /// Nobody: ICMP says so.
    #[default]
    Refuses,
    /// HTTP/3.
    Serves,
    /// Nothing: packets vanish.
    Swallows,
}

/// What comes late, and by how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateSetup {
    /// What it is.
    #[serde(default)]
    pub what: Late,
    /// By how much.
    #[serde(default)]
    pub by: Time,
}

/// What can come late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
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
}

/// The most trials or fetches of one run.
const MOST: u32 = 100;
/// The most addresses of a family: what an answer of 512 bytes has room for (RFC 1035 §4.2.1).
const MOST_ADDRESSES: usize = 12;

fn one_that_serves() -> Vec<Behind> {
    vec![Behind::Serves]
}

const fn one() -> u32 {
    1
}

impl Experiment for ClientsSetup {
    // `failed`, `wasted`, `packets` and `bytes` are those of the other experiments.
    const COLUMNS: &'static [Column] = &[
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

    fn check(&self) -> Result<(), String> {
        self.client.check()?;
        for (what, number) in [("trials", self.trials), ("fetches", self.fetches)] {
            if !(1..=MOST).contains(&number) {
                return Err(format!("live.{what}: from 1 to {MOST}"));
            }
        }
        let counts = [self.ipv6.len(), self.ipv4.len()];
        if counts.iter().sum::<usize>() == 0 || counts.iter().any(|count| *count > MOST_ADDRESSES) {
            return Err(format!(
                "live.ipv6 and live.ipv4: at least one address, and at most {MOST_ADDRESSES} of a family"
            ));
        }
        match self.give_up.0.is_zero() {
            true => Err("live.give_up: longer than nothing".to_owned()),
            false => Ok(()),
        }
    }

    fn emulated(&self) -> Vec<String> {
        [
            "The client is a process in a network namespace of its own, begun anew for each fetch, with an \
             environment and a home directory of its own. It finds its name server by a resolv.conf that is \
             mounted in place of the machine's; the name server speaks UDP and answers each query on its own, so \
             that a late answer delays no other.",
            "IPv4 and the name server are on one emulated link, IPv6 is on another; neither has a delay or a \
             rate if nothing is said. Both families have a default route. The addresses of servers differ from \
             the client's in the same bit, so that none comes first for its prefix alone (RFC 6724 §5, rule 9).",
            "All is told from the packets at the client's end of the links, the same way for every client. Time \
             begins with the first query for the trial's name. An attempt is the first SYN or QUIC Initial to an \
             address and port. The first byte is that of the response over port 80; over TLS it is the server's \
             first packet after the second flight of the client, over QUIC its first packet with a short header \
             after the client's first of that kind.",
            "Web servers are eyas-http; what refuses, is silent or prohibits is the kernel's TCP, a socket that is \
             accepted and never read, and a route that answers by ICMP.",
        ]
        .map(str::to_owned)
        .into()
    }
}
