//! Flags of `eyas pipe`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values;
use super::{ChoiceFlags, PathFlags, RacePolicy, ReachFlags, ServiceFlags, TrustFlags};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas pipe -l 5000 --plain                     wait for a peer
  eyas pipe --plain sctp+tcp://localhost:5000   elsewhere: be that peer
  eyas pipe -l 5000 --save-cert ca.pem          the same over TLS
  eyas pipe --cacert ca.pem localhost:5000      and the peer, which verifies it
  eyas pipe -l '[::]:5000' --cert chain.pem --key key.pem > file
  eyas pipe --cacert ca.pem quic+tcp://example.org:5000 < file
  eyas pipe --plain --messages --stream 3 sctp://localhost:5000
                                                each line is one SCTP message
  eyas pipe --plain --multipath -v sctp://host:5000 < file
                                                over all paths between the hosts
  echo QUIT | eyas pipe mail.example.org:993    TLS to any server

A TARGET is TRANSPORT[+TRANSPORT]://host:port, which races these transports, or
host:port, which races quic and tcp. Without --plain the connection uses TLS,
and a listener without --cert presents a generated certificate. The other side
accepts it with -k, or trusts the file of --save-cert with --cacert.

SCTP announces all addresses of this host that the peer can reach, and follows
changes: each is another path. Data takes one path, and another when that one
fails, unless --multipath is given.";

/// Flags of `eyas pipe`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PipeFlags {
    /// The peer to connect to: host:port, or transports://host:port
    #[arg(required_unless_present = "listen", conflicts_with = "listen")]
    pub(crate) target: Option<String>,
    /// Wait for one peer at this address and port, over every available transport; a port alone
    /// means 127.0.0.1
    #[arg(long, short = 'l', value_name = "ADDR:PORT", value_parser = values::listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Names in the listener's generated certificate, in addition to localhost, 127.0.0.1 and ::1,
    /// separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "listen",
          value_parser = values::certificate_name, conflicts_with_all = ["cert", "plain"])]
    pub(crate) names: Vec<String>,
    /// Write the listener's generated certificate to FILE, for --cacert on the other side
    #[arg(long, value_name = "FILE", requires = "listen", conflicts_with_all = ["cert", "plain"])]
    pub(crate) save_cert: Option<PathBuf>,
    /// Show the connection and changes of its paths on standard error
    #[arg(long, short = 'v')]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) service: ServiceFlags,
    #[command(flatten)]
    pub(crate) message: MessageFlags,
    #[command(flatten)]
    pub(crate) paths: PathFlags,
    /// How candidates are tried
    #[arg(long, value_name = "POLICY", default_value = "race", help_heading = "Choosing")]
    pub(crate) policy: RacePolicy,
    #[command(flatten)]
    pub(crate) choice: ChoiceFlags,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

/// Features of SCTP beyond a byte stream.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "SCTP")]
pub(crate) struct MessageFlags {
    /// Send each line as one message, and write each message as one line (SCTP only)
    ///
    /// Unless --plain is given, an association over UDP is protected by DTLS (RFC 8261), which
    /// preserves messages. Directly over IP, and if several paths are requested, which DTLS does
    /// not support, it is protected by TLS (RFC 3436): this turns its messages into one byte
    /// stream, so each one is preceded by its length as four bytes in network byte order, and
    /// --ppid, --unordered and --lifetime are not available.
    #[arg(long)]
    pub(crate) messages: bool,
    /// The SCTP stream to use; when sending bytes, both sides must use the same one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) stream: u16,
    /// Payload protocol identifier of the messages
    #[arg(long, value_name = "N", default_value_t = 0, requires = "messages")]
    pub(crate) ppid: u32,
    /// Let messages be delivered out of order
    #[arg(long, requires = "messages")]
    pub(crate) unordered: bool,
    /// Discard messages that have not arrived after this time
    #[arg(long, value_name = "DURATION", value_parser = values::duration, requires = "messages")]
    pub(crate) lifetime: Option<Duration>,
}
