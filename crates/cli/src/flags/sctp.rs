//! Flags of `eyas sctp`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::MultipathOptions;
use super::error::ValueError;
use super::multipath::MultipathError;

pub(super) const EXAMPLES: &str = "\
Examples:
  eyas sctp run checksctp
  eyas sctp run --udp -- socat -u SCTP-LISTEN:5000 STDOUT
  eyas sctp run --udp -- sh -c 'echo hello | socat -u - SCTP:192.0.2.1:5000'
  eyas sctp run --ip -- sctp_darn -H 0.0.0.0 -P 5000 -l
  eyas sctp serve --socket /run/shared/sctp
  eyas sctp run --join /run/shared/sctp -- ./program
  eyas sctp status

'eyas man guide sctp-run' has the details.";

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  eyas sctp run checksctp
  eyas sctp run --udp -- socat -u SCTP-LISTEN:5000 STDOUT
  eyas sctp run --udp=9900 --multipath -- ./program -H 192.0.2.7
  eyas sctp run --capture all.pcapng -- ./program
  eyas sctp run --seccomp -- sh -c './static-server & ./go-client'
  eyas sctp run --join /run/shared/sctp -- ./program

The command, and all that it starts, gets SCTP sockets from eyas instead of the
kernel, through a preloaded library. If the command is statically linked or a Go
program, the kernel stops its calls on such sockets instead (seccomp). Programs
that run with more privileges than their user are not reached. The exit status
is the command's: 128 plus the number of a signal that killed it, 127 if it was
not found, 126 if it cannot be run.";

pub(super) const SERVE_EXAMPLES: &str = "\
Examples:
  eyas sctp serve --udp --socket /run/shared/sctp
  eyas sctp serve --ip --mode 660 --library /run/shared/sctp.so

Anyone who may write to the socket can use it with 'eyas sctp run --join
SOCKET', also from another container or network namespace with its directory.
Ctrl-C closes the programs' sockets, and shuts their associations down.";

pub(super) const STATUS_EXAMPLES: &str = "\
Examples:
  eyas sctp status
  eyas sctp status --socket /run/shared/sctp --json

Below 'eyas sctp run' it shows that one, and elsewhere all that this user has
started in this network namespace; root sees those of all users.";

/// Flags of `eyas sctp`.
#[derive(Args, Clone, Debug)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct SctpFlags {
    /// The action.
    #[command(subcommand)]
    pub(crate) action: SctpAction,
}

/// The actions of `eyas sctp`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SctpAction {
    /// Run a command with the SCTP sockets of eyas
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<SctpRunFlags>),
    /// Provide SCTP sockets to the programs of a machine or a pod
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<SctpServeFlags>),
    /// Show sockets, associations and their paths
    #[command(after_help = STATUS_EXAMPLES)]
    Status(SctpStatusFlags),
}

/// How SCTP packets are carried.
#[derive(Args, Clone, Debug)]
pub(crate) struct SctpCarrierFlags {
    /// Send SCTP over UDP to this port of peers; the local port is the same if it is free [default:
    /// 9899]
    ///
    /// This is the default for users without permission to open raw sockets. It needs no
    /// privileges, but the peer must support it: another eyas, or Linux with net.sctp.udp_port and
    /// encap_port.
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "9899", conflicts_with = "ip",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) udp: Option<u16>,
    /// Send SCTP directly over IP, as protocol 132
    ///
    /// This is the default for users with permission to open raw sockets, such as root.
    #[arg(long)]
    pub(crate) ip: bool,
    /// Send new data over all paths of an association at once
    ///
    /// Options are named as in plans of the lab, such as --multipath=mapping=modulo; 'eyas man
    /// guide tunnel' lists them. Programs choose buffers, the stream scheduler and interleaving themselves.
    #[arg(long, value_name = "NAME=VALUE,...", num_args = 0..=1, require_equals = true,
          default_missing_value = "", value_parser = multipath)]
    pub(crate) multipath: Option<MultipathOptions>,
    /// Use this local address, and announce no others to peers; can be repeated
    #[arg(long, value_name = "ADDR")]
    pub(crate) local_address: Vec<IpAddr>,
    /// Write all packets to FILE as they pass, for Wireshark and tshark
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
}

/// Flags of `eyas sctp run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SctpRunFlags {
    /// How SCTP packets are carried.
    #[command(flatten)]
    pub(crate) carrier: SctpCarrierFlags,
    /// Use the stack of the 'eyas sctp serve' that listens on this socket, instead of its own
    #[arg(long, value_name = "SOCKET",
          conflicts_with_all = ["udp", "ip", "multipath", "local_address", "capture"])]
    pub(crate) join: Option<PathBuf>,
    /// Intercept calls on SCTP sockets with seccomp, instead of a preloaded library
    ///
    /// This is the default if COMMAND is linked statically or with musl, or is a Go program; use
    /// the flag for commands that start such programs. Programs cannot gain privileges by
    /// set-user-ID then.
    #[arg(long)]
    pub(crate) seccomp: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Flags of `eyas sctp serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SctpServeFlags {
    /// How SCTP packets are carried.
    #[command(flatten)]
    pub(crate) carrier: SctpCarrierFlags,
    /// The socket for programs [default: eyas-sctp in $XDG_RUNTIME_DIR, for root in /run]
    ///
    /// A socket left behind by a killed service is removed. The directory must belong to this user
    /// or to root.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Who may use it: the mode of the socket, of which only write permission matters
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = mode)]
    pub(crate) mode: u32,
    /// Write the library to be preloaded by programs to FILE, for those without eyas
    ///
    /// They load it with the variables LD_PRELOAD=FILE and EYAS_SCTP_SOCKET=SOCKET. It is removed
    /// at the end.
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
}

/// Flags of `eyas sctp status`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SctpStatusFlags {
    /// Show the eyas that listens on this socket
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

/// Parses options that programs cannot set, or would override, by their own socket options.
fn multipath(text: &str) -> Result<MultipathOptions, MultipathError> {
    let options: MultipathOptions = text.parse()?;
    let theirs = [
        ("buffer", "SO_SNDBUF and SO_RCVBUF"),
        ("scheduler", "SCTP_STREAM_SCHEDULER"),
        ("interleaving", "SCTP_INTERLEAVING_SUPPORTED"),
    ];
    match theirs.into_iter().find(|(name, _)| options.has(name)) {
        None => Ok(options),
        Some((name, option)) => Err(MultipathError::OfPrograms { name, option }),
    }
}

fn mode(text: &str) -> Result<u32, ValueError> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or(ValueError::Form("three octal digits, as for chmod: 600, 660, 666"))
}
