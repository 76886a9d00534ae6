//! Flags of `eyas doctor`.

use std::time::Duration;

use clap::Args;

use super::values::{self, ResolveFlag};
use super::{ChoiceFlags, MemoryChoice, NameServerFlags, ReachFlags, ServiceFlags, TrustFlags};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas doctor                            this machine and its name servers
  eyas doctor example.org                and every transport to a host
  eyas doctor -k server.example:8443     to an 'eyas serve' of yours
  eyas doctor --json --mask example.org  for a bug report

Nobody is asked whom you have not named. Without a HOST, nothing is sent but
questions about ipv4only.arpa, a name that every resolver knows, to the name
servers of this machine, and one for their own encrypted resolvers, which it
connects to. With one, they are asked about it as well, and it gets
what 'eyas race --all' sends and a HEAD request; if its port is 443 or 80, also
a GET request to port 80 without TLS, which a captive portal would answer.
The exit code is 116 if something is broken. 'eyas man guide doctor' says more.";

/// Flags of `eyas doctor`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorFlags {
    /// URL, host:port or host to examine the way to
    #[arg(value_name = "HOST")]
    pub(crate) target: Option<String>,
    /// Report after this time at the latest, with what is known by then
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "10s")]
    pub(crate) timeout: Duration,
    /// Replace names and addresses in the report, equal ones alike
    #[arg(long)]
    pub(crate) mask: bool,
    /// Test for a captive portal with this http:// URL, which has to answer 204
    #[arg(long, value_name = "URL")]
    pub(crate) portal_url: Option<String>,
    #[command(flatten)]
    pub(crate) service: ServiceFlags,
    /// The memory to compare with and to learn in: a file, or none [env: EYAS_MEMORY]
    #[arg(long, value_name = "FILE|none")]
    pub(crate) memory: Option<MemoryChoice>,
    /// Use these addresses for HOST:PORT instead of asking DNS
    #[arg(long, value_name = "HOST:PORT:ADDR[,ADDR]", value_parser = values::resolve,
          help_heading = "Reaching")]
    resolve: Vec<ResolveFlag>,
    #[command(flatten)]
    name_server: NameServerFlags,
    /// The host's UDP port for SCTP over UDP
    #[arg(long, value_name = "PORT", default_value_t = eyas_sctp_tokio::ENCAPSULATION_PORT,
          value_parser = clap::value_parser!(u16).range(1..), hide_short_help = true,
          help_heading = "Reaching")]
    sctp_udp_port: u16,
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

impl DoctorFlags {
    /// Returns how to choose between candidates: as by default, with this memory.
    pub(crate) fn choice(&self) -> ChoiceFlags {
        ChoiceFlags { memory: self.memory.clone(), ..ChoiceFlags::default() }
    }

    /// Returns how to reach the host.
    pub(crate) fn reach(&self) -> ReachFlags {
        let mut reach = ReachFlags::with_sctp_udp_port(self.sctp_udp_port);
        reach.resolve.clone_from(&self.resolve);
        reach.name_server.clone_from(&self.name_server);
        reach
    }
}
