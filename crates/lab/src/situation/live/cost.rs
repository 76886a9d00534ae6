//! The cost of racing transports for a server (Papastergiou et al. 2016).
//!
//! Connection requests arrive as a Poisson process; each uses its own connection and requests one
//! object.

use eyas_emulator::units::{ByteSize, PercentValue, TimeSpan};
use serde::{Deserialize, Serialize};

use super::error::LiveSetupError;
use super::times::LoadTimes;
use super::{ColumnLabel, LinkSetup, LiveExperiment, load_columns};

/// One situation: a load, and how its connections are established.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostSetup {
    /// The link.
    #[serde(default)]
    pub link: LinkSetup,
    /// How a connection is established.
    #[serde(rename = "trying")]
    pub method: ConnectMethod,
    /// The carrier of SCTP.
    #[serde(default)]
    pub sctp: SctpCarrier,
    /// The outcome of races.
    #[serde(default)]
    pub outcome: CostOutcome,
    /// The share of connections for which the outcome is known in advance.
    #[serde(default)]
    pub hit_rate: PercentValue,
    /// Whether TLS is used: TLS 1.2, ECDHE with an RSA certificate and AES-128-GCM.
    #[serde(default)]
    pub tls: bool,
    /// The size of the object.
    pub size: ByteSize,
    /// Connection requests per second.
    pub rate: f64,
    /// Whether the network swallows SCTP, with any carrier.
    #[serde(default)]
    pub swallowed: bool,
    /// How long serial trying waits for SCTP before it tries TCP.
    #[serde(default = "patience")]
    pub patience: TimeSpan,
    /// The duration of the warm-up.
    pub warm_up: TimeSpan,
    /// The duration of the measurement.
    pub duration: TimeSpan,
    /// The time between two samples of the server.
    pub sample: TimeSpan,
}

fn patience() -> TimeSpan {
    TimeSpan(std::time::Duration::from_secs(3))
}

/// How a connection is established.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectMethod {
    /// TCP only.
    Tcp,
    /// SCTP only.
    Sctp,
    /// The race of 2016: all handshakes at once, all completed; the loser is then closed. With TLS
    /// only the transports race, and only the winner is secured.
    Naive,
    /// The default race of eyas.
    Eyas,
    /// The race of eyas with all candidates at once.
    EyasAtOnce,
    /// SCTP first, and TCP if there is no connection after some time.
    Serial,
}

/// What carries SCTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SctpCarrier {
    /// UDP (RFC 6951).
    #[default]
    Udp,
    /// IP, as protocol 132.
    Ip,
}

/// The outcome of a race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostOutcome {
    /// Always TCP: HE-TCP.
    #[default]
    Tcp,
    /// Always SCTP: HE-SCTP.
    Sctp,
    /// Either, with equal probability: HE-50 %.
    Half,
    /// The actual winner, with SCTP preferred.
    Open,
}

/// The maximum time that serial trying can wait: the limit of a policy.
const MAX_PATIENCE_S: u64 = 10;

impl CostSetup {
    pub(crate) const fn times(&self) -> LoadTimes {
        LoadTimes { warm_up: self.warm_up.0, duration: self.duration.0, sample: self.sample.0 }
    }
}

impl LiveExperiment for CostSetup {
    const COLUMNS: &'static [ColumnLabel] = &load_columns::COLUMNS;

    fn check(&self) -> Result<(), LiveSetupError> {
        self.link.check()?;
        self.times().check(self.rate)?;
        if self.tls && self.method == ConnectMethod::Naive && self.outcome == CostOutcome::Open {
            return Err(LiveSetupError::Outcome);
        }
        if self.patience.0.is_zero() || self.patience.0.as_secs() > MAX_PATIENCE_S {
            return Err(LiveSetupError::Patience { most: MAX_PATIENCE_S });
        }
        if self.swallowed && matches!(self.outcome, CostOutcome::Sctp | CostOutcome::Half) {
            return Err(LiveSetupError::Swallowed);
        }
        Ok(())
    }

    fn emulated(&self) -> Vec<String> {
        let notes = [
            format!(
                "The paper has an emulator with 20 ms and does not say whether this is one-way or \
                 round-trip; here {} is the round-trip time. Client, emulator and server share one \
                 machine: client and emulator on core 0, the server and its kernel's work on core 1.",
                self.link.delay,
            ),
            "CPU time of the server's host: the time of the server process, and that of the kernel's \
             thread for its network device, which processes received packets (threaded NAPI). The \
             cost of a network card's interrupts and timers is not included, and other processes on \
             core 1 do not count. The paper's measure, 100 % minus idle time, is shown as well; it \
             is the same only on a quiet machine. The emulated device has no checksum offload."
                .to_owned(),
            "Kernel memory: the tables of sockets and packets (/proc/slabinfo) and the buffers of \
             TCP and UDP (/proc/net/sockstat). Client and server share one kernel, so the client's \
             are included, except for its connections in TIME-WAIT. The memory of SCTP belongs to \
             the server process."
                .to_owned(),
            "The paper used the SCTP of the Linux and FreeBSD kernels, with lighttpd as the server. \
             This is eyas's own SCTP in user space, inside UDP unless stated otherwise; its code \
             counts as the server's. TCP is this kernel's. The ratio of SCTP to TCP therefore differs \
             from the paper's; what racing adds to the more expensive of the two can be compared."
                .to_owned(),
            "HTTP/1.0 with Keep-Alive, one request per connection, which the client closes. The \
             client uses eight addresses, because the paper's tcp_tw_recycle no longer exists in \
             current kernels. SCTP has PR, AUTH, ASCONF and the other extensions that eyas enables \
             by default."
                .to_owned(),
        ];
        self.link.emulated().into_iter().chain(notes).collect()
    }
}
