//! How to reach the peer: names, addresses, time limits; and whom to trust.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{self, Addresses, ConnectTo, DnsServer};

/// Names, addresses and time limits.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Reaching")]
pub(crate) struct ReachFlags {
    /// Use only IPv4 addresses, through a NAT64 if nothing else leads there
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Send only IPv6, to IPv4 addresses as well where a NAT64 translates
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Use these addresses for HOST:PORT instead of asking DNS
    #[arg(long, value_name = "HOST:PORT:ADDR[,ADDR]", value_parser = values::resolve)]
    pub(crate) resolve: Vec<Addresses>,
    /// Connect to HOST2:PORT2 where HOST1:PORT1 is asked for; names and certificates stay
    #[arg(long, value_name = "HOST1:PORT1:HOST2:PORT2", value_parser = values::connect_to)]
    pub(crate) connect_to: Vec<ConnectTo>,
    /// Ask this DNS server: ADDR, ADDR:PORT or tls://ADDR#NAME
    #[arg(long, value_name = "SERVER", value_parser = values::dns_server,
          conflicts_with = "doh_url")]
    pub(crate) dns_server: Option<DnsServer>,
    /// Ask DNS over HTTPS at this URL
    #[arg(long, value_name = "URL", value_parser = values::doh_url)]
    pub(crate) doh_url: Option<url::Url>,
    /// UDP port at which peers await SCTP inside UDP
    #[arg(long, value_name = "PORT", default_value_t = eyas::sctp::ENCAPSULATION_PORT,
          value_parser = clap::value_parser!(u16).range(1..), hide_short_help = true)]
    pub(crate) sctp_udp_port: u16,
    /// Give up connecting after this time [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) connect_timeout: Option<Duration>,
    /// Give up altogether after this time
    #[arg(long, short = 'm', value_name = "DURATION", value_parser = values::duration)]
    pub(crate) max_time: Option<Duration>,
}

/// Whom to trust, and who to be.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Security")]
pub(crate) struct TrustFlags {
    /// Accept any certificate: the connection is then open to anybody in between
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// Trust only the certificates in this PEM file
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Client certificate chain, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of the client certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
}
