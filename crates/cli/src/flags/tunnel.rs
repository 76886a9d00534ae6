//! Flags of `eyas tunnel`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use eyas::KeyFingerprint;
use eyas_relay::destination::Destination;
use eyas_tunnel::forward::{self, ListenPlace, PortForward};
use ipnet::IpNet;

use super::memory::MemoryChoice;
use super::paths::PathFlags;
use super::reach::ReachFlags;
use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas tunnel keygen                       a key, and the line for the server
  eyas tunnel serve                        at the server, on port 4433
  eyas tunnel gate.example -L 8080:localhost:80
                                           its web server as localhost:8080
  eyas tunnel gate.example -D 1080         curl -x socks5h://localhost:1080 ...
  eyas tunnel gate.example -R 2222:localhost:22
                                           this host's ssh, from the server
  eyas tunnel sctp+tcp://gate.example --multipath -D 1080
  eyas tunnel gate.example:443 --proxy http://ada:secret@proxy:3128 -D 1080
                                           where only a proxy leads out
  eyas tunnel gate.example --tun eyas0 --tun-address 10.9.0.2/24,fd00:9::2/64
                                           packets of any protocol, as root
  ssh -o ProxyCommand='eyas tunnel gate.example --stdio localhost:22' ada@gate

All connections share one session over SCTP, QUIC or TCP, whichever gets through
first, and both ends authenticate each other. When the session fails, its
connections are reset, and a new one is opened. 'eyas man guide tunnel' has the
details.";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  eyas tunnel serve                        on port 4433 of every address
  eyas tunnel serve --listen 192.0.2.1:443 --authorized-keys keys.txt
  eyas tunnel serve --tun eyas0 --tun-address 10.9.0.1/24,fd00:9::1/64

A line of authorized_keys is a key as 'eyas tunnel keygen' prints it, after what
it may do: permit-open=\"HOST:PORT\" and permit-listen=\"[ADDR:]PORT\", each
any number of times, or with the path of a Unix socket. Without them a key may
connect anywhere and listen on loopback. permit-tun=\"ADDRESS\", or a network,
defines from where a key may send packets with --tun, and which it receives;
without it, none. The file is read again for each connection.";

pub(super) const KEYGEN_EXAMPLES: &str = "\
Examples:
  eyas tunnel keygen
  eyas tunnel keygen --key work.pem";

pub(super) const STATUS_EXAMPLES: &str = "\
Examples:
  eyas tunnel status                       live on a terminal, until Ctrl-C
  eyas tunnel status --once
  eyas tunnel status --json

Each end shows what it sends; the rates are those of the last second. A tunnel
is found by a socket below $XDG_RUNTIME_DIR/eyas that only its user can use.";

/// Flags of `eyas tunnel`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct TunnelFlags {
    /// The server: HOST, HOST:PORT, or TRANSPORT[+TRANSPORT]://HOST:PORT; the default port is 4433
    #[arg(required = true, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Listen here, and connect from the server to HOST:PORT; either end may be the path of a Unix
    /// socket, as in 2375:/run/docker.sock
    #[arg(short = 'L', long = "local", value_name = "[BIND:]PORT:HOST:PORT")]
    pub(crate) local: Vec<PortForward>,
    /// Listen on the server, and connect from here to HOST:PORT; either end may be the path of a Unix
    /// socket
    #[arg(short = 'R', long = "remote", value_name = "[BIND:]PORT:HOST:PORT")]
    pub(crate) remote: Vec<PortForward>,
    /// Listen here for SOCKS and HTTP CONNECT, and connect from the server
    #[arg(short = 'D', long = "dynamic", value_name = "[BIND:]PORT")]
    pub(crate) dynamic: Vec<ListenPlace>,
    /// Connect standard input and output to HOST:PORT from the server
    #[arg(long, value_name = "HOST:PORT", value_parser = forward::destination,
          conflicts_with_all = ["local", "remote", "dynamic", "tun"])]
    pub(crate) stdio: Option<Destination>,
    #[command(flatten)]
    pub(crate) tun: TunFlags,
    /// Accept only a server with this key, whatever the known hosts file says
    #[arg(long, value_name = "SHA256:...", help_heading = "Security")]
    pub(crate) host_key: Option<KeyFingerprint>,
    /// Refuse unknown servers, instead of storing their keys
    #[arg(long, help_heading = "Security")]
    pub(crate) strict: bool,
    /// Keys of known servers [default: known_hosts in ~/.config/eyas/tunnel]
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    pub(crate) known_hosts: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) key: TunnelKeyFlags,
    /// Where to remember what works: a file, or none for a private run [env: EYAS_MEMORY]
    #[arg(long, value_name = "FILE|none", help_heading = "Reaching")]
    pub(crate) memory: Option<MemoryChoice>,
    /// Reach the server only through the proxy at URL: http:// or https://, with NAME:PASSWORD@ if it
    /// requires that; by default the environment decides (https_proxy, no_proxy)
    #[arg(short = 'x', long, value_name = "URL", help_heading = "Reaching")]
    pub(crate) proxy: Option<String>,
    /// Hosts for which no proxy is used, instead of those of the environment (no_proxy); * are all
    #[arg(long, value_name = "HOSTS", help_heading = "Reaching")]
    pub(crate) noproxy: Option<String>,
    /// Trust only this certificate or CA for an https proxy, PEM
    #[arg(long, value_name = "FILE", help_heading = "Reaching")]
    pub(crate) proxy_cacert: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
    #[command(flatten)]
    pub(crate) paths: PathFlags,
    /// The action, if any.
    #[command(subcommand)]
    pub(crate) action: Option<TunnelAction>,
}

/// The other end, and what it needs.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TunnelAction {
    /// Accept tunnels from clients
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<TunnelServeFlags>),
    /// Generate a key, and print the line that authorizes it
    #[command(after_help = KEYGEN_EXAMPLES)]
    Keygen(TunnelKeyFlags),
    /// Show this user's tunnels: lines, rates, losses, connections; live on a terminal (Linux only)
    #[command(after_help = STATUS_EXAMPLES)]
    Status(TunnelStatusFlags),
}

/// Flags of `eyas tunnel status`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TunnelStatusFlags {
    /// Print once, even on a terminal
    #[arg(long)]
    pub(crate) once: bool,
}

/// The key of this end.
#[derive(Args, Clone, Debug)]
pub(crate) struct TunnelKeyFlags {
    /// Key and certificate, PEM [default: key.pem in ~/.config/eyas/tunnel, for a server host.pem]
    #[arg(long, short = 'i', value_name = "FILE", help_heading = "Security")]
    pub(crate) key: Option<PathBuf>,
}

/// A network interface whose packets go through the tunnel.
#[derive(Args, Clone, Debug)]
pub(crate) struct TunFlags {
    /// Create this interface, and exchange IP packets with that of the other end; requires root and
    /// Linux
    #[arg(long, value_name = "NAME", requires = "tun_address", help_heading = "Interface")]
    pub(crate) tun: Option<String>,
    /// Addresses of the interface, each with its prefix length
    #[arg(
        long,
        value_name = "ADDRESS/BITS",
        value_delimiter = ',',
        requires = "tun",
        help_heading = "Interface"
    )]
    pub(crate) tun_address: Vec<IpNet>,
    /// Networks that are reached through the interface, and may send from there
    #[arg(
        long,
        value_name = "NETWORK/BITS",
        value_delimiter = ',',
        requires = "tun",
        help_heading = "Interface"
    )]
    pub(crate) tun_route: Vec<IpNet>,
    /// MTU of the interface, in bytes
    #[arg(long, value_name = "BYTES", requires = "tun", default_value_t = 1280,
          value_parser = clap::value_parser!(u16).range(576..), help_heading = "Interface")]
    pub(crate) tun_mtu: u16,
}

/// Flags of `eyas tunnel serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TunnelServeFlags {
    /// Address and port for TCP, UDP and SCTP; a port alone means 127.0.0.1 [default: [::]:4433]
    #[arg(long, short = 'l', value_name = "ADDR:PORT", value_parser = values::listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Keys that may connect, and what each may do [default: authorized_keys in
    /// ~/.config/eyas/tunnel]
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    pub(crate) authorized_keys: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tun: TunFlags,
    #[command(flatten)]
    pub(crate) key: TunnelKeyFlags,
    /// UDP port for SCTP over UDP; by default SCTP is disabled if the usual port is taken [default:
    /// 9899]
    #[arg(long, value_name = "PORT")]
    pub(crate) sctp_udp_port: Option<u16>,
    #[command(flatten)]
    pub(crate) paths: PathFlags,
}
