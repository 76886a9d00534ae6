//! Reaching the peer: names, addresses, time limits; and trust.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use eyas::rustls::NamedGroup;
use eyas::{EchChoice, EncryptedDnsPolicy};

use super::values::{self, ConnectTo, DnsServer, ResolveFlag};

/// Names, addresses and time limits.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Reaching")]
pub(crate) struct ReachFlags {
    /// Use only IPv4 addresses, through NAT64 if there is no other route
    #[arg(short = '4', long, overrides_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Use only IPv6 packets, also to IPv4 addresses behind a NAT64
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Use these addresses for HOST:PORT instead of asking DNS
    #[arg(long, value_name = "HOST:PORT:ADDR[,ADDR]", value_parser = values::resolve)]
    pub(crate) resolve: Vec<ResolveFlag>,
    /// Connect to HOST2:PORT2 instead of HOST1:PORT1; names and certificates do not change
    #[arg(long, value_name = "HOST1:PORT1:HOST2:PORT2", value_parser = values::connect_to)]
    pub(crate) connect_to: Vec<ConnectTo>,
    #[command(flatten)]
    pub(crate) name_server: NameServerFlags,
    /// The peer's UDP port for SCTP over UDP
    #[arg(long, value_name = "PORT", default_value_t = eyas_sctp_tokio::ENCAPSULATION_PORT,
          value_parser = clap::value_parser!(u16).range(1..), hide_short_help = true)]
    pub(crate) sctp_udp_port: u16,
    /// Give up connecting after this time; 0 is the default of 30s
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    connect_timeout: Option<Duration>,
    /// Give up entirely after this time; 0 is never
    #[arg(long, short = 'm', value_name = "DURATION", value_parser = values::duration)]
    max_time: Option<Duration>,
}

impl ReachFlags {
    /// Returns flags that restrict nothing, with this UDP port of the peer for SCTP.
    pub(crate) const fn with_sctp_udp_port(sctp_udp_port: u16) -> Self {
        Self {
            ipv4: false,
            ipv6: false,
            resolve: Vec::new(),
            connect_to: Vec::new(),
            name_server: NameServerFlags::system(),
            sctp_udp_port,
            connect_timeout: None,
            max_time: None,
        }
    }

    /// Returns when to give up connecting, if the user said so. As in curl, 0 is no limit.
    pub(crate) fn connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout.filter(|limit| !limit.is_zero())
    }

    /// Returns when to give up entirely, if ever. As in curl, 0 is no limit.
    pub(crate) fn max_time(&self) -> Option<Duration> {
        self.max_time.filter(|limit| !limit.is_zero())
    }
}

/// Who is asked for names, and how.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Reaching")]
pub(crate) struct NameServerFlags {
    /// Use this DNS server: ADDR, ADDR:PORT, tls://ADDR#NAME or quic://ADDR#NAME
    #[arg(long, value_name = "SERVER", value_parser = values::dns_server,
          conflicts_with = "doh_url")]
    pub(crate) dns_server: Option<DnsServer>,
    /// Use DNS over HTTPS with this URL
    #[arg(long, value_name = "URL", value_parser = values::doh_url)]
    pub(crate) doh_url: Option<String>,
    /// Encrypt queries to the name servers: auto where they offer it, require, off, or system, as the
    /// system does [default: system]
    #[arg(long, value_name = "HOW", value_parser = clap::value_parser!(EncryptedDnsPolicy),
          hide_short_help = true)]
    pub(crate) encrypted_dns: Option<EncryptedDnsPolicy>,
    /// Begin with addresses whose time to live is over while DNS is asked again, if the server has to
    /// show a certificate [default: on]
    #[arg(long, value_name = "WHETHER", value_parser = values::on_or_off(), hide_short_help = true)]
    pub(crate) optimistic_dns: Option<bool>,
}

impl NameServerFlags {
    /// Returns flags that leave all to the system.
    const fn system() -> Self {
        Self { dns_server: None, doh_url: None, encrypted_dns: None, optimistic_dns: None }
    }
}

/// Trust and credentials.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Security")]
pub(crate) struct TrustFlags {
    /// Accept any certificate: anyone on the path can then intercept the connection
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
    /// Encrypt the name of the server (ECH): auto where its record offers it, off, require, or with the
    /// configuration ecl:BASE64 [default: auto]
    #[arg(long, value_name = "HOW", value_parser = values::ech, hide_short_help = true)]
    pub(crate) ech: Option<EchChoice>,
    /// Offer only these groups for key exchange, most preferred first: X25519MLKEM768, X25519, P-256,
    /// P-384 [default: all]
    #[arg(long, value_name = "GROUP[:GROUP]...", value_delimiter = ':', hide_short_help = true,
          value_parser = values::key_exchange_group)]
    pub(crate) curves: Vec<NamedGroup>,
    #[command(flatten)]
    pub(crate) passphrase: PassphraseFlags,
}

/// The passphrase of an encrypted private key.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PassphraseFlags {
    /// Passphrase of the private key; by default that of the environment (EYAS_PASS). Other users
    /// of this host can see a command line
    #[arg(long, value_name = "PASSPHRASE", conflicts_with = "pass_file", hide_short_help = true)]
    pub(crate) pass: Option<String>,
    /// File whose first line is the passphrase of the private key
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) pass_file: Option<PathBuf>,
}
