//! Flags of `eyas proxy`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use eyas_relay::rules::RulePattern;
use eyas_relay::via::UpstreamProxy;

use super::memory::MemoryChoice;
use super::values::{self, ListenAddresses, ResolveFlag};
use super::{NameServerFlags, PassphraseFlags};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas proxy run npm ci                  a command, and all that it fetches
  eyas proxy run -- curl -v https://example.org/
  eyas proxy                             for programs configured to use it:
  curl -x socks5h://127.0.0.1:1080 https://example.org/
  https_proxy=http://127.0.0.1:1080 git clone https://example.org/x.git
  eyas proxy --explain                   a line for each connection
  eyas proxy -l 192.0.2.1:1080 --users users.txt --metrics 9464
  eyas proxy --deny '*' --allow '*.example.org:443'
  eyas proxy -l '[::]:443' --users users.txt --tls-cert c.pem --tls-key k.pem
  eyas proxy run --via https://NAME:PASSWORD@proxy.example -- git pull

One port supports SOCKS5, SOCKS4, SOCKS4a, HTTP CONNECT and HTTP proxy requests.
Every destination is raced over its addresses, and what is learnt is kept in the
memory of this machine. Where the client begins with TLS, the race is won by the
first server that answers it, and not by one that accepts and stays silent.
'eyas man guide proxy' has the details.";

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  eyas proxy run npm ci
  eyas proxy run -- sh -c 'git pull && cargo fetch'
  eyas proxy run --explain pip download requests
  eyas proxy run --all-traffic -- wget https://example.org/

The proxy listens on a free port of 127.0.0.1 and exits with the command, whose
exit status is passed on: 128 plus the number of a signal that killed it, 127 if
it was not found, 126 if it cannot be run. The command finds the proxy by the
variables that curl, wget, git, pip, npm, yarn, Node, Deno, Go, Java, Cargo and
rsync read. Programs that read none of them bypass it, unless --all-traffic is
given: then every connection goes through the proxy, and the command's
environment stays as it is.";

/// Flags of `eyas proxy`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ProxyFlags {
    /// Address or name, and port; a port alone means 127.0.0.1, port 0 any free port; can be
    /// repeated [default: 127.0.0.1:1080]
    #[arg(long, short = 'l', value_name = "ADDR:PORT", value_parser = values::listen_all)]
    pub(crate) listen: Vec<ListenAddresses>,
    /// Require one of the names and passwords in FILE: NAME:PASSWORD, one per line
    ///
    /// Without it and without --client-ca, the proxy listens only on loopback. SOCKS4 has no passwords
    /// and is refused. The file, like those of certificates and keys, is loaded again after SIGHUP, and when it has
    /// changed; connections go on.
    #[arg(long, value_name = "FILE")]
    pub(crate) users: Option<PathBuf>,
    /// Use TLS with clients, with this certificate and its chain, PEM
    ///
    /// Clients then use an https:// proxy URL, and may also use CONNECT and CONNECT-UDP over HTTP/2
    /// and HTTP/3. UDP by SOCKS is not available, since it would not be encrypted.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) passphrase: PassphraseFlags,
    /// Require a certificate of clients that one of the CAs in FILE has issued, PEM
    ///
    /// It is required over TCP, QUIC and SCTP, which is then not inside DTLS.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) client_ca: Option<PathBuf>,
    /// Accept clients over SCTP too, over UDP and directly over IP where possible
    #[arg(long, requires = "tls_cert")]
    pub(crate) sctp: bool,
    /// Maximum number of clients
    #[arg(long, value_name = "N", default_value_t = 4096, help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_connections: u32,
    /// Maximum number of clients from one remote address, or one IPv6 /64
    #[arg(long, value_name = "N", default_value_t = 256, help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_per_client: u32,
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics; a port alone means 127.0.0.1
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::listen)]
    pub(crate) metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) destinations: ProxyDestinationFlags,
    /// The action, if any.
    #[command(subcommand)]
    pub(crate) action: Option<ProxyAction>,
}

/// The actions of a proxy.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ProxyAction {
    /// Run a command whose connections go through its own proxy
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<ProxyRunFlags>),
}

/// Flags of `eyas proxy run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProxyRunFlags {
    /// Capture all TCP connections and DNS queries of the command, whatever its settings
    ///
    /// The command gets its own network namespace, which requires Linux, iproute2 and /dev/net/tun,
    /// and root or user namespaces. Of UDP it only gets DNS, and it cannot reach services on this
    /// machine's loopback addresses, except at the ports of --host-port. At the end, everything that is still running in
    /// the namespace is killed, and the namespace is removed.
    #[arg(long)]
    pub(crate) all_traffic: bool,
    /// With --all-traffic: let the command reach this TCP port of this machine's loopback at its own,
    /// such as 5432 for a database; can be repeated
    #[arg(long, value_name = "PORT", requires = "all_traffic",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) host_port: Vec<u16>,
    #[command(flatten)]
    pub(crate) destinations: ProxyDestinationFlags,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Which destinations may be reached, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProxyDestinationFlags {
    /// Print a line for each connection: where it went and what was tried
    ///
    /// It is printed on standard output, or on standard error with a command. With --json it is an
    /// object.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Allow clients to connect there, whatever other rules say: a host, *.DOMAIN, a network such
    /// as 10.0.0.0/8, or *, optionally with :PORT
    ///
    /// By default, clients on other machines cannot reach this machine's own addresses, its link,
    /// or private networks.
    #[arg(long, value_name = "WHERE", help_heading = "Destinations")]
    pub(crate) allow: Vec<RulePattern>,
    /// Do not allow clients to connect there
    #[arg(long, value_name = "WHERE", help_heading = "Destinations")]
    pub(crate) deny: Vec<RulePattern>,
    /// Reach destinations through the proxy at URL: http:// or https://, with NAME:PASSWORD@ if it
    /// requires that
    ///
    /// eyas races to the addresses of the proxy, over HTTP/3, HTTP/2 and HTTP/1.1 if it is https.
    /// The proxy resolves names, so --allow and --deny do not apply to the addresses behind them;
    /// --deny '*' applies to names, too.
    /// UDP needs a proxy with CONNECT-UDP (RFC 9298), such as eyas.
    #[arg(long, value_name = "URL", value_parser = UpstreamProxy::parse, env = "EYAS_PROXY_VIA",
          hide_env_values = true, help_heading = "Reaching")]
    pub(crate) via: Option<UpstreamProxy>,
    /// Trust only this certificate or CA for an https proxy of --via, PEM
    #[arg(long, value_name = "FILE", help_heading = "Reaching")]
    pub(crate) via_cacert: Option<PathBuf>,
    /// Also race SCTP to an https proxy of --via
    #[arg(long, help_heading = "Reaching")]
    pub(crate) via_sctp: bool,
    /// Race MPTCP in addition to TCP
    #[arg(long, help_heading = "Reaching")]
    pub(crate) mptcp: bool,
    /// Use only IPv4 addresses, through NAT64 if there is no other route
    #[arg(short = '4', long, conflicts_with = "ipv6", help_heading = "Reaching")]
    pub(crate) ipv4: bool,
    /// Use only IPv6 packets, also to IPv4 addresses behind a NAT64
    #[arg(short = '6', long, help_heading = "Reaching")]
    pub(crate) ipv6: bool,
    /// Use these addresses for HOST:PORT instead of asking DNS
    #[arg(long, value_name = "HOST:PORT:ADDR[,ADDR]", value_parser = values::resolve,
          help_heading = "Reaching")]
    pub(crate) resolve: Vec<ResolveFlag>,
    #[command(flatten)]
    pub(crate) name_server: NameServerFlags,
    /// Give up on a destination after this time
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "30s",
          help_heading = "Limits")]
    pub(crate) connect_timeout: Duration,
    /// Close connections that have been idle for this time
    #[arg(long, value_name = "DURATION", value_parser = values::duration, default_value = "1h",
          help_heading = "Limits")]
    pub(crate) idle_time: Duration,
    /// Where to remember what works: a file, or none for a private run [env: EYAS_MEMORY]
    ///
    /// The default is $EYAS_MEMORY, then $XDG_STATE_HOME/eyas/memory.sqlite, then
    /// ~/.local/state/eyas/memory.sqlite. With none, nothing is read or written.
    #[arg(long, value_name = "FILE|none", help_heading = "Reaching")]
    pub(crate) memory: Option<MemoryChoice>,
}
