//! What racing transports costs a server (Papastergiou et al. 2016).
//!
//! Connection requests arrive as a Poisson process, each is a connection of its own and asks for one
//! object.

use serde::{Deserialize, Serialize};

use super::times::Times;
use super::{Column, Experiment, LinkSetup, link, load_columns};
use crate::units::{Part, Size, Time};

/// One situation: a load, and how its connections come about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostSetup {
    /// The link.
    #[serde(default)]
    pub link: LinkSetup,
    /// How a connection comes about.
    pub trying: Trying,
    /// What SCTP runs in.
    #[serde(default)]
    pub sctp: SctpIn,
    /// What wins.
    #[serde(default)]
    pub outcome: Outcome,
    /// The share of connections for which the outcome is known beforehand.
    #[serde(default)]
    pub hit_rate: Part,
    /// Whether it is TLS 1.2, ECDHE with an RSA certificate and AES-128-GCM.
    #[serde(default)]
    pub tls: bool,
    /// The object.
    pub size: Size,
    /// Connection requests a second.
    pub rate: f64,
    /// Whether the network swallows SCTP, however it is carried.
    #[serde(default)]
    pub swallowed: bool,
    /// How long serial trying waits for SCTP before it tries TCP.
    #[serde(default = "patience")]
    pub patience: Time,
    /// Before it counts.
    pub warm_up: Time,
    /// For how long it counts.
    pub duration: Time,
    /// From one look at the server to the next.
    pub sample: Time,
}

fn patience() -> Time {
    Time(std::time::Duration::from_secs(3))
}

/// How a connection comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trying {
    /// TCP alone.
    Tcp,
    /// SCTP alone.
    Sctp,
    /// The race of 2016: all handshakes at once, all carried to their end; the loser then closes.
    /// Under TLS it is a race of transports, and the winner alone is secured.
    Naive,
    /// The race of eyas, as it is by default.
    Eyas,
    /// The race of eyas with all candidates at once.
    EyasAtOnce,
    /// SCTP, and TCP when nothing has come of it for some time.
    Serial,
}

/// What carries SCTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SctpIn {
    /// UDP (RFC 6951).
    #[default]
    Udp,
    /// IP, as protocol 132.
    Ip,
}

/// What a race ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// TCP always: HE-TCP.
    #[default]
    Tcp,
    /// SCTP always: HE-SCTP.
    Sctp,
    /// One of both, each as likely: HE-50 %.
    Half,
    /// Whatever comes, with SCTP wanted more.
    Open,
}

/// The most that serial trying can wait: a policy's bound.
const MAX_PATIENCE_S: u64 = 10;

impl CostSetup {
    pub(crate) const fn times(&self) -> Times {
        Times { warm_up: self.warm_up.0, duration: self.duration.0, sample: self.sample.0 }
    }
}

impl Experiment for CostSetup {
    const COLUMNS: &'static [Column] = &load_columns::COLUMNS;

    fn check(&self) -> Result<(), String> {
        self.times().check(self.rate)?;
        if self.tls && self.trying == Trying::Naive && self.outcome == Outcome::Open {
            return Err("live.outcome: the naive race under TLS needs one that is named".to_owned());
        }
        if self.patience.0.is_zero() || self.patience.0.as_secs() > MAX_PATIENCE_S {
            return Err(format!("live.patience: above 0 and at most {MAX_PATIENCE_S} s"));
        }
        if self.swallowed && matches!(self.outcome, Outcome::Sctp | Outcome::Half) {
            return Err("live.swallowed: nothing but TCP can come of it".to_owned());
        }
        Ok(())
    }

    fn emulated(&self) -> Vec<String> {
        let own = [
            format!(
                "The paper has an emulator with 20 ms and does not say whether each way or both; \
                 here {} are the round trip. Client, emulator and server are one machine: client \
                 and emulator on core 0, server and what its kernel does on core 1.",
                self.link.delay,
            ),
            "CPU of the server's host: the time of the server process, and that of the kernel's \
             thread for its network device, which works off what arrives (threaded NAPI). What a \
             network card's interrupts and timers cost is not in it. Others on core 1 do not count; \
             beside it stands what the paper measured, 100 % less idle, which is the same on a quiet \
             machine alone. The emulated device has no checksum offload."
                .to_owned(),
            "Memory of the kernel: its tables of sockets and packets (/proc/slabinfo) and the \
             buffers of TCP and UDP (/proc/net/sockstat). Client and server share one kernel, so the \
             client's are in it, except for its connections in TIME-WAIT. What SCTP holds is memory \
             of the server process."
                .to_owned(),
            "The paper's SCTP was that of the kernels of Linux and FreeBSD, its server lighttpd. \
             This is eyas' own SCTP in user space, inside UDP if nothing else is said; its own code \
             counts as the server's. TCP is this kernel's. So the ratio of SCTP to TCP is not the \
             paper's; what racing adds to the dearer of both is what can be compared."
                .to_owned(),
            "HTTP/1.0 with Keep-Alive, one request for each connection, which the client closes. \
             The client leaves from eight addresses, for the paper's tcp_tw_recycle is gone from \
             kernels. SCTP has PR, AUTH, ASCONF and the others as eyas has them by default."
                .to_owned(),
        ];
        link::emulated().into_iter().chain(own).collect()
    }
}
