//! Flags of `eyas sctp`.

use std::ffi::OsString;
use std::net::IpAddr;

use clap::{Args, Subcommand};

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas sctp run checksctp
  eyas sctp run --udp -- socat -u SCTP-LISTEN:5000 STDOUT
  eyas sctp run --udp -- sh -c 'echo hello | socat -u - SCTP:192.0.2.1:5000'
  eyas sctp run --ip -- sctp_darn -H 0.0.0.0 -P 5000 -l

docs/sctp-run.md has the details.";

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  eyas sctp run checksctp
  eyas sctp run --udp -- socat -u SCTP-LISTEN:5000 STDOUT
  eyas sctp run --udp=9900 --multipath -- ./program -H 192.0.2.7

The command, and all that it starts, gets SCTP sockets from eyas instead of the
kernel, by a library that is preloaded. What is linked statically, makes system
calls of its own as Go does, or runs with more rights than its user has is not
reached. The exit status is the command's: 128 and the number for a signal, 127
says that it was not found, 126 that it cannot be run.";

/// Flags of `eyas sctp`.
#[derive(Args, Clone, Debug)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct SctpFlags {
    /// What to do.
    #[command(subcommand)]
    pub(crate) action: SctpAction,
}

/// What SCTP is given to.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SctpAction {
    /// Run a command whose SCTP sockets are those of eyas
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<SctpRunFlags>),
}

/// Flags of `eyas sctp run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SctpRunFlags {
    /// Send SCTP inside UDP, to peers at this port; ours is the same if it is free [default: 9899]
    ///
    /// This is what is done where this user may not open raw sockets. It needs no rights, and the peer
    /// has to expect it: another eyas, or Linux with net.sctp.udp_port and encap_port.
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "9899", conflicts_with = "ip",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) udp: Option<u16>,
    /// Send SCTP directly over IP, as protocol 132
    ///
    /// This is what is done where this user may open raw sockets, as root may.
    #[arg(long)]
    pub(crate) ip: bool,
    /// Send new data over all paths of an association at once
    #[arg(long)]
    pub(crate) multipath: bool,
    /// Use this address of this host, and tell peers of no others; may be given again
    #[arg(long, value_name = "ADDR")]
    pub(crate) local_address: Vec<IpAddr>,
    /// The command, and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
