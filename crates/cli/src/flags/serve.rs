//! Flags of `eyas serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use eyas_gateway::{TrustedNetwork, Upstream};

use super::PassphraseFlags;
use super::values::{self, ListenAddresses};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas serve                                this directory on 127.0.0.1:8443
  eyas serve --listen '[::]:443' --cert chain.pem --key key.pem /srv/www
  eyas serve --cert a.pem --key a.key --cert b.pem --key b.key
                                            a certificate for each name
  eyas serve --plain --listen 8080          HTTP/1.1 and 2 without TLS
  eyas serve --metrics 9464                 and http://127.0.0.1:9464/metrics
  eyas serve --log access.log               a line for each request
  eyas serve --upstream http://127.0.0.1:3000
                                            in front of another web server
  eyas serve --no-h3                        see what clients do without HTTP/3
  eyas serve --save-cert ca.pem             and in another terminal:
  eyas get --cacert ca.pem https://localhost:8443/bytes/1000000

Beside the files: /bytes/N (N bytes, up to 1 GiB), /echo, /slow?ms=N.
'eyas man guide gateway' has the details of --upstream, and
'eyas man guide with-other-servers' Caddy, HAProxy and nginx on either side.
Ctrl-C stops it once the requests in flight are answered; a second Ctrl-C stops
it at once. SIGHUP loads certificates and keys again and reopens the log, so
that it can be rotated: see 'eyas man guide operating'.";

/// Flags of `eyas serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeFlags {
    /// Directory with the files to serve, unless --no-files is given
    #[arg(default_value = ".")]
    pub(crate) directory: PathBuf,
    /// Serve no files, only /bytes/N, /echo and /slow
    #[arg(long)]
    pub(crate) no_files: bool,
    /// Address or name, and port, for TCP, UDP and SCTP; a port alone means 127.0.0.1, port 0 any
    /// free port; can be repeated [default: 127.0.0.1:8443]
    #[arg(long, short = 'l', value_name = "ADDR:PORT", value_parser = values::listen_all)]
    pub(crate) listen: Vec<ListenAddresses>,
    /// Certificate chain, PEM; by default one is generated
    ///
    /// With several, each followed by its --key, the name that a client asks for chooses. They are
    /// loaded again after SIGHUP, and when the files have changed; connections go on.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Vec<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) passphrase: PassphraseFlags,
    /// Require a certificate of clients that one of the CAs in FILE has issued, PEM
    ///
    /// It is required over TCP, QUIC and SCTP, which is then not inside DTLS.
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca: Option<PathBuf>,
    /// Further names in the generated certificate, separated by commas; it always has localhost,
    /// 127.0.0.1 and ::1
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "cert",
          value_parser = values::certificate_name)]
    pub(crate) names: Vec<String>,
    /// Write the generated certificate to FILE, for --cacert on the other side
    #[arg(long, value_name = "FILE", conflicts_with = "cert")]
    pub(crate) save_cert: Option<PathBuf>,
    /// Disable TLS, and therefore HTTP/3
    #[arg(long, conflicts_with_all = ["cert", "names", "save_cert", "client_ca"])]
    pub(crate) plain: bool,
    /// Disable HTTP/3
    #[arg(long)]
    pub(crate) no_h3: bool,
    /// Accept requests as 0-RTT data over QUIC, which an attacker can repeat: those with safe methods
    /// are served, others get 425
    #[arg(long, conflicts_with_all = ["plain", "no_h3"])]
    pub(crate) early_data: bool,
    /// UDP port for SCTP over UDP; by default SCTP is disabled if the usual port is taken [default:
    /// 9899]
    #[arg(long, value_name = "PORT")]
    pub(crate) sctp_udp_port: Option<u16>,
    /// Disable SCTP
    #[arg(long, conflicts_with = "sctp_udp_port")]
    pub(crate) no_sctp: bool,
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics; a port alone means 127.0.0.1
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::listen)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Expect the PROXY protocol, version 1 or 2, on TCP connections from this load balancer: an
    /// address or a network; can be repeated
    ///
    /// The client that it names is the one in limits, in the log and in what an upstream is told.
    /// Connections from elsewhere are served as they are.
    #[arg(long, value_name = "NETWORK")]
    pub(crate) accept_proxy_protocol: Vec<TrustedNetwork>,
    /// Append a line for each request to FILE; - is standard output, or standard error with --json
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Format of the access log
    #[arg(long, value_name = "FORMAT", requires = "log", default_value = "common")]
    pub(crate) log_format: LogFormat,
    /// Serve the responses of the web server at URL instead of files: http://HOST:PORT,
    /// https://HOST:PORT (HTTP/3, 2 or 1.1, whichever works best), h3://HOST:PORT (HTTP/3 alone),
    /// h2c://HOST:PORT (HTTP/2 in the clear, such as gRPC) or unix:/PATH
    #[arg(long, value_name = "URL", conflicts_with_all = ["directory", "no_files"],
          help_heading = "Upstream")]
    pub(crate) upstream: Option<Upstream>,
    /// Trust what this proxy states about clients (Forwarded, X-Forwarded-For and the like): an
    /// address, or a network such as 10.0.0.0/8; can be repeated
    #[arg(long, value_name = "NETWORK", requires = "upstream", help_heading = "Upstream")]
    pub(crate) trusted_proxy: Vec<TrustedNetwork>,
    /// Start upstream connections with the client's address, by the PROXY protocol version 2
    #[arg(long, requires = "upstream", help_heading = "Upstream")]
    pub(crate) proxy_protocol: bool,
    /// Trust only this certificate or CA for an https upstream, PEM
    #[arg(long, value_name = "FILE", requires = "upstream", help_heading = "Upstream")]
    pub(crate) upstream_cacert: Option<PathBuf>,
    /// Reach an https upstream over TCP alone, without HTTP/3
    #[arg(long, requires = "upstream", help_heading = "Upstream")]
    pub(crate) upstream_no_h3: bool,
    /// Respond with 504 if the upstream does not respond within this time
    #[arg(long, value_name = "DURATION", requires = "upstream", default_value = "60s",
          value_parser = values::duration, help_heading = "Upstream")]
    pub(crate) upstream_timeout: Duration,
    /// Respond with 504 if the upstream accepts no connection within this time
    #[arg(long, value_name = "DURATION", requires = "upstream", default_value = "5s",
          value_parser = values::duration, help_heading = "Upstream")]
    pub(crate) upstream_connect_timeout: Duration,
    /// Abort a response if the upstream sends nothing more of it for this time
    #[arg(long, value_name = "DURATION", requires = "upstream", default_value = "5m",
          value_parser = values::duration, help_heading = "Upstream")]
    pub(crate) upstream_idle_timeout: Duration,
    /// Let requests switch to this protocol (Upgrade), such as tcp for docker, or * for any; can be
    /// repeated. WebSockets always pass, and h2c never
    #[arg(long, value_name = "PROTOCOL", requires = "upstream", help_heading = "Upstream")]
    pub(crate) allow_upgrade: Vec<String>,
    /// Respond with 400 if a request target has raw bytes; by default they are percent-encoded
    #[arg(long, requires = "upstream", help_heading = "Upstream")]
    pub(crate) refuse_raw_targets: bool,
    /// Respond with 413 to larger request bodies [default: unlimited]
    #[arg(long, value_name = "SIZE", requires = "upstream", value_parser = values::size,
          help_heading = "Upstream")]
    pub(crate) max_upload: Option<u64>,
    /// Alt-Svc header to send; 'none' sends none [default: h3 on the same port, and the port of
    /// SCTP over UDP if it is not 9899]
    #[arg(long, value_name = "VALUE")]
    pub(crate) alt_svc: Option<String>,
}

/// The format of the access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// The common log format of NCSA, also used by Apache and nginx.
    #[default]
    Common,
    /// JSON objects, with the transport, the duration and the client.
    Json,
}
