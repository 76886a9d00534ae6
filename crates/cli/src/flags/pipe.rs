//! Flags of `eyas pipe`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use super::values;
use super::{ChoiceFlags, ReachFlags, ServiceFlags, TrustFlags};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas pipe --listen 5000 --plain               wait for a peer, over any transport
  eyas pipe --plain sctp+tcp://localhost:5000   and in another terminal: be that peer
  eyas pipe --listen '[::]:5000' --cert chain.pem --key key.pem > file
  eyas pipe --cacert ca.pem quic+tcp://example.org:5000 < file
  eyas pipe --plain --messages --stream 3 sctp://localhost:5000
                                                each line is one SCTP message
  echo QUIT | eyas pipe mail.example.org:993    TLS to anybody who speaks it

A TARGET is TRANSPORT[+TRANSPORT]://host:port, which races these transports, or
host:port, which races quic and tcp. Without --plain the connection is under TLS,
and a listener without --cert shows a certificate made on the spot.";

/// Flags of `eyas pipe`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PipeFlags {
    /// Whom to connect to: host:port, or transports://host:port
    #[arg(required_unless_present = "listen", conflicts_with = "listen")]
    pub(crate) target: Option<String>,
    /// Wait for one peer at this address and port, over every transport there is; a port alone
    /// means 127.0.0.1
    #[arg(long, short = 'l', value_name = "ADDR:PORT", value_parser = values::listen)]
    pub(crate) listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) service: ServiceFlags,
    #[command(flatten)]
    pub(crate) message: MessageFlags,
    /// Say on standard error what the connection is
    #[arg(long, short = 'v')]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) choice: ChoiceFlags,
    #[command(flatten)]
    pub(crate) reach: ReachFlags,
    #[command(flatten)]
    pub(crate) trust: TrustFlags,
}

/// What SCTP has beyond a stream of bytes.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "SCTP")]
pub(crate) struct MessageFlags {
    /// Send each line as one message, and write each message as one line (SCTP without TLS)
    #[arg(long)]
    pub(crate) messages: bool,
    /// The SCTP stream to use; both sides have to agree on it where bytes are sent
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) stream: u16,
    /// Payload protocol identifier of the messages
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "messages")]
    pub(crate) ppid: u32,
    /// Let messages overtake each other
    #[arg(long, requires = "messages")]
    pub(crate) unordered: bool,
    /// Give messages up that have not arrived after this time
    #[arg(long, value_name = "DURATION", value_parser = values::duration, requires = "messages")]
    pub(crate) lifetime: Option<Duration>,
}
